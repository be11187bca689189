"""The contents of the page about the paper, as values: tables, pictures, and claims with their verdicts."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from html import escape
from typing import NamedTuple

from imprint.report import html
from imprint.report.text_table import TextTable


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
    parts: tuple[TextTable | Picture, ...] = ()
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
    cpu_seconds: float = 0.0
    """Processor seconds, summed over all cores."""
    elapsed: float = 0.0
    """Elapsed seconds; 0 if they were not recorded."""
    published_backbones: bool = False
    """Whether the backbones are the published ones."""
    options: str = ""
    """Options of the command that ran the studies."""
    versions: str = ""
    complete: bool = True
    """Whether every artefact that the packs allow was run."""
    beside: str = ""
    """The aggregator that replaces `max`; empty for `max` itself."""


Shown = list[tuple[str, Section]]
"""One artefact in all runs that have results for it, with the names of the runs."""


def sections_by_artefact(runs: Sequence[Run]) -> list[Shown]:
    """Each artefact with its section in the first run that has one, then those of later runs that differ from it."""
    artefacts: dict[str, Shown] = {}
    for run in runs:
        for section in run.sections:
            shown = artefacts.setdefault(section.name, [])
            if not shown:
                shown.append((run.name, section))
            elif section != shown[0][1] and (section.parts or section.claims):
                suffix = as_file(run.name)  # pictures of several runs need different names
                renamed = (
                    replace(p, name=f"{p.name}-{suffix}") if isinstance(p, Picture) else p for p in section.parts
                )
                shown.append((run.name, replace(section, parts=tuple(renamed))))
    return list(artefacts.values())


def as_file(name: str) -> str:
    """A name that can be part of a file name.

    >>> as_file("full size")
    'full-size'
    """
    return re.sub(r"[^\w.]+", "-", name)


class ClaimRow(NamedTuple):
    """A claim as every run judges it; all have the same text and published figures."""

    judged: dict[str, Claim]
    """By the names of the runs."""

    @property
    def text(self) -> str:
        return next(iter(self.judged.values())).text

    def verdict(self, source: str) -> tuple[Verdict, str] | None:
        """The verdict of a run, or of the published results, and its figures; None if it does not test the claim."""
        claim = next(iter(self.judged.values())) if source == PUBLISHED else self.judged.get(source)
        if claim is None:
            return None
        if source != PUBLISHED:
            return claim.verdict, claim.figures
        return None if claim.published is None else (claim.published, claim.published_figures)


def claim_rows(shown: Iterable[Shown]) -> list[ClaimRow]:
    """Every claim once, in the order of the sections."""
    claims: dict[tuple[str, str], ClaimRow] = {}
    for run, section in (pair for sections in shown for pair in sections):
        for claim in section.claims:
            claims.setdefault((section.name, claim.text), ClaimRow({})).judged[run] = claim
    return list(claims.values())


def claims_table(claims: Sequence[ClaimRow], runs: Sequence[str]) -> TextTable:
    """The claims as a table of texts."""
    sources = (*runs, PUBLISHED)
    texts = [[f"{MARKS[v[0]]} {v[0]}: {v[1]}" if (v := c.verdict(s)) else "" for s in sources] for c in claims]
    return TextTable(("claim", *sources), tuple((c.text, *row) for c, row in zip(claims, texts)), len(runs) + 2)


def claims_html(claims: Sequence[ClaimRow], runs: Sequence[str]) -> str:
    """The claims as an HTML table, which becomes a list on narrow screens."""

    def cell(claim: ClaimRow, source: str) -> str:
        judged = claim.verdict(source)
        if judged is None:
            return "<td></td>"
        mark = f'<span class="{CSS[judged[0]]}">{MARKS[judged[0]]} {judged[0]}</span>'
        name = "published" if source == PUBLISHED else source
        return f'<td data-of="{escape(name)}">{mark}<br>{line_breaks(judged[1])}</td>'

    sources = (*runs, PUBLISHED)
    lines = (html.row(f"<td>{line_breaks(c.text)}</td>", *(cell(c, source) for source in sources)) for c in claims)
    return html.table(html.heads(("claim", *sources)), lines, "claims")


def line_breaks(text: str) -> str:
    """Text as HTML, in which 7.1e-15 stays on one line and long names such as a_b/c may break."""
    return BREAKABLE.sub(r"\g<0><wbr>", escape(UNBREAKABLE.sub("\N{NON-BREAKING HYPHEN}", text)))


def count_verdicts(claims: Sequence[ClaimRow], source: str) -> Counter[Verdict]:
    """How often a run, or the published results, come to each verdict."""
    return Counter(judged[0] for claim in claims if (judged := claim.verdict(source)) is not None)


def tally(claims: Sequence[ClaimRow], runs: Sequence[str]) -> str:
    """How many claims each run supports, and how many the published results support."""
    parts = []
    for source in (*runs, PUBLISHED):
        counts = count_verdicts(claims, source)
        name = (
            f"the {source}"
            if source == PUBLISHED
            else f"the results {'' if source.startswith('here') else 'on '}{source}"
        )
        untested = f" and cannot test {counts[Verdict.UNTESTABLE]}" if counts[Verdict.UNTESTABLE] else ""
        joint = "," if untested else " and"
        parts.append(f"{name} bear out {counts[Verdict.HOLDS]}{joint} contradict {counts[Verdict.FAILS]}{untested}")
    return f"Of {len(claims)} claims {'; '.join(parts)}."
