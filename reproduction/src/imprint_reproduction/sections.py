"""The contents of the page about the paper, as values: tables, images, and claims
with their verdicts.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from html import escape

from imprint.extend import count
from imprint.report import TextTable, html


class Verdict(StrEnum):
    """Whether results support a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNTESTABLE = "not testable here"


MARKS = {Verdict.HOLDS: "✓", Verdict.FAILS: "✗", Verdict.UNTESTABLE: "–"}
CSS = {Verdict.HOLDS: "holds", Verdict.FAILS: "fails", Verdict.UNTESTABLE: "none"}
PUBLISHED = "published results"
# hyphens where no line may break
UNBREAKABLE = re.compile(r"(?<=\de)-(?=\d)|(?<=\d)-(?=nn)|(?<= )-(?=\d)")
# characters within long names after which a line may break
BREAKABLE = re.compile(r"(?<=\w)[_/](?=\w)")


def verdict(holds: bool | Verdict) -> Verdict:
    """The verdict, or `HOLDS` or `FAILS` for a truth value."""
    if isinstance(holds, Verdict):
        return holds
    return Verdict.HOLDS if holds else Verdict.FAILS


@dataclass(frozen=True)
class Claim:
    """A claim: its verdict on these results with the figures behind it, and the same
    for the published results.
    """

    text: str
    verdict: Verdict
    figures: str
    published: Verdict | None = None
    published_figures: str = ""


@dataclass(frozen=True)
class Image:
    """A drawing with a caption."""

    name: str
    svg: bytes
    caption: str

    def html(self) -> str:
        """The image as part of an HTML page, with identifiers that are unique on the
        page.
        """
        svg = re.sub(r'(id="|href="#|url\(#)', rf"\1{self.name}-", self.svg.decode())
        return html.figure(svg, f"<figcaption>{escape(self.caption)}</figcaption>")

    def markdown(self, folder: str) -> list[str]:
        """The lines of Markdown that show the image, stored as SVG in a folder, and
        its caption.
        """
        # A line break would end the link.
        alternative = self.caption.replace("|", "\\|").replace("\n", " ")
        return [
            f"![{alternative}]({folder}{self.name}.svg)",
            "",
            self.caption,
            "",
        ]


@dataclass(frozen=True)
class Section:
    """The results of one artefact. Every run shows its `text`; only the first of
    several runs shows the `note`.
    """

    name: str
    title: str
    where: str  # in the paper, such as "Table 1"
    text: str
    parts: tuple[TextTable | Image, ...] = ()
    claims: tuple[Claim, ...] = ()
    note: str = ""
    # the page of the documentation that shows it, if everything was run
    topic: str = ""

    @property
    def tables(self) -> list[TextTable]:
        """The tables among its parts."""
        return [part for part in self.parts if isinstance(part, TextTable)]


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


Shown = list[tuple[Run, Section]]
"""One artefact in all runs that have results for it."""


def sections_by_artefact(runs: Sequence[Run]) -> list[Shown]:
    """Each artefact with its section in the first run that has one, then those of later
    runs that differ from it.

    The first section has its note at the end of its text; later ones do not repeat its
    text.
    """
    artefacts: dict[str, Shown] = {}
    firsts: dict[str, Section] = {}
    for run in runs:
        for section in run.sections:
            first = firsts.setdefault(section.name, section)
            if section.name not in artefacts:
                artefacts[section.name] = [
                    (
                        run,
                        replace(section, text=f"{section.text} {section.note}".strip()),
                    )
                ]
            elif section != first and (section.parts or section.claims):
                # images of several runs need different names
                suffix, parts = as_file(run.name), section.parts
                named = tuple(
                    (
                        replace(p, name=f"{p.name}-{suffix}")
                        if isinstance(p, Image)
                        else p
                    )
                    for p in parts
                )
                text = "" if section.text == first.text else section.text
                artefacts[section.name].append(
                    (run, replace(section, text=text, parts=named))
                )
    return list(artefacts.values())


