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
from imprint.report.tables import Breakdown, Tables, TextTable, number
from imprint.stats import Comparison

# methods in a text, in LaTeX, and in the table of a data set or backbone; CSV has all
MOST = 20
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
    files = {
        "report.txt": (as_text(tables) + breakdowns_text(tables.breakdowns)).encode(),
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
    share = f"{tables.near_ties:,} of {tables.decisions:,} predictions"
    return (
        f"{share} were near ties, equal up to float rounding."
        if tables.near_ties
        else ""
    )


def as_json(tables: Tables) -> dict[str, Any]:
    """Methods, pairs and breakdowns as JSON values; NaN becomes null."""
    values = {
        "methods": [asdict(line) for line in tables.lines],
        "pairs": (
            [pair._asdict() for pair in tables.comparison.pairs]
            if tables.comparison
            else []
        ),
        "breakdowns": [asdict(b) for b in tables.breakdowns],
    }
    plain: dict[str, Any] = json.loads(
        json.dumps(values), parse_constant=lambda name: None
    )
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
        numbers = (
            number(v, ".6g") for v in (line.mean, line.std, line.rank, line.seconds)
        )
        rows.append(
            (line.name, *line.method.split(" / "), str(line.instances), *numbers)
        )
    return TextTable(head, tuple(rows)).csv()


def pairs_csv(comparison: Comparison) -> str:
    """Every pair of the methods in the diagram, with its p-values."""
    rows = (
        (p.first, p.second, f"{p.p:.6g}", f"{p.adjusted:.6g}", f"{p.significant:d}")
        for p in comparison.pairs
    )
    return TextTable(
        ("first", "second", "p", "adjusted_p", "significant"), tuple(rows)
    ).csv()


def breakdowns_csv(breakdowns: Sequence[Breakdown]) -> str:
    """All breakdowns in one table, a line for every method and column; scores between 0
    and 1.
    """
    rows = (
        (b.kind, b.name, row.name, column, number(v, ".6g"))
        for b in breakdowns
        for row in b.rows
        for column, v in zip((*b.columns, "all"), (*row.values, row.mean))
    )
    return TextTable(("table", "of", "method", "column", "mean"), tuple(rows)).csv()


def best_methods(tables: Tables, metric: str) -> TextTable:
    """The best methods with mean, standard deviation and rank, scores in percent."""
    rows = []
    for line in tables.lines[:MOST]:
        spread = "" if line.std != line.std else f" ± {100 * line.std:.2f}"
        rows.append((line.name, f"{100 * line.mean:.2f}{spread}", number(line.rank)))
    return TextTable((tables.heading, metric, "rank"), tuple(rows))


def as_latex(tables: Tables) -> str:
    """The best methods as a LaTeX table."""
    comment = f"% {tables.common}\n" if tables.common else ""
    return comment + best_methods(tables, f"{tables.metric} (%)").latex()


def as_text(tables: Tables) -> str:
    """The best methods for a terminal, and whether the first differs significantly from
    the others.
    """
    scope = (
        f"{count(tables.experiments, 'experiment')},"
        f" {count(tables.instances, 'instance')}, medians over seeds, "
    )
    notes = [f"{scope}percent.", near_ties(tables), tables.common]
    lines = [*filter(None, notes), "", *best_methods(tables, tables.metric).text()]
    if len(tables.lines) > MOST:
        lines.append(f"... and {count(len(tables.lines) - MOST, 'more method')}")
    if tables.comparison is not None:
        best, *others = tables.comparison.order
        pairs = [(name, tables.comparison.pair(best, name)) for name in others]
        rows = tuple(
            (name, f"{p.adjusted:.2g}", "differs" if p.significant else "")
            for name, p in pairs
        )
        lines += [
            "",
            f"Against {best} (Wilcoxon signed-rank test, Holm-adjusted p-values):",
        ]
        lines += TextTable(("", "p", ""), rows).text()
    return "\n".join([*lines, ""])


def breakdowns_text(breakdowns: Sequence[Breakdown]) -> str:
    """The breakdowns for a terminal, in percent."""
    lines: list[str] = []
    for b in breakdowns:
        rows = (
            (r.name, *(number(100 * v) for v in (*r.values, r.mean)), number(r.rank))
            for r in b.rows[:MOST]
        )
        lines += ["", f"{b.kind} {b.name}, {count(b.instances, 'instance')}"]
        lines += TextTable(("", *b.columns, "mean", "rank"), tuple(rows)).text()
    return "\n".join([*lines, ""])


def page(
    tables: Tables,
    manifest: Mapping[str, Any],
    failures: Sequence[Mapping[str, Any]] = (),
) -> str:
    """The HTML page."""
    metric, best, scope = (
        tables.metric.replace("_", " "),
        tables.lines[0],
        _scope(tables, manifest),
    )
    counted = {
        "experiment": tables.experiments,
        "method": len(tables.lines),
        "instance": tables.instances,
    }
    facts = [
        (
            f"{100 * best.mean:.2f} %",
            f"{'mean ' if tables.instances > 1 else ''}{metric} of {best.name}",
        ),
        *(count(n, noun).split(" ") for noun, n in counted.items()),
    ]
    shown_facts = "".join(
        f"<li><b>{value}</b><span>{escape(what)}</span></li>" for value, what in facts
    )
    failed = "".join(
        f"<li>{escape(f['unit'])} ({count(f['experiments'], 'experiment')}):"
        f" {escape(f['reason'])}</li>"
        for f in failures
    )
    libraries = ", ".join(
        f"{name} {version}" for name, version in manifest["libraries"].items()
    )
    versions = (
        f"imprint {manifest['imprint']}, Python {manifest['python']}, {libraries}."
    )
    breakdowns = "".join(
        _breakdown(breakdown, metric) for breakdown in tables.breakdowns
    )
    return html.document(
        str(manifest["study"]["name"]),
        f"<p>{scope}</p>" if scope else "",
        f'<ul class="facts">{shown_facts}</ul>',
        html.section("Failures", f"<ul>{failed}</ul>") if failed else "",
        _methods(tables, metric),
        _diagram(tables.comparison) if tables.comparison is not None else "",
        f'<div class="two">{breakdowns}</div>' if breakdowns else "",
        f'<footer class="pale">{escape(versions)} The page needs no network.</footer>',
    )


def _scope(tables: Tables, manifest: Mapping[str, Any]) -> str:
    """The backbones, data sets, tasks and seeds of the study, what is not finished, and
    what all methods share.
    """
    expected, study = int(manifest["experiments"]), manifest["study"]
    ran = [
        (noun, study.get(noun.replace(" ", "")))
        for noun in ("backbones", "data sets", "tasks", "seeds")
    ]
    lists = "; ".join(
        f"{noun} {', '.join(map(str, values))}" for noun, values in ran if values
    )
    unfinished = (
        f"{tables.experiments:,} of {count(expected, 'experiment')} are finished."
    )
    return _join(
        f"{lists[0].upper()}{lists[1:]}." if lists else "",
        unfinished if expected > tables.experiments else "",
        tables.common,
    )


def _join(*sentences: str) -> str:
    """The sentences that are not empty, as HTML."""
    return escape(" ".join(filter(None, sentences)))


def _methods(tables: Tables, metric: str) -> str:
    """What the columns are, what is left out, and the table of the best methods."""
    several, lines = tables.instances > 1, tables.lines
    complete = [line.mean for line in lines if line.instances == tables.instances]
    best, incomplete = (
        max(complete, default=None),
        ["instances"] if len(complete) < len(lines) else [],
    )
    over = (
        f"mean ± standard deviation over {tables.instances:,} instances"
        if several
        else "on one instance"
    )
    among = "the methods that have all instances" if incomplete else "the methods"
    seeds = tables.experiments > sum(line.instances for line in lines)
    text = _join(
        f"{metric.capitalize()} in %, {over} (a backbone, a data set and a task).",
        "The score of an instance is the median over its seeds." if seeds else "",
        f"Rank: the position among {among}, 1 being the"
        f" best{', averaged over instances' if several else ''}.",
        "Time: CPU time of one experiment; work that several experiments share is"
        " divided among them.",
        (
            f"The best {MOST_ON_PAGE} of {len(lines):,} methods are shown."
            if len(lines) > MOST_ON_PAGE
            else ""
        ),
        near_ties(tables),
    )
    rows = []
    for line in lines[:MOST_ON_PAGE]:
        components = (
            f"<small>{escape(line.method)}</small>"
            if line.name in recipes.names()
            else ""
        )
        css = (
            " class=best"
            if line.instances == tables.instances and line.mean == best
            else ""
        )
        spread = (
            f" <small>± {number(100 * line.std)}</small>"
            if line.std == line.std
            else ""
        )
        numbers = [
            f"<span{css}>{100 * line.mean:.2f}</span>{spread}",
            number(line.rank),
            _time(line.seconds),
        ]
        numbers += [str(line.instances) for _ in incomplete]
        rows.append(
            html.row(html.row_head(line.name, components), *map(html.number, numbers))
        )
    heads = html.heads([tables.heading], [metric, "rank", "time", *incomplete])
    return html.section("Methods", f"<p>{text}</p>", html.table(heads, rows, "whole"))


def _time(seconds: float) -> str:
    """A time with two significant digits."""
    value, unit = (seconds, "s") if seconds >= 1 else (1000 * seconds, "ms")
    return f"{float(f'{value:.2g}'):g} {unit}"


def _diagram(comparison: Comparison) -> str:
    order, rows = comparison.order, []
    for i, name in enumerate(order):
        pairs = [
            comparison.pair(name, other) if other != name else None for other in order
        ]
        cells = (
            html.number(f"{p.adjusted:.2g}", p.significant) if p else "<td></td>"
            for p in pairs
        )
        rows.append(
            html.row(f'<th scope="row">{i + 1}. {html.breakable(name)}</th>', *cells)
        )
    ranked = "ranked among themselves" if len(order) > 2 else "next to each other"
    test = (
        "Wilcoxon signed-rank test, Holm-adjusted for"
        f" {count(len(comparison.pairs), 'pair')}"
    )
    return html.section(
        "Critical-difference diagram",
        f"<p>The {len(order)} methods with the best average rank, {ranked}.</p>",
        html.figure(critical_difference(comparison).decode()),
    ) + html.section(
        "Pairwise comparisons",
        f"<p>p-values of the {test}. Significant differences are bold.</p>",
        html.table(
            html.heads(["method"], [str(i + 1) for i in range(len(order))]), rows
        ),
    )


def _breakdown(breakdown: Breakdown, metric: str) -> str:
    values = [(*row.values, row.mean) for row in breakdown.rows]
    best = [max((v for v in column if v == v), default=None) for column in zip(*values)]
    rows = []
    for row, scores in list(zip(breakdown.rows, values))[:MOST]:
        cells = (html.number(number(100 * v), v == b) for v, b in zip(scores, best))
        rows.append(
            html.row(html.row_head(row.name), *cells, html.number(number(row.rank)))
        )
    more = (
        "" if len(values) <= MOST else f" The best {MOST} methods over all instances."
    )
    note = (
        f"{metric.capitalize()} in % for every {breakdown.across};"
        f" {count(breakdown.instances, 'instance')}.{more}"
    )
    return html.section(
        f"{breakdown.kind.capitalize()}: {escape(breakdown.name)}",
        f'<p class="pale">{note}</p>',
        html.table(html.heads(["method"], [*breakdown.columns, "mean", "rank"]), rows),
    )
