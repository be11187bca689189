"""The tables of a study as text, CSV, LaTeX and JSON values."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from imprint.core.component import PARTS
from imprint.report.tables import Breakdown, Tables
from imprint.report.text_table import TextTable
from imprint.stats import Comparison

MOST = 20  # methods in a text or in LaTeX


def count(n: int, noun: str) -> str:
    """A number and its noun.

    >>> count(1, "instance"), count(1200, "experiment")
    ('1 instance', '1,200 experiments')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def near_ties(tables: Tables) -> str:
    """How many predictions depend on rounding; empty if none do."""
    share = f"{tables.near_ties:,} of {tables.decisions:,} predictions"
    return f"{share} were near ties, equal up to float rounding." if tables.near_ties else ""


def shared_parts(tables: Tables) -> str:
    """The components that short names leave out; empty if there are none."""
    methods = "Methods that are not recipes" if "recipe" in tables.heading else "All methods"
    return f"{methods}: {tables.common}." if tables.common else ""


def number(value: float, form: str = ".2f") -> str:
    """A number as text; empty for NaN."""
    return "" if value != value else format(value, form)


def as_json(tables: Tables) -> dict[str, Any]:
    """Methods, pairs and breakdowns as JSON values; NaN becomes null."""
    values = {
        "methods": [asdict(line) for line in tables.lines],
        "pairs": [pair._asdict() for pair in tables.comparison.pairs] if tables.comparison else [],
        "breakdowns": [asdict(b) for b in tables.breakdowns],
    }
    plain: dict[str, Any] = json.loads(json.dumps(values), parse_constant=lambda name: None)
    return plain


def as_csv(tables: Tables) -> str:
    """All methods, with scores between 0 and 1."""
    head = ("name", *PARTS, "instances", f"mean_{tables.metric}", "std", "average_rank", "seconds")
    rows = []
    for line in tables.lines:
        numbers = (number(v, ".6g") for v in (line.mean, line.std, line.rank, line.seconds))
        rows.append((line.name, *line.method.split(" / "), str(line.instances), *numbers))
    return TextTable(head, tuple(rows)).csv()


def pairs_csv(comparison: Comparison) -> str:
    """Every pair of the methods in the diagram, with its p-values."""
    rows = ((p.first, p.second, f"{p.p:.6g}", f"{p.adjusted:.6g}", f"{p.significant:d}") for p in comparison.pairs)
    return TextTable(("first", "second", "p", "adjusted_p", "significant"), tuple(rows)).csv()


def breakdowns_csv(breakdowns: Sequence[Breakdown]) -> str:
    """All breakdowns in one table, a line for every method and column; scores between 0 and 1."""
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
    comment = f"% {shared_parts(tables)}\n" if tables.common else ""
    return comment + best_methods(tables, f"{tables.metric} (%)").latex()


def as_text(tables: Tables) -> str:
    """The best methods for a terminal, and whether the first differs significantly from the others."""
    scope = f"{count(tables.experiments, 'experiment')}, {count(tables.instances, 'instance')}, medians over seeds, "
    notes = [f"{scope}percent.", near_ties(tables), shared_parts(tables)]
    lines = [*filter(None, notes), "", *best_methods(tables, tables.metric).text()]
    more = len(tables.lines) - MOST
    lines += [f"... and {count(more, 'more method')}"] if more > 0 else []
    if tables.comparison is not None:
        best, *others = tables.comparison.order
        pairs = [(name, tables.comparison.pair(best, name)) for name in others]
        rows = tuple((name, f"{p.adjusted:.2g}", "differs" if p.significant else "") for name, p in pairs)
        lines += ["", f"Against {best} (Wilcoxon signed-rank test, Holm-adjusted p-values):"]
        lines += TextTable(("", "p", ""), rows).text()
    return "\n".join([*lines, ""])


def breakdowns_text(breakdowns: Sequence[Breakdown]) -> str:
    """The breakdowns for a terminal, in percent."""
    lines: list[str] = []
    for b in breakdowns:
        rows = ((r.name, *(number(100 * v) for v in (*r.values, r.mean)), number(r.rank)) for r in b.rows[:MOST])
        lines += ["", f"{b.kind} {b.name}, {count(b.instances, 'instance')}"]
        lines += TextTable(("", *b.columns, "mean", "rank"), tuple(rows)).text()
    return "\n".join([*lines, ""])