def as_file(name: str) -> str:
    """A name that can be part of a file name."""
    return re.sub(r"[^\w.]+", "-", name)


def line_breaks(text: str) -> str:
    """Text as HTML, in which 7.1e-15 stays on one line and long names such as a_b/c may
    break.
    """
    return BREAKABLE.sub(
        r"\g<0><wbr>", escape(UNBREAKABLE.sub("\N{NON-BREAKING HYPHEN}", text))
    )


Verdicts = dict[str, tuple[Verdict, str]]
"""The verdicts on a claim with the figures behind them, by run, and by `PUBLISHED`."""


@dataclass(frozen=True)
class Claims:
    """Claims, each once, with the verdicts of several runs and of the published
    results.
    """

    runs: Sequence[str]
    # by the name of the artefact and the text of the claim
    verdicts: Mapping[tuple[str, str], Verdicts]

    @classmethod
    def of(cls, shown: Iterable[Shown], runs: Iterable[Run]) -> "Claims":
        """The claims in the order of the sections; all runs have the same published
        figures.
        """
        verdicts: dict[tuple[str, str], Verdicts] = {}
        for run, section in (pair for sections in shown for pair in sections):
            for claim in section.claims:
                by_source = verdicts.setdefault((section.name, claim.text), {})
                by_source[run.name] = claim.verdict, claim.figures
                if claim.published is not None:
                    by_source[PUBLISHED] = claim.published, claim.published_figures
        return cls([run.name for run in runs], verdicts)

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns of a table: the runs, then the published results."""
        return *self.runs, PUBLISHED

    def __bool__(self) -> bool:
        return bool(self.verdicts)

    def table(self) -> TextTable:
        """The claims as a table of texts."""
        rows = []
        for (_, text), verdicts in self.verdicts.items():
            cells = {
                source: f"{MARKS[judged]} {judged}: {figures}"
                for source, (judged, figures) in verdicts.items()
            }
            rows.append((text, *(cells.get(source, "") for source in self.sources)))
        return TextTable(("claim", *self.sources), tuple(rows), len(self.runs) + 2)

    def html(self) -> str:
        """The claims as an HTML table, which becomes a list on narrow screens."""
        rows = []
        for (_, text), verdicts in self.verdicts.items():
            cells = {}
            for source, (judged, figures) in verdicts.items():
                mark = f'<span class="{CSS[judged]}">{MARKS[judged]} {judged}</span>'
                name = "published" if source == PUBLISHED else source
                lines = line_breaks(figures)
                cells[source] = f'<td data-of="{escape(name)}">{mark}<br>{lines}</td>'
            row = (cells.get(source, "<td></td>") for source in self.sources)
            rows.append(html.row(f"<td>{line_breaks(text)}</td>", *row))
        return html.table(html.heads(("claim", *self.sources)), rows, "claims")

    def count(self, source: str) -> Counter[Verdict]:
        """How often a run, or the published results, come to each verdict."""
        return Counter(
            verdicts[source][0]
            for verdicts in self.verdicts.values()
            if source in verdicts
        )

    def holding(self, source: str) -> str:
        """How many claims hold, such as "3 of 4"; empty if there are none."""
        counts = self.count(source)
        return f"{counts[Verdict.HOLDS]} of {counts.total()}" if counts else ""

    def tally(self) -> str:
        """How many claims each run supports, and how many the published results
        support.
        """
        parts = []
        for source in self.sources:
            holds, fails, untested = (self.count(source)[judged] for judged in Verdict)
            name = (
                source
                if source == PUBLISHED
                else f"results {'' if source.startswith('here') else 'on '}{source}"
            )
            rest = (
                f", contradict {fails} and cannot test {untested}"
                if untested
                else f" and contradict {fails}"
            )
            parts.append(f"the {name} support {holds}{rest}")
        return f"{count(len(self.verdicts), 'claim')}: {'; '.join(parts)}."
