"""The report of a study as files: text, CSV, LaTeX and one self-contained HTML page."""

import os
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from imprint import recipes
from imprint.core.files.atomic import write_outputs
from imprint.report import forms, html
from imprint.report.critical_difference import critical_difference, ranks_by_row
from imprint.report.forms import count, number
from imprint.report.tables import Breakdown, Tables
from imprint.stats import Comparison

MOST, MOST_BROKEN_DOWN = 500, 20  # methods on the page, and in the table of a data set or backbone; CSV has all


def write_report(
    folder: str | os.PathLike[str],
    tables: Tables,
    manifest: Mapping[str, Any],
    failures: Sequence[Mapping[str, Any]] = (),
) -> list[Path]:
    """Write the tables as `report.txt`, `.csv`, `.tex` and `.html`, pairs and breakdowns as CSV, and the diagram."""
    files = {
        "report.txt": (forms.as_text(tables) + forms.breakdowns_text(tables.breakdowns)).encode(),
        "report.csv": forms.as_csv(tables).encode(),
        "report.tex": forms.as_latex(tables).encode(),
        "report.html": page(tables, manifest, failures).encode(),
    }
    if tables.breakdowns:
        files["breakdowns.csv"] = forms.breakdowns_csv(tables.breakdowns).encode()
    if tables.comparison is not None:
        files["pairs.csv"] = forms.pairs_csv(tables.comparison).encode()
        files["ranks.svg"] = critical_difference(tables.comparison)
    return write_outputs(Path(folder), files)


def page(tables: Tables, manifest: Mapping[str, Any], failures: Sequence[Mapping[str, Any]] = ()) -> str:
    """The HTML page."""
    metric, best, scope = tables.metric.replace("_", " "), tables.lines[0], _scope(tables, manifest)
    counted = {"experiment": tables.experiments, "method": len(tables.lines), "instance": tables.instances}
    facts = [
        (f"{100 * best.mean:.2f} %", f"{'mean ' if tables.instances > 1 else ''}{metric} of {best.name}"),
        *(count(n, noun).split(" ") for noun, n in counted.items()),
    ]
    shown_facts = "".join(f"<li><b>{value}</b><span>{escape(what)}</span></li>" for value, what in facts)
    failed = "".join(
        f"<li>{escape(f['unit'])} ({count(f['experiments'], 'experiment')}): {escape(f['reason'])}</li>"
        for f in failures
    )
    libraries = ", ".join(f"{name} {version}" for name, version in manifest["libraries"].items())
    versions = f"imprint {manifest['imprint']}, Python {manifest['python']}, {libraries}."
    breakdowns = "".join(_breakdown(breakdown, metric) for breakdown in tables.breakdowns)
    return html.document(
        str(manifest["study"]["name"]),
        f"<p>{escape(scope)}</p>" if scope else "",
        f'<ul class="facts">{shown_facts}</ul>',
        html.section("Failures", f"<ul>{failed}</ul>") if failed else "",
        html.section("Methods", f"<p>{escape(' '.join(_explanation(tables, metric)))}</p>", _methods(tables, metric)),
        _diagram(tables.comparison) if tables.comparison is not None else "",
        f'<div class="two">{breakdowns}</div>' if breakdowns else "",
        f'<footer class="pale">{escape(versions)} The page needs no network.</footer>',
    )


def _scope(tables: Tables, manifest: Mapping[str, Any]) -> str:
    """The backbones, data sets, tasks and seeds of the study, what is not finished, and what all methods share."""
    expected, study = int(manifest["experiments"]), manifest["study"]
    ran = [(noun, study.get(noun.replace(" ", ""))) for noun in ("backbones", "data sets", "tasks", "seeds")]
    lists = "; ".join(f"{noun} {', '.join(map(str, values))}" for noun, values in ran if values)
    unfinished = f"{tables.experiments:,} of {count(expected, 'experiment')} are finished."
    sentences = [
        f"{lists[0].upper()}{lists[1:]}." if lists else "",
        unfinished if expected > tables.experiments else "",
        forms.shared_parts(tables),
    ]
    return " ".join(filter(None, sentences))


def _some_lack(tables: Tables) -> bool:
    """Whether some methods lack instances that others have."""
    return any(line.instances < tables.instances for line in tables.lines)


