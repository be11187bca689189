"""The contents of the page about the paper, as values: tables, pictures, and claims with their verdicts."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from html import escape
from typing import NamedTuple

from imprint.report import html
from imprint.report.text_table import TextTable, markdown_cell


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
SMALL = 400  # points; a narrower picture may shrink to the width of a telephone


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

    def html(self) -> str:
        """The picture as part of an HTML page, with identifiers that are unique on the page."""
        caption, svg = f"<figcaption>{escape(self.caption)}</figcaption>", self.svg.decode()
        svg = re.sub(r'(id="|href="#|url\(#)', rf"\1{self.name}-", svg[svg.index("<svg") :])
        if self.narrow:
            return html.wide_and_narrow(svg, self.narrow.decode(), caption)
        width = re.search(r'width="([\d.]+)pt"', svg)
        css = ' class="small"' if width and float(width[1]) < SMALL else ""
        return f'<figure{css}><div {html.SCROLLS} aria-label="Figure">{svg}</div>{caption}</figure>'

    def markdown(self, folder: str) -> list[str]:
        """The lines of Markdown that show the picture, stored as SVG in a folder, and its caption."""
        file, caption = f"{folder}{self.name}", markdown_cell(self.caption)
        image = f"![{caption}]({file}.svg)"
        if self.narrow:
            narrow = f'<source media="(max-width: 640px)" srcset="{file}-narrow.svg">'
            image = f'<picture>{narrow}<img alt="{escape(caption)}" src="{file}.svg"></picture>'
        return [image, "", self.caption, ""]


@dataclass(frozen=True)
class Section:
    """The results of one artefact. Every run shows its `text`; only the first shows the `note`."""

    name: str
    title: str
    where: str  # in the paper, such as "Table 1"
    text: str
    parts: tuple[TextTable | Picture, ...] = ()
    claims: tuple[Claim, ...] = ()
    note: str = ""
    topic: str = ""  # the page of the documentation that shows it, if everything was run


@dataclass(frozen=True)
class Run:
    """The results on one folder of packs, and their cost."""

    name: str
    scope: str
    sections: tuple[Section, ...]
    brief: str = ""  # the scope in a few words
    experiments: int = 0
    cpu_seconds: float = 0.0  # summed over all cores
    elapsed: float = 0.0  # seconds; 0 if they were not recorded
    published_backbones: bool = False
    options: str = ""  # of the command that ran the studies
    versions: str = ""
    complete: bool = True  # whether every artefact that the packs allow was run
    beside: str = ""  # the aggregator that replaces `max`; empty for `max` itself


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
                suffix, parts = as_file(run.name), section.parts  # pictures of several runs need different names
                named = (replace(p, name=f"{p.name}-{suffix}") if isinstance(p, Picture) else p for p in parts)
                shown.append((run.name, replace(section, parts=tuple(named))))
    return list(artefacts.values())


def as_file(name: str) -> str:
    """A name that can be part of a file name.

    >>> as_file("full size")
    'full-size'
    """
    return re.sub(r"[^\w.]+", "-", name)


class ClaimRow(NamedTuple):
    """A claim, and the verdicts on it with the figures behind them."""

    text: str
    verdicts: dict[str, tuple[Verdict, str]]
    """By the names of the runs, and by `PUBLISHED`."""


def claim_rows(shown: Iterable[Shown]) -> list[ClaimRow]:
    """Every claim once, in the order of the sections; all runs have the same published figures."""
    rows: dict[tuple[str, str], ClaimRow] = {}
    for run, section in (pair for sections in shown for pair in sections):
        for claim in section.claims:
            row = rows.setdefault((section.name, claim.text), ClaimRow(claim.text, {}))
            row.verdicts[run] = claim.verdict, claim.figures
            if claim.published is not None:
                row.verdicts[PUBLISHED] = claim.published, claim.published_figures
    return list(rows.values())


def claims_table(claims: Sequence[ClaimRow], runs: Sequence[str]) -> TextTable:
    """The claims as a table of texts."""
    sources, rows = (*runs, PUBLISHED), []
    for text, verdicts in claims:
        cells = {source: f"{MARKS[judged]} {judged}: {figures}" for source, (judged, figures) in verdicts.items()}
        rows.append((text, *(cells.get(source, "") for source in sources)))
    return TextTable(("claim", *sources), tuple(rows), len(runs) + 2)


def claims_html(claims: Sequence[ClaimRow], runs: Sequence[str]) -> str:
    """The claims as an HTML table, which becomes a list on narrow screens."""
    sources, rows = (*runs, PUBLISHED), []
    for text, verdicts in claims:
        cells = {}
        for source, (judged, figures) in verdicts.items():
            mark = f'<span class="{CSS[judged]}">{MARKS[judged]} {judged}</span>'
            name = "published" if source == PUBLISHED else source
            cells[source] = f'<td data-of="{escape(name)}">{mark}<br>{line_breaks(figures)}</td>'
        rows.append(html.row(f"<td>{line_breaks(text)}</td>", *(cells.get(source, "<td></td>") for source in sources)))
    return html.table(html.heads(("claim", *sources)), rows, "claims")


def line_breaks(text: str) -> str:
    """Text as HTML, in which 7.1e-15 stays on one line and long names such as a_b/c may break."""
    return BREAKABLE.sub(r"\g<0><wbr>", escape(UNBREAKABLE.sub("\N{NON-BREAKING HYPHEN}", text)))


def count_verdicts(claims: Sequence[ClaimRow], source: str) -> Counter[Verdict]:
    """How often a run, or the published results, come to each verdict."""
    return Counter(claim.verdicts[source][0] for claim in claims if source in claim.verdicts)


def tally(claims: Sequence[ClaimRow], runs: Sequence[str]) -> str:
    """How many claims each run supports, and how many the published results support."""
    parts = []
    for source in (*runs, PUBLISHED):
        holds, fails, untested = (count_verdicts(claims, source)[judged] for judged in Verdict)
        name = source if source == PUBLISHED else f"results {'' if source.startswith('here') else 'on '}{source}"
        rest = f", contradict {fails} and cannot test {untested}" if untested else f" and contradict {fails}"
        parts.append(f"the {name} support {holds}{rest}")
    return f"{len(claims)} claims: {'; '.join(parts)}."
