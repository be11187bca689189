"""The tables of a study: how good every method is, how steady, and where it ranks."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from imprint.core.errors import ParameterError
from imprint.core.types import Array
from imprint.stats import Comparison, compare
from imprint.stats.rank_tests import rank_rows
from imprint.study.grid import PARTS

if TYPE_CHECKING:
    import pyarrow as pa

METRICS = ("accuracy", "macro_f1", "weighted_f1")


@dataclass(frozen=True)
class Line:
    """One method over the instances of a study; each instance counts with the median over its seeds."""

    method: str
    instances: int
    mean: float
    std: float
    """Over instances, with n - 1; not a number for one instance."""
    rank: float
    """Average rank among the methods that have all instances; not a number for the others."""
    seconds: float
    """Mean processor seconds of a cell: its share of generation and evaluation."""


@dataclass(frozen=True)
class Tables:
    """What `study report` shows."""

    metric: str
    instances: int
    experiments: int
    near_ties: float
    """The share of decided rows whose two best scores lie within float rounding."""
    lines: tuple[Line, ...]
    """The best average rank first, then methods that lack instances, the best mean first."""
    comparison: Comparison | None
    """Of the best methods, at most as many as asked for; None with fewer than two methods or instances."""


def tabulate(table: "pa.Table", metric: str = "accuracy", best: int = 10) -> Tables:
    """Summarise the results of a study: mean and standard deviation over instances of the median over seeds."""
    if metric not in METRICS:
        raise ParameterError(f"tabulate(metric={metric!r}): metric must be one of {', '.join(METRICS)}.")
    if not len(table):
        raise ParameterError("tabulate(table): the study has no finished cell yet.")
    places, place = _groups(table, ("backbone", "dataset", "task"))
    methods, method = _groups(table, PARTS)
    scores = _medians(place, method, table[metric].to_numpy(), (len(places), len(methods)))  # (instances, methods)
    seconds = table["seconds_generation"].to_numpy() + table["seconds_evaluation"].to_numpy()
    cost = np.bincount(method, seconds) / np.bincount(method)
    whole = np.flatnonzero(np.isfinite(scores).all(axis=0))
    ranks = np.full(len(methods), np.nan)
    ranks[whole] = rank_rows(scores[:, whole]).mean(axis=0) if len(whole) else []
    names = [" / ".join(m) for m in methods]
    lines = [_line(names[i], scores[:, i], float(ranks[i]), float(cost[i])) for i in range(len(methods))]
    order = sorted(range(len(methods)), key=lambda i: (np.isnan(ranks[i]), ranks[i], -lines[i].mean))
    top = [i for i in order if not np.isnan(ranks[i])][:best]
    found = compare(scores[:, top], [names[i] for i in top]) if len(top) > 1 and len(places) > 1 else None
    near = sum(table["near_ties"].to_pylist()) / sum(table["test_rows"].to_pylist())
    return Tables(metric, len(places), len(table), near, tuple(lines[i] for i in order), found)


def _line(name: str, scores: Array, rank: float, seconds: float) -> Line:
    known = scores[np.isfinite(scores)]
    std = float(known.std(ddof=1)) if len(known) > 1 else float("nan")
    return Line(name, len(known), float(known.mean()), std, rank, seconds)


def _groups(table: "pa.Table", columns: Sequence[str]) -> tuple[list[tuple[str, ...]], Array]:
    """The distinct combinations of some text columns in order of appearance, and which one each row has."""
    codes = np.zeros(len(table), dtype=np.int64)
    texts = []
    for name in columns:
        values, code = np.unique(np.asarray(table[name].to_pylist(), dtype=str), return_inverse=True)
        texts.append(values)
        codes = codes * len(values) + code
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    rows = table.select(list(columns)).take(first[order]).to_pylist()
    return [tuple(row.values()) for row in rows], rank[inverse]


def _medians(place: Array, method: Array, values: Array, shape: tuple[int, int]) -> Array:
    """The median over seeds of every instance and method; not a number where there is none."""
    group = place * shape[1] + method
    order = np.lexsort((values, group))
    present, first, count = np.unique(group[order], return_index=True, return_counts=True)
    ordered = values[order]
    medians = (ordered[first + (count - 1) // 2] + ordered[first + count // 2]) / 2
    out = np.full(shape[0] * shape[1], np.nan)
    out[present] = medians
    return out.reshape(shape)


def as_csv(tables: Tables) -> str:
    """The lines as CSV, scores as shares of one."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*PARTS, "instances", f"mean_{tables.metric}", "std", "average_rank", "seconds"])
    for line in tables.lines:
        numbers = (line.mean, line.std, line.rank, line.seconds)
        shown = ("" if np.isnan(v) else f"{v:.6g}" for v in numbers)
        writer.writerow([*line.method.split(" / "), line.instances, *shown])
    return out.getvalue()


def as_latex(tables: Tables, most: int = 20) -> str:
    """The best lines as a LaTeX table (booktabs), scores in percent."""
    rows = (
        " & ".join([*map(_tex, line.method.split(" / ")), _percent(line).replace("±", r"$\pm$"), _rank(line)]) + r" \\"
        for line in tables.lines[:most]
    )
    head = " & ".join([*map(_tex, PARTS), _tex(tables.metric) + r" (\%)", "rank"])
    top, bottom = [r"\begin{tabular}{lllllrr}", r"\toprule"], [r"\bottomrule", r"\end{tabular}"]
    return "\n".join([*top, head + r" \\", r"\midrule", *rows, *bottom]) + "\n"


def as_text(tables: Tables, most: int = 20) -> str:
    """The best lines for a terminal."""
    shown = tables.lines[:most]
    title = "norm_pre / generator / norm_post / norm_inf / aggregator"
    width = max(len(title), *(len(line.method) for line in shown))
    head = f"{title:{width}}  {tables.metric:>14}  {'rank':>7}"
    lines = [f"{line.method:{width}}  {_percent(line):>14}  {_rank(line):>7}" for line in shown]
    more = [f"... and {len(tables.lines) - most:,} more methods"] if len(tables.lines) > most else []
    ties = f"{1e4 * tables.near_ties:.2g} of 10,000 decided rows have their two best scores within float rounding."
    scope = f"{tables.experiments:,} experiments, {tables.instances} instances, medians over seeds, percent."
    return "\n".join([scope, ties, "", head, *lines, *more, ""])


def _percent(line: Line) -> str:
    spread = "" if np.isnan(line.std) else f" ± {100 * line.std:.2f}"
    return f"{100 * line.mean:.2f}{spread}"


def _rank(line: Line) -> str:
    return "" if np.isnan(line.rank) else f"{line.rank:.2f}"


def _tex(text: str) -> str:
    return text.replace("_", r"\_").replace("%", r"\%")
