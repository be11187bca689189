"""The contents of the page about the paper, as values: tables, pictures, and claims with their verdicts."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from html import escape
from typing import NamedTuple

from imprint.report import html


class Verdict(StrEnum):
    """Whether results support a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNTESTABLE = "not testable here"


MARKS = {Verdict.HOLDS: "✓", Verdict.FAILS: "✗", Verdict.UNTESTABLE: "–"}
CSS = {Verdict.HOLDS: "holds", Verdict.FAILS: "fails", Verdict.UNTESTABLE: "none"}
PUBLISHED = "published results"
UNBREAKABLE = re.compile(r"(?<=\de)-(?=\d)|(?<=\d)-(?=nn)|(?<= )-(?=\d)")  # hyphens where no line may break
BREAKABLE = re.compile(r"(?<=\w)[_/](?=\w)")  # characters within long names after which a line may break


def verdict(holds: bool) -> Verdict:
    """`HOLDS` or `FAILS`."""
    return Verdict.HOLDS if holds else Verdict.FAILS


@dataclass(frozen=True)
class Claim:
    """A claim: its verdict on these results with the figures behind it, and the same for the published results."""

    text: str
    verdict: Verdict
    figures: str
    published: Verdict | None = None
    published_figures: str = ""


@dataclass(frozen=True)
class Cells:
    """A table of texts. Columns from `numbers` on are right-aligned, except the last `remarks`."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: int = 1
    caption: str = ""
    remarks: int = 0

    def right(self, column: int) -> bool:
        """Whether a column is right-aligned."""
        return self.numbers <= column < len(self.head) - self.remarks


@dataclass(frozen=True)
class Picture:
    """A drawing, and optionally a version for narrow screens."""

    name: str
    svg: bytes
    caption: str
    narrow: bytes = b""


@dataclass(frozen=True)
class Section:
    """The results of one artefact. Every run shows its `text`; only the first shows the `note`."""

    name: str
    title: str
    where: str
    text: str
    parts: tuple[Cells | Picture, ...] = ()
    claims: tuple[Claim, ...] = ()
    note: str = ""
    topic: str = ""
    """The page of the documentation that shows it, if everything was run."""


@dataclass(frozen=True)
class Run:
    """The results on one folder of packs, and their cost."""

    name: str
    scope: str
    sections: tuple[Section, ...]
    brief: str = ""
    """The scope in a few words."""
    experiments: int = 0
    processor: float = 0.0
    """Processor seconds, summed over all cores."""
    wall: float = 0.0
    """Elapsed seconds; 0 if they were not recorded."""
    same: bool = False
    """Whether the backbones are the published ones."""
    options: str = ""
    """Options of the command that ran the studies."""
    versions: str = ""
    whole: bool = True
    """Whether every artefact that the packs allow was run."""
    beside: str = ""
    """The aggregator that replaces `max`; empty for `max` itself."""


Shown = list[tuple[str, Section]]
"""One artefact in all runs that have results for it, with the names of the runs."""


def together(runs: Sequence[Run]) -> list[Shown]:
    """Each artefact with its section in the first run that has one, then those of later runs that differ from it."""
    artefacts: dict[str, Shown] = {}
    for run in runs:
        for section in run.sections:
            shown = artefacts.setdefault(section.name, [])
            if not shown:
                shown.append((run.name, section))
            elif section != shown[0][1] and (section.parts or section.claims):
                shown.append((run.name, _renamed(section, run.name)))
    return list(artefacts.values())


def as_file(name: str) -> str:
    """A name that can be part of a file name.

    >>> as_file("full size")
    'full-size'
    """
    return re.sub(r"[^\w.]+", "-", name)


def _renamed(section: Section, run: str) -> Section:
    """The section with the name of the run in the names of its pictures."""
    parts = (replace(p, name=f"{p.name}-{as_file(run)}") if isinstance(p, Picture) else p for p in section.parts)
    return replace(section, parts=tuple(parts))


class Judged(NamedTuple):
    """A verdict with the figures behind it."""

    verdict: Verdict
    figures: str


class ClaimRow(NamedTuple):
    """A claim with the judgement of every run that tests it, and that of the published results."""

    text: str
    judged: dict[str, Judged]
    published: Judged | None


def rows(shown: Iterable[Shown]) -> list[ClaimRow]:
    """Every claim once, in the order of the sections."""
    claims: dict[tuple[str, str], ClaimRow] = {}
    for run, section in (pair for sections in shown for pair in sections):
        for claim in section.claims:
            published = None if claim.published is None else Judged(claim.published, claim.published_figures)
            row = claims.setdefault((section.name, claim.text), ClaimRow(claim.text, {}, published))
            row.judged[run] = Judged(claim.verdict, claim.figures)
    return list(claims.values())


def claims_table(claims: Sequence[ClaimRow], runs: Sequence[str]) -> Cells:
    """The claims as a table of texts."""

    def cell(j: Judged | None) -> str:
        return "" if j is None else f"{MARKS[j.verdict]} {j.verdict}: {j.figures}"

    lines = tuple((c.text, *(cell(c.judged.get(run)) for run in runs), cell(c.published)) for c in claims)
    return Cells(("claim", *runs, PUBLISHED), lines, len(runs) + 2)


def claims_html(claims: Sequence[ClaimRow], runs: Sequence[str]) -> str:
    """The claims as an HTML table, which becomes a list on narrow screens."""

    def cell(source: str, j: Judged | None) -> str:
        if j is None:
            return "<td></td>"
        mark = f'<span class="{CSS[j.verdict]}">{MARKS[j.verdict]} {j.verdict}</span>'
        return f'<td data-of="{escape(source)}">{mark}<br>{line_breaks(j.figures)}</td>'

    lines = (
        html.row(
            f"<td>{line_breaks(c.text)}</td>",
            *(cell(run, c.judged.get(run)) for run in runs),
            cell("published", c.published),
        )
        for c in claims
    )
    return html.table(html.heads(("claim", *runs, PUBLISHED)), lines, "claims")


def line_breaks(text: str) -> str:
    """Text as HTML, in which 7.1e-15 stays on one line and long names such as a_b/c may break."""
    return BREAKABLE.sub(r"\g<0><wbr>", escape(UNBREAKABLE.sub("\N{NON-BREAKING HYPHEN}", text)))


def tally(claims: Sequence[ClaimRow], runs: Sequence[str]) -> str:
    """How many claims each run supports, and how many the published results support."""
    names = {run: run if run.startswith("here") else f"on {run}" for run in runs}
    parts = [f"the results {names[run]} {_count(c.judged.get(run) for c in claims)}" for run in runs]
    return f"Of {len(claims)} claims {'; '.join(parts)}; the published results {_count(c.published for c in claims)}."


def _count(judgements: Iterable[Judged | None]) -> str:
    counts = Counter(j.verdict for j in judgements if j is not None)
    untested = f" and cannot test {counts[Verdict.UNTESTABLE]}" if counts[Verdict.UNTESTABLE] else ""
    joint = "," if untested else " and"
    return f"bear out {counts[Verdict.HOLDS]}{joint} contradict {counts[Verdict.FAILS]}{untested}"
