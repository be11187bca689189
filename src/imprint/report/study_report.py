"""The report of a study: text, CSV, LaTeX, JSON values and one self-contained HTML
page.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any

from imprint import recipes
from imprint.core.component import PARTS
from imprint.core.errors import count
from imprint.core.files.atomic import write_outputs
from imprint.report import html
from imprint.report.critical_difference import critical_difference
from imprint.report.tables import Breakdown, BreakdownRow, MethodLine, Tables
from imprint.report.text_table import TextTable, number
from imprint.stats import Comparison
from imprint.study.failures import examples

# Methods in a text, in LaTeX, and in the table of a data set or backbone; CSV has all.
# A matter of taste: so many fit on a screen.
MOST = 20

# Beyond, a browser takes seconds to lay out the table. A matter of taste too.
MOST_ON_PAGE = 500


def write_report(
    folder: str | os.PathLike[str],
    tables: Tables,
    manifest: Mapping[str, Any],
    failures: Sequence[Mapping[str, Any]] = (),
) -> list[Path]:
    """Write the tables as `report.txt`, `.csv`, `.tex` and `.html`, pairs and
    breakdowns as CSV, and the diagram.
    """
    text = as_text(tables) + breakdowns_text(tables.breakdowns)
    files = {
        "report.txt": text.encode(),
        "report.csv": as_csv(tables).encode(),
        "report.tex": as_latex(tables).encode(),
        "report.html": page(tables, manifest, failures).encode(),
    }
    if tables.breakdowns:
        files["breakdowns.csv"] = breakdowns_csv(tables.breakdowns).encode()
    if tables.comparison is not None:
        files["pairs.csv"] = pairs_csv(tables.comparison).encode()
        files["ranks.svg"] = critical_difference(tables.comparison)
    return write_outputs(Path(folder), files)


def near_ties(tables: Tables) -> str:
    """How many predictions depend on rounding; empty if none do."""
    if not tables.near_ties:
        return ""
    share = f"{tables.near_ties:,} of {tables.decisions:,} predictions"
    return f"{share} were near ties, equal up to float rounding."


def as_json(tables: Tables) -> dict[str, Any]:
    """Methods, pairs and breakdowns as JSON values; NaN becomes null."""
    pairs = tables.comparison.pairs if tables.comparison else ()
    values = {
        "methods": [asdict(line) for line in tables.lines],
        "pairs": [pair._asdict() for pair in pairs],
        "breakdowns": [asdict(breakdown) for breakdown in tables.breakdowns],
    }
    # JSON has no NaN, but Python's encoder writes it as a constant.
    text = json.dumps(values)
    plain: dict[str, Any] = json.loads(text, parse_constant=lambda name: None)
    return plain


def as_csv(tables: Tables) -> str:
    """All methods, with scores between 0 and 1."""
    head = (
        "name",
        *PARTS,
        "instances",
        f"mean_{tables.metric}",
        "std",
        "average_rank",
        "seconds",
    )
    rows = []
    for line in tables.lines:
        parts = line.method.split(" / ")
        values = (line.mean, line.std, line.rank, line.seconds)
        numbers = [number(value, ".6g") for value in values]
        rows.append((line.name, *parts, str(line.instances), *numbers))
    return TextTable(head, tuple(rows)).csv()


def pairs_csv(comparison: Comparison) -> str:
    """Every pair of the methods in the diagram, with its p-values."""
    head = ("first", "second", "p", "adjusted_p", "significant")
    rows = []
    for pair in comparison.pairs:
        numbers = (f"{pair.p:.6g}", f"{pair.adjusted:.6g}", f"{pair.significant:d}")
        rows.append((pair.first, pair.second, *numbers))
    return TextTable(head, tuple(rows)).csv()


def breakdowns_csv(breakdowns: Sequence[Breakdown]) -> str:
    """All breakdowns in one table, a line for every method and column; scores between 0
    and 1.
    """
    head = ("table", "of", "method", "column", "mean")
    rows = []
    for breakdown in breakdowns:
        columns = (*breakdown.columns, "all")
        for row in breakdown.rows:
            for column, value in zip(columns, (*row.values, row.mean)):
                mean = number(value, ".6g")
                rows.append((breakdown.kind, breakdown.name, row.name, column, mean))
    return TextTable(head, tuple(rows)).csv()


def best_methods(tables: Tables, metric: str) -> TextTable:
    """The best methods with mean, standard deviation and rank, scores in percent."""
    rows = []
    for line in tables.lines[:MOST]:
        mean = f"{100 * line.mean:.2f}"
        if _is_number(line.std):
            mean += f" ± {100 * line.std:.2f}"
        rows.append((line.name, mean, number(line.rank)))
    return TextTable((tables.heading, metric, "rank"), tuple(rows))


def _is_number(value: float) -> bool:
    """Whether a value is not NaN."""
    return value == value


def as_latex(tables: Tables) -> str:
    """The best methods as a LaTeX table."""
    comment = f"% {tables.common}\n" if tables.common else ""
    return comment + best_methods(tables, f"{tables.metric} (%)").latex()


def as_text(tables: Tables) -> str:
    """The best methods for a terminal, and whether the first differs significantly from
    the others.
    """
    experiments = count(tables.experiments, "experiment")
    instances = count(tables.instances, "instance")
    scope = f"{experiments}, {instances}, medians over seeds, percent."
    notes = filter(None, [scope, near_ties(tables), tables.common])
    lines = [*notes, "", *best_methods(tables, tables.metric).text()]
    if len(tables.lines) > MOST:
        lines.append(f"... and {count(len(tables.lines) - MOST, 'more method')}")
    if tables.comparison is not None:
        lines += ["", *_against_best(tables.comparison)]
    return "\n".join([*lines, ""])


def _against_best(comparison: Comparison) -> list[str]:
    """Lines on whether the best method differs from each of the others."""
    best, *others = comparison.order
    rows = []
    for name in others:
        pair = comparison.pair(best, name)
        verdict = "differs" if pair.significant else ""
        rows.append((name, f"{pair.adjusted:.2g}", verdict))
    heading = f"Against {best} (Wilcoxon signed-rank test, Holm-adjusted p-values):"
    return [heading, *TextTable(("", "p", ""), tuple(rows)).text()]


def breakdowns_text(breakdowns: Sequence[Breakdown]) -> str:
    """The breakdowns for a terminal, in percent."""
    lines: list[str] = []
    for breakdown in breakdowns:
        rows = []
        for row in breakdown.rows[:MOST]:
            values = [number(100 * value) for value in (*row.values, row.mean)]
            rows.append((row.name, *values, number(row.rank)))
        instances = count(breakdown.instances, "instance")
        lines += ["", f"{breakdown.kind} {breakdown.name}, {instances}"]
        head = ("", *breakdown.columns, "mean", "rank")
        lines += TextTable(head, tuple(rows)).text()
    return "\n".join([*lines, ""])


def page(
    tables: Tables,
    manifest: Mapping[str, Any],
    failures: Sequence[Mapping[str, Any]] = (),
) -> str:
    """The HTML page."""
    metric = tables.metric.replace("_", " ")
    scope = _scope(tables, manifest)
    breakdowns = "".join(_breakdown(b, metric) for b in tables.breakdowns)
    diagram = _diagram(tables.comparison) if tables.comparison is not None else ""
    return html.document(
        str(manifest["study"]["name"]),
        f"<p>{scope}</p>" if scope else "",
        _facts(tables, metric),
        _failures(failures),
        _methods(tables, metric),
        diagram,
        f'<div class="two">{breakdowns}</div>' if breakdowns else "",
        _versions(manifest),
    )


def _facts(tables: Tables, metric: str) -> str:
    """The most important numbers: the best mean, and how much was compared."""
    best = tables.lines[0]
    mean = "mean " if tables.instances > 1 else ""
    facts = [(f"{100 * best.mean:.2f} %", f"{mean}{metric} of {best.name}")]
    counted = {
        "experiment": tables.experiments,
        "method": len(tables.lines),
        "instance": tables.instances,
    }
    for noun, number_of in counted.items():
        value, word = count(number_of, noun).split(" ")
        facts.append((value, word))
    items = [
        f"<li><b>{value}</b><span>{escape(what)}</span></li>" for value, what in facts
    ]
    return f'<ul class="facts">{"".join(items)}</ul>'


def _failures(failures: Sequence[Mapping[str, Any]]) -> str:
    """The experiments that failed, with their reasons; empty if none did."""
    if not failures:
        return ""
    items = []
    for failure in failures:
        unit = escape(failure["unit"])
        experiments = count(failure["experiments"], "experiment")
        if failure["failed"]:
            experiments += f": {escape(examples(failure['failed']))}"
        items.append(f"<li>{unit} ({experiments}): {escape(failure['reason'])}</li>")
    return html.section("Failures", f"<ul>{''.join(items)}</ul>")


def _versions(manifest: Mapping[str, Any]) -> str:
    """The versions with which the study ran."""
    libraries = [f"{name} {version}" for name, version in manifest["libraries"].items()]
    versions = ", ".join(
        [f"imprint {manifest['imprint']}", f"Python {manifest['python']}", *libraries]
    )
    return (
        f'<footer class="pale">{escape(versions)}. The page needs no network.</footer>'
    )


def _scope(tables: Tables, manifest: Mapping[str, Any]) -> str:
    """The backbones, data sets, tasks and seeds of the study, what is not finished, and
    what all methods share.
    """
    study = manifest["study"]
    lists = []
    for noun in ("backbones", "data sets", "tasks", "seeds"):
        values = study.get(noun.replace(" ", ""))
        if values:
            lists.append(f"{noun} {', '.join(map(str, values))}")
    text = "; ".join(lists)
    ran = f"{text[0].upper()}{text[1:]}." if text else ""
    unfinished = ""
    expected = int(manifest["experiments"])
    if expected > tables.experiments:
        experiments = count(expected, "experiment")
        unfinished = f"{tables.experiments:,} of {experiments} are finished."
    return _join(ran, unfinished, tables.common)


def _join(*sentences: str) -> str:
    """The sentences that are not empty, as HTML."""
    return escape(" ".join(filter(None, sentences)))


def _methods(tables: Tables, metric: str) -> str:
    """What the columns are, what is left out, and the table of the best methods."""
    complete = [
        line.mean for line in tables.lines if line.instances == tables.instances
    ]
    has_incomplete = len(complete) < len(tables.lines)
    best = max(complete, default=None)
    rows = []
    for line in tables.lines[:MOST_ON_PAGE]:
        # A method that lacks instances may lack the hardest.
        is_best = line.instances == tables.instances and line.mean == best
        cells = _method_cells(line, is_best)
        if has_incomplete:
            cells.append(str(line.instances))
        head = html.row_head(line.name, _components(line))
        rows.append(html.row(head, *map(html.number, cells)))
    columns = [metric, "rank", "time"]
    if has_incomplete:
        columns.append("instances")
    heads = html.heads([tables.heading], columns)
    text = _about_methods(tables, metric, has_incomplete)
    return html.section("Methods", f"<p>{text}</p>", html.table(heads, rows, "whole"))


def _about_methods(
    tables: Tables,
    metric: str,
    has_incomplete: bool,
) -> str:
    """What the columns of the table of methods are, and what is left out."""
    lines = tables.lines
    over = "on one instance"
    averaged = ""
    if tables.instances > 1:
        over = f"mean ± standard deviation over {tables.instances:,} instances"
        averaged = ", averaged over instances"
    among = "the methods"
    if has_incomplete:
        among = "the methods that have all instances"
    seeds = ""
    if tables.experiments > sum(line.instances for line in lines):
        seeds = "The score of an instance is the median over its seeds."
    omitted = ""
    if len(lines) > MOST_ON_PAGE:
        omitted = f"The best {MOST_ON_PAGE} of {len(lines):,} methods are shown."
    return _join(
        f"{metric.capitalize()} in %, {over} (a backbone, a data set and a task).",
        seeds,
        f"Rank: the position among {among}, 1 being the best{averaged}.",
        "Time: CPU time of one experiment; work that several experiments share is"
        " divided among them.",
        omitted,
        near_ties(tables),
    )


def _components(line: MethodLine) -> str:
    """The components of a method that is named by its recipe."""
    if line.name not in recipes.names():
        return ""
    return f"<small>{escape(line.method)}</small>"


def _method_cells(line: MethodLine, is_best: bool) -> list[str]:
    """The mean, the rank and the time of a method."""
    css = " class=best" if is_best else ""
    mean = f"<span{css}>{100 * line.mean:.2f}</span>"
    if _is_number(line.std):
        mean += f" <small>± {number(100 * line.std)}</small>"
    return [mean, number(line.rank), _time(line.seconds)]


def _time(seconds: float) -> str:
    """A time with two significant digits."""
    value, unit = (seconds, "s") if seconds >= 1 else (1000 * seconds, "ms")
    rounded = float(f"{value:.2g}")
    return f"{rounded:g} {unit}"


def _diagram(comparison: Comparison) -> str:
    """The diagram of the best methods, and the p-values of their pairs."""
    order = comparison.order
    rows = []
    for i, name in enumerate(order, start=1):
        cells = [_p_value(comparison, name, other) for other in order]
        head = f'<th scope="row">{i}. {html.breakable(name)}</th>'
        rows.append(html.row(head, *cells))
    ranked = "ranked among themselves" if len(order) > 2 else "next to each other"
    pairs = count(len(comparison.pairs), "pair")
    numbers = [str(i + 1) for i in range(len(order))]
    diagram = html.section(
        "Critical-difference diagram",
        f"<p>The {len(order)} methods with the best average rank, {ranked}.</p>",
        html.figure(critical_difference(comparison).decode()),
    )
    table = html.section(
        "Pairwise comparisons",
        "<p>p-values of the Wilcoxon signed-rank test, Holm-adjusted for"
        f" {pairs}. Significant differences are bold.</p>",
        html.table(html.heads(["method"], numbers), rows),
    )
    return diagram + table


def _p_value(
    comparison: Comparison,
    name: str,
    other: str,
) -> str:
    """A cell with the p-value of two methods; empty for a method and itself."""
    if name == other:
        return "<td></td>"
    pair = comparison.pair(name, other)
    return html.number(f"{pair.adjusted:.2g}", pair.significant)


def _breakdown(breakdown: Breakdown, metric: str) -> str:
    """The table of one data set or one backbone."""
    shown = breakdown.rows[:MOST]
    # The best of all methods, also of those that are not shown.
    values = [(*row.values, row.mean) for row in breakdown.rows]
    best = [max(filter(_is_number, column), default=None) for column in zip(*values)]
    rows = [_breakdown_row(row, best) for row in shown]
    more = ""
    if len(breakdown.rows) > MOST:
        more = f" The best {MOST} methods over all instances."
    instances = count(breakdown.instances, "instance")
    note = f"{metric.capitalize()} in % for every {breakdown.across}; {instances}."
    heads = html.heads(["method"], [*breakdown.columns, "mean", "rank"])
    return html.section(
        f"{breakdown.kind.capitalize()}: {escape(breakdown.name)}",
        f'<p class="pale">{note}{more}</p>',
        html.table(heads, rows),
    )


def _breakdown_row(
    row: BreakdownRow,
    best: Sequence[float | None],
) -> str:
    """The row of a method, with the best value of each column highlighted."""
    cells = []
    for value, highest in zip((*row.values, row.mean), best):
        cells.append(html.number(number(100 * value), value == highest))
    rank = html.number(number(row.rank))
    return html.row(html.row_head(row.name), *cells, rank)
