"""The report of a study as files: text, CSV, LaTeX and one HTML page that needs nothing else."""

import os
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from imprint import recipes
from imprint.core.files.notes import write_outputs
from imprint.report import forms
from imprint.report.breakdown import Breakdown
from imprint.report.critical_difference import critical_difference
from imprint.report.forms import count, number
from imprint.report.row_diagram import ranks_by_row
from imprint.report.style import STYLE
from imprint.report.tables import MethodLine, Tables
from imprint.stats import Comparison

PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>$title</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>$style</style></head><body><main>
<h1>$title</h1>
$scope
<ul class="facts">$facts</ul>
$failures
<section>
<h2>Methods</h2>
<p>$explained</p>
<div class="wide"><table class="whole"><thead><tr>$head</tr></thead><tbody>
$rows
</tbody></table></div>
</section>
$diagram
$breakdowns
<footer class="pale">$versions The page needs no network.</footer>
</main></body></html>
""")

DIAGRAM = Template("""<section>
<h2>Which differences are more than chance?</h2>
<p>$note</p>
<figure class="ranks"><div class="on-wide">$wide</div><div class="on-narrow">$narrow</div></figure>
</section>
<section>
<h2>Every pair</h2>
<p>p-values of Wilcoxon's signed-rank test, adjusted by Holm for $count. Where two methods differ significantly, the
value is bold.</p>
<div class="wide"><table><thead><tr><th></th>$head</tr></thead><tbody>
$rows
</tbody></table></div>
</section>""")


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
    return PAGE.substitute(
        title=escape(str(manifest["study"]["name"])),
        style=STYLE,
        scope=_scope(tables, manifest),
        facts=_facts(tables),
        failures=_failures(failures),
        explained=escape(" ".join(_explained(tables))),
        head=_heads([tables.what], [_metric(tables), "rank", "time", *(["instances"] if _some_lack(tables) else [])]),
        rows="\n".join(_row(line, tables) for line in tables.lines[:MOST]),
        diagram=_diagram(tables.comparison),
        breakdowns=_breakdowns(tables),
        versions=escape(_versions(manifest)),
    )


def _metric(tables: Tables) -> str:
    return tables.metric.replace("_", " ")


def _scope(tables: Tables, manifest: Mapping[str, Any]) -> str:
    """What was run on what, what is not finished, and what methods have in common."""
    expected, study = int(manifest["experiments"]), manifest["study"]
    ran = [(noun, study.get(noun.replace(" ", ""))) for noun in ("backbones", "data sets", "tasks", "seeds")]
    lists = "; ".join(f"{noun} {', '.join(map(str, values))}" for noun, values in ran if values)
    unfinished = f"{tables.experiments:,} of {count(expected, 'experiment')} are finished."
    said = [
        f"{lists[0].upper()}{lists[1:]}." if lists else "",
        unfinished if expected > tables.experiments else "",
        forms.shared_parts(tables),
    ]
    return f"<p>{escape(' '.join(filter(None, said)))}</p>" if any(said) else ""


def _explained(tables: Tables) -> Iterator[str]:
    """What the columns of the first table are, and what is left out."""
    several = tables.instances > 1
    over = f"mean ± standard deviation over {tables.instances:,} instances" if several else "on one instance"
    yield f"{_metric(tables).capitalize()} in %, {over} (a backbone, a data set and a task)."
    if tables.experiments > sum(line.instances for line in tables.lines):
        yield "An instance counts with the median over its seeds."
    among = "the methods that have all instances" if _some_lack(tables) else "the methods"
    yield f"Rank: the place among {among}, 1 being the best{', averaged over instances' if several else ''}."
    yield "Time: of a processor, for one experiment; work that several share is divided among them."
    if len(tables.lines) > MOST:
        yield f"The best {MOST} of {len(tables.lines):,} methods are shown."
    yield from filter(None, [forms.near_ties(tables)])


def _facts(tables: Tables) -> str:
    best, mean = tables.lines[0], "mean " if tables.instances > 1 else ""
    facts = (
        (f"{100 * best.mean:.2f} %", f"{mean}{_metric(tables)} of {best.name}"),
        (f"{tables.experiments:,}", "experiment" if tables.experiments == 1 else "experiments"),
        (f"{len(tables.lines):,}", "method" if len(tables.lines) == 1 else "methods"),
        (f"{tables.instances:,}", "instance" if tables.instances == 1 else "instances"),
    )
    return "".join(f"<li><b>{value}</b><span>{escape(what)}</span></li>" for value, what in facts)


def _heads(texts: Sequence[str], numbers: Sequence[str]) -> str:
    cells = [*((t, "") for t in texts), *((n, ' class="n"') for n in numbers)]
    return "".join(f"<th{css}>{_breakable(text)}</th>" for text, css in cells)


def _breakable(name: str) -> str:
    """A name that may go on in the next line after an underscore."""
    return escape(name).replace("_", "_<wbr>")


def _some_lack(tables: Tables) -> bool:
    """Whether some methods lack instances that others have."""
    return any(line.instances < tables.instances for line in tables.lines)


def _row(line: MethodLine, tables: Tables) -> str:
    parts = f"<small>{escape(line.method)}</small>" if line.name in recipes.names() else ""
    spread = f" <small>± {number(100 * line.std)}</small>" if line.std == line.std else ""
    best = line.instances == tables.instances and line.mean == max(
        one.mean for one in tables.lines if one.instances == tables.instances
    )
    numbers = [number(line.rank), _time(line.seconds), *([f"{line.instances}"] if _some_lack(tables) else [])]
    cells = "".join(f'<td class="n">{n}</td>' for n in numbers)
    mean = f'<td class="n"><span{" class=best" if best else ""}>{100 * line.mean:.2f}</span>{spread}</td>'
    return f'<tr><th scope="row">{_breakable(line.name)}{parts}</th>{mean}{cells}</tr>'


def _time(seconds: float) -> str:
    """A time with two digits that count.

    >>> _time(0.1234), _time(0.0056), _time(3.21), _time(321.0)
    ('120 ms', '5.6 ms', '3.2 s', '320 s')
    """
    value, unit = (seconds, "s") if seconds >= 1 else (1000 * seconds, "ms")
    return f"{float(f'{value:.2g}'):g} {unit}"


def _diagram(comparison: Comparison | None) -> str:
    if comparison is None:
        return ""
    svg, order = critical_difference(comparison).decode(), comparison.order
    rows = []
    for i, name in enumerate(order):
        pairs = [comparison.pair(name, other) if other != name else None for other in order]
        cells = (
            f'<td class="n{" best" if p.significant else ""}">{forms.p_value(p.adjusted)}</td>' if p else "<td></td>"
            for p in pairs
        )
        rows.append(f'<tr><th scope="row">{i + 1}. {_breakable(name)}</th>{"".join(cells)}</tr>')
    ranked = "ranked among themselves" if len(order) > 2 else "beside each other"
    return DIAGRAM.substitute(
        note=f"The {len(order)} methods with the best average rank, {ranked}.",
        wide=svg[svg.index("<svg") :],
        narrow=ranks_by_row(comparison).decode(),
        count=count(len(comparison.pairs), "pair"),
        head="".join(f'<th class="n">{i + 1}</th>' for i in range(len(order))),
        rows="\n".join(rows),
    )


def _breakdowns(tables: Tables) -> str:
    sections = "".join(_breakdown(found, _metric(tables)) for found in tables.breakdowns)
    return f'<div class="two">{sections}</div>' if sections else ""


def _breakdown(found: Breakdown, metric: str) -> str:
    head = _heads([""], [*found.columns, "mean", "rank"])
    shown = [(*row.values, row.mean) for row in found.rows]
    best = [max((v for v in column if v == v), default=None) for column in zip(*shown)]
    rows = []
    for row, values in list(zip(found.rows, shown))[:MOST_BROKEN_DOWN]:
        cells = (f'<td class="n{" best" if v == b else ""}">{number(100 * v)}</td>' for v, b in zip(values, best))
        rank = f'<td class="n">{number(row.rank)}</td>'
        rows.append(f'<tr><th scope="row">{_breakable(row.name)}</th>{"".join(cells)}{rank}</tr>')
    more = "" if len(shown) <= MOST_BROKEN_DOWN else f" The best {MOST_BROKEN_DOWN} methods over all instances."
    note = f"{metric.capitalize()} in % for every {found.across}; {count(found.instances, 'instance')}.{more}"
    body = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    title = f"{found.kind.capitalize()}: {escape(found.name)}"
    return f'<section><h2>{title}</h2><p class="pale">{note}</p><div class="wide"><table>{body}</table></div></section>'


def _failures(failures: Sequence[Mapping[str, Any]]) -> str:
    if not failures:
        return ""
    items = "".join(
        f"<li>{escape(f['unit'])} ({count(f['experiments'], 'experiment')}): {escape(f['reason'])}</li>"
        for f in failures
    )
    return f"<section><h2>Failures</h2><ul>{items}</ul></section>"


def _versions(manifest: Mapping[str, Any]) -> str:
    libraries = ", ".join(f"{name} {version}" for name, version in manifest["libraries"].items())
    return f"imprint {manifest['imprint']}, Python {manifest['python']}, {libraries}."
