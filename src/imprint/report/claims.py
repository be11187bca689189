"""Claims of one or several runs beside the published verdicts: as a table of texts, as HTML, as a tally."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from imprint.report.sections import Cells, Claim, Shown, Verdict
from imprint.report.style import scrolling

MARKS = {Verdict.HOLDS: "✓", Verdict.FAILS: "✗", Verdict.UNTESTABLE: "–"}
CSS = {Verdict.HOLDS: "holds", Verdict.FAILS: "fails", Verdict.UNTESTABLE: "none"}
PUBLISHED = "published results"
TIED = re.compile(r"(?<=\de)-(?=\d)|(?<=\d)-(?=nn)|(?<= )-(?=\d)")  # hyphens at which no line may end
LOOSE = re.compile(r"(?<=\w)[_/](?=\w)")  # within long names, behind which one may


class Judged(NamedTuple):
    """A verdict with its figures."""

    verdict: Verdict
    figures: str


class ClaimRow(NamedTuple):
    """A claim, the judgement of every run that has it, and that of the published results."""

    text: str
    found: dict[str, Judged]
    published: Judged | None


def rows(shown: Iterable[Shown]) -> list[ClaimRow]:
    """Every claim once, in the order of the sections."""
    found: dict[tuple[str, str], ClaimRow] = {}
    for own in shown:
        for run, section in own:
            for claim in section.claims:
                row = found.setdefault((section.name, claim.text), ClaimRow(claim.text, {}, _published(claim)))
                row.found[run] = Judged(claim.verdict, claim.figures)
    return list(found.values())


def _published(claim: Claim) -> Judged | None:
    return None if claim.published is None else Judged(claim.published, claim.published_figures)


def as_cells(found: Sequence[ClaimRow], runs: Sequence[str]) -> Cells:
    """A table of texts."""

    def cell(j: Judged | None) -> str:
        return "" if j is None else f"{MARKS[j.verdict]} {j.verdict}: {j.figures}"

    lines = tuple((r.text, *(cell(r.found.get(run)) for run in runs), cell(r.published)) for r in found)
    return Cells(("claim", *runs, PUBLISHED), lines, len(runs) + 2)


def as_html(found: Sequence[ClaimRow], runs: Sequence[str]) -> str:
    """The same as a table that becomes a list where there is no room."""

    def cell(of: str, j: Judged | None) -> str:
        if j is None:
            return "<td></td>"
        shown = f'<span class="{CSS[j.verdict]}">{MARKS[j.verdict]} {j.verdict}</span><br>{tied(j.figures)}'
        return f'<td data-of="{escape(of)}">{shown}</td>'

    lines = (
        f"<tr><td>{tied(r.text)}</td>"
        + "".join(cell(run, r.found.get(run)) for run in runs)
        + cell("published", r.published)
        + "</tr>"
        for r in found
    )
    head = "".join(f"<th>{escape(name)}</th>" for name in ("claim", *runs, PUBLISHED))
    table = f'<table class="claims"><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table>'
    return scrolling(table, "Claims")


def tied(text: str) -> str:
    """Text for HTML in which numbers such as 7.1e-15 stay on one line, and names such as a_b/c may not."""
    return LOOSE.sub(r"\g<0><wbr>", escape(TIED.sub("\N{NON-BREAKING HYPHEN}", text)))


def tally(found: Sequence[ClaimRow], runs: Sequence[str]) -> str:
    """How many claims are borne out by each run, and by the published results."""
    places = {run: run if run.startswith("here") else f"on {run}" for run in runs}
    parts = [f"the results {places[run]} {_count(r.found.get(run) for r in found)}" for run in runs]
    return f"Of {len(found)} claims {'; '.join(parts)}; the published results {_count(r.published for r in found)}."


def _count(judgements: Iterable[Judged | None]) -> str:
    counts = Counter(j.verdict for j in judgements if j is not None)
    untested = f" and cannot test {counts[Verdict.UNTESTABLE]}" if counts[Verdict.UNTESTABLE] else ""
    joint = "," if untested else " and"
    return f"bear out {counts[Verdict.HOLDS]}{joint} contradict {counts[Verdict.FAILS]}{untested}"