def _explanation(tables: Tables, metric: str) -> Iterator[str]:
    """What the columns of the first table are, and what is left out."""
    several = tables.instances > 1
    over = f"mean ± standard deviation over {tables.instances:,} instances" if several else "on one instance"
    yield f"{metric.capitalize()} in %, {over} (a backbone, a data set and a task)."
    if tables.experiments > sum(line.instances for line in tables.lines):
        yield "The score of an instance is the median over its seeds."
    among = "the methods that have all instances" if _some_lack(tables) else "the methods"
    yield f"Rank: the position among {among}, 1 being the best{', averaged over instances' if several else ''}."
    yield "Time: CPU time of one experiment; work that several experiments share is divided among them."
    if len(tables.lines) > MOST:
        yield f"The best {MOST} of {len(tables.lines):,} methods are shown."
    yield from filter(None, [forms.near_ties(tables)])


def _methods(tables: Tables, metric: str) -> str:
    incomplete = ["instances"] if _some_lack(tables) else []
    best = max((line.mean for line in tables.lines if line.instances == tables.instances), default=None)
    rows = []
    for line in tables.lines[:MOST]:
        components = f"<small>{escape(line.method)}</small>" if line.name in recipes.names() else ""
        css = " class=best" if line.instances == tables.instances and line.mean == best else ""
        spread = f" <small>± {number(100 * line.std)}</small>" if line.std == line.std else ""
        numbers = [f"<span{css}>{100 * line.mean:.2f}</span>{spread}", number(line.rank), _time(line.seconds)]
        numbers += [str(line.instances) for _ in incomplete]
        rows.append(html.row(html.row_head(line.name, components), *map(html.number, numbers)))
    return html.table(html.heads([tables.heading], [metric, "rank", "time", *incomplete]), rows, "whole")


def _time(seconds: float) -> str:
    """A time with two significant digits.

    >>> _time(0.1234), _time(0.0056), _time(3.21), _time(321.0)
    ('120 ms', '5.6 ms', '3.2 s', '320 s')
    """
    value, unit = (seconds, "s") if seconds >= 1 else (1000 * seconds, "ms")
    return f"{float(f'{value:.2g}'):g} {unit}"


def _diagram(comparison: Comparison) -> str:
    svg, order, rows = critical_difference(comparison).decode(), comparison.order, []
    for i, name in enumerate(order):
        pairs = [comparison.pair(name, other) if other != name else None for other in order]
        cells = (html.number(f"{p.adjusted:.2g}", p.significant) if p else "<td></td>" for p in pairs)
        rows.append(html.row(f'<th scope="row">{i + 1}. {html.breakable(name)}</th>', *cells))
    ranked = "ranked among themselves" if len(order) > 2 else "next to each other"
    pairs_note = (
        f"p-values of the Wilcoxon signed-rank test, Holm-adjusted for {count(len(comparison.pairs), 'pair')}. "
        "Significant differences are bold."
    )
    return html.section(
        "Critical-difference diagram",
        f"<p>The {len(order)} methods with the best average rank, {ranked}.</p>",
        html.wide_and_narrow(svg[svg.index("<svg") :], ranks_by_row(comparison).decode()),
    ) + html.section(
        "Pairwise comparisons",
        f"<p>{pairs_note}</p>",
        html.table(html.heads(["method"], [str(i + 1) for i in range(len(order))]), rows),
    )


def _breakdown(breakdown: Breakdown, metric: str) -> str:
    values = [(*row.values, row.mean) for row in breakdown.rows]
    best = [max((v for v in column if v == v), default=None) for column in zip(*values)]
    rows = []
    for row, scores in list(zip(breakdown.rows, values))[:MOST_BROKEN_DOWN]:
        cells = (html.number(number(100 * v), v == b) for v, b in zip(scores, best))
        rows.append(html.row(html.row_head(row.name), *cells, html.number(number(row.rank))))
    more = "" if len(values) <= MOST_BROKEN_DOWN else f" The best {MOST_BROKEN_DOWN} methods over all instances."
    note = f"{metric.capitalize()} in % for every {breakdown.across}; {count(breakdown.instances, 'instance')}.{more}"
    return html.section(
        f"{breakdown.kind.capitalize()}: {escape(breakdown.name)}",
        f'<p class="pale">{note}</p>',
        html.table(html.heads(["method"], [*breakdown.columns, "mean", "rank"]), rows),
    )
