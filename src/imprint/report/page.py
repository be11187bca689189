"""The report of a study as files: text, CSV, LaTeX and one HTML page that needs nothing else."""

import os
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from imprint.core.atomic import atomic_write
from imprint.core.errors import FileError
from imprint.report.critical_difference import critical_difference
from imprint.report.tables import Line, Tables, as_csv, as_latex, as_text
from imprint.stats import Comparison

MOST = 500  # methods on the page; the CSV file has all

PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>$title</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 72rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .875rem }
th, td { padding: .2rem .7rem; text-align: left; border-bottom: 1px solid #ddd; white-space: nowrap }
.n { text-align: right } .wide { overflow-x: auto } svg { max-width: 100%; height: auto } small { color: #666 }
</style></head><body>
<h1>$title</h1>
<p>$scope</p>
$failures
$diagram
<h2>Methods</h2>
<p>Mean and standard deviation over instances of the median over seeds, in percent; the average rank among methods that
have all instances; processor seconds a cell, shared work divided among those who share it.$more</p>
<div class="wide"><table><thead><tr>$head</tr></thead><tbody>
$rows
</tbody></table></div>
<p><small>$versions</small></p>
</body></html>
""")


def write_report(
    folder: str | os.PathLike[str],
    tables: Tables,
    manifest: Mapping[str, Any],
    failures: Sequence[Mapping[str, Any]] = (),
) -> list[Path]:
    """Write `report.txt`, `report.csv`, `report.tex`, `report.html` and the diagram into a folder."""
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise FileError(f"Cannot make the folder {place}: {e.strerror}.") from None
    files = {
        "report.txt": as_text(tables).encode(),
        "report.csv": as_csv(tables).encode(),
        "report.tex": as_latex(tables).encode(),
        "report.html": page(tables, manifest, failures).encode(),
    }
    if tables.comparison is not None:
        files["ranks.svg"] = critical_difference(tables.comparison)
    for name, content in files.items():
        with atomic_write(place / name) as f:
            f.write(content)
    return [place / name for name in files]


def page(tables: Tables, manifest: Mapping[str, Any], failures: Sequence[Mapping[str, Any]] = ()) -> str:
    """The HTML page."""
    left = len(tables.lines) - MOST
    expected = int(manifest["experiments"])
    scope = f"{tables.experiments:,} of {expected:,} experiments; {tables.instances} instances; "
    scope += f"{1e4 * tables.near_ties:.2g} of 10,000 decided rows have their two best scores within float rounding."
    return PAGE.substitute(
        title=escape(str(manifest["study"]["name"])),
        scope=escape(scope),
        failures=_failures(failures),
        diagram=_diagram(tables.comparison),
        more=f" The best {MOST} of {len(tables.lines):,} methods are shown." if left > 0 else "",
        head="".join(
            f"<th{css}>{escape(name)}</th>"
            for name, css in (
                *((part, "") for part in ("norm_pre", "generator", "norm_post", "norm_inf", "aggregator")),
                *((name, ' class="n"') for name in ("instances", tables.metric, "std", "rank", "seconds")),
            )
        ),
        rows="\n".join(map(_row, tables.lines[:MOST])),
        versions=escape(_versions(manifest)),
    )


def _row(line: Line) -> str:
    parts = "".join(f"<td>{escape(part)}</td>" for part in line.method.split(" / "))
    numbers = (
        str(line.instances),
        f"{100 * line.mean:.2f}",
        _number(100 * line.std, 2),
        _number(line.rank, 2),
        f"{line.seconds:.2g}",
    )
    cells = "".join(f'<td class="n">{n}</td>' for n in numbers)
    return f"<tr>{parts}{cells}</tr>"


def _number(value: float, digits: int) -> str:
    return "" if value != value else f"{value:.{digits}f}"


def _diagram(comparison: Comparison | None) -> str:
    if comparison is None:
        return ""
    svg = critical_difference(comparison).decode()
    note = f"The {len(comparison.names)} methods with the best average rank, ranked among themselves."
    return f"<h2>Ranks</h2><p>{note}</p>{svg[svg.index('<svg') :]}"


def _failures(failures: Sequence[Mapping[str, Any]]) -> str:
    if not failures:
        return ""
    items = "".join(f"<li>{escape(f['unit'])} ({f['cells']:,} cells): {escape(f['reason'])}</li>" for f in failures)
    return f"<h2>Failures</h2><ul>{items}</ul>"


def _versions(manifest: Mapping[str, Any]) -> str:
    libraries = ", ".join(f"{name} {version}" for name, version in manifest["libraries"].items())
    return f"imprint {manifest['imprint']}, Python {manifest['python']}, {libraries}."
