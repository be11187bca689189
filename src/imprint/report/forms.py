"""The tables of a study as text, CSV and LaTeX."""

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from imprint.core.component import PARTS
from imprint.report.tables import Breakdown, MethodLine, Tables
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
    if not tables.near_ties:
        return ""
    return f"{tables.near_ties:,} of {tables.decisions:,} decisions were near ties, within float rounding."


def shared_parts(tables: Tables) -> str:
    """The components that short names leave out; empty if there are none."""
    if not tables.common:
        return ""
    return f"{'Methods that are not recipes' if 'recipe' in tables.what else 'All methods'}: {tables.common}."


def number(value: float, form: str = ".2f") -> str:
    """A number as text; empty for NaN."""
    return "" if value != value else format(value, form)


def as_json(tables: Tables) -> dict[str, Any]:
    """Methods, pairs and breakdowns as JSON values; NaN becomes null."""
    pairs = tables.comparison.pairs if tables.comparison is not None else ()
    values = {
        "methods": [asdict(line) for line in tables.lines],
        "pairs": [pair._asdict() for pair in pairs],
        "breakdowns": [asdict(b) for b in tables.breakdowns],
    }
    plain: dict[str, Any] = json.loads(json.dumps(values), parse_constant=lambda name: None)
    return plain


def as_csv(tables: Tables) -> str:
    """All methods, with scores between 0 and 1."""
    head = ["name", *PARTS, "instances", f"mean_{tables.metric}", "std", "average_rank", "seconds"]
    rows = []
    for line in tables.lines:
        numbers = (number(v, ".6g") for v in (line.mean, line.std, line.rank, line.seconds))
        rows.append([line.name, *line.method.split(" / "), line.instances, *numbers])
    return _csv(head, rows)


def pairs_csv(comparison: Comparison) -> str:
    """Every pair of the methods in the diagram, with its p-values."""
    return _csv(
        ["first", "second", "p", "adjusted_p", "significant"],
        ([p.first, p.second, f"{p.p:.6g}", f"{p.adjusted:.6g}", int(p.significant)] for p in comparison.pairs),
    )


def breakdowns_csv(breakdowns: Sequence[Breakdown]) -> str:
    """All breakdowns in one table, a line for every method and column; scores between 0 and 1."""
    return _csv(
        ["table", "of", "method", "column", "mean"],
        (
            [b.kind, b.name, row.name, column, number(v, ".6g")]
            for b in breakdowns
            for row in b.rows
            for column, v in zip((*b.columns, "all"), (*row.values, row.mean))
        ),
    )


def _csv(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return out.getvalue()


def as_latex(tables: Tables) -> str:
    """The best methods as a LaTeX table (booktabs), scores in percent."""
    rows = (
        " & ".join([_tex(line.name), _percent(line).replace("±", r"$\pm$"), number(line.rank)]) + r" \\"
        for line in tables.lines[:MOST]
    )
    head = " & ".join([_tex(tables.what), _tex(tables.metric) + r" (\%)", "rank"])
    comment = [f"% {shared_parts(tables)}"] if tables.common else []
    top, bottom = [r"\begin{tabular}{lrr}", r"\toprule"], [r"\bottomrule", r"\end{tabular}"]
    return "\n".join([*comment, *top, head + r" \\", r"\midrule", *rows, *bottom]) + "\n"


def as_text(tables: Tables) -> str:
    """The best methods for a terminal, and whether the first differs significantly from the others."""
    shown = [(line.name, _percent(line), number(line.rank)) for line in tables.lines[:MOST]]
    scope = f"{count(tables.experiments, 'experiment')}, {count(tables.instances, 'instance')}, medians over seeds, "
    notes = [f"{scope}percent.", near_ties(tables), shared_parts(tables)]
    more = len(tables.lines) - MOST
    lines = [*filter(None, notes), "", *_aligned([(tables.what, tables.metric, "rank"), *shown])]
    lines += [f"... and {count(more, 'more method')}"] if more > 0 else []
    return "\n".join([*lines, *(_versus_best(tables.comparison) if tables.comparison else []), ""])


def _versus_best(comparison: Comparison) -> list[str]:
    best, *others = comparison.order
    pairs = [(name, comparison.pair(best, name)) for name in others]
    rows = [(name, f"{p.adjusted:.2g}", "differs" if p.significant else "") for name, p in pairs]
    test = "Wilcoxon signed-rank, adjusted by Holm"
    return ["", f"Against {best} ({test}):", *_aligned([("", "p", ""), *rows])]


def breakdowns_text(breakdowns: Sequence[Breakdown]) -> str:
    """The breakdowns for a terminal, in percent."""
    lines: list[str] = []
    for b in breakdowns:
        rows = [(r.name, *(number(100 * v) for v in (*r.values, r.mean)), number(r.rank)) for r in b.rows[:MOST]]
        lines += ["", f"{b.kind} {b.name}, {count(b.instances, 'instance')}"]
        lines += _aligned([("", *b.columns, "mean", "rank"), *rows])
    return "\n".join([*lines, ""])


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows padded to columns, all right-aligned but the first."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    texts = ([row[0].ljust(widths[0]), *(v.rjust(w) for v, w in zip(row[1:], widths[1:]))] for row in rows)
    return ["  ".join(text).rstrip() for text in texts]


def _percent(line: MethodLine) -> str:
    spread = "" if line.std != line.std else f" ± {100 * line.std:.2f}"
    return f"{100 * line.mean:.2f}{spread}"


def _tex(text: str) -> str:
    return text.replace("_", r"\_").replace("%", r"\%")
