"""The tables of a study: how good every method is, how steady, and where it ranks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from imprint import recipes
from imprint.core.arrays import factorize
from imprint.core.component import PARTS
from imprint.core.errors import ParameterError
from imprint.core.types import Array
from imprint.method import Method
from imprint.report.breakdown import Breakdown, break_down
from imprint.stats import Comparison, compare
from imprint.stats.rank_tests import rank_rows

if TYPE_CHECKING:
    import pyarrow as pa

METRICS = ("accuracy", "macro_f1", "weighted_f1")


@dataclass(frozen=True)
class MethodLine:
    """One method over the instances of a study; each instance counts with the median over its seeds."""

    name: str
    """Short: a recipe's, or the parts in which methods differ."""
    method: str
    """All five parts."""
    instances: int
    mean: float
    std: float
    """Over instances, with n - 1; not a number for one instance."""
    rank: float
    """Average rank among the methods that have all instances; not a number for the others."""
    seconds: float
    """Mean processor seconds of an experiment: its share of generation and evaluation."""


@dataclass(frozen=True)
class Tables:
    """What `study report` shows."""

    metric: str
    instances: int
    experiments: int
    decisions: int
    """How many test rows were decided, over all experiments."""
    near_ties: int
    """Of those, how many had their two best scores within float rounding."""
    what: str
    """What the names of methods are: recipes, or some parts."""
    common: str
    """The parts that all methods share which are no recipes."""
    lines: tuple[MethodLine, ...]
    """The best average rank first, then methods that lack instances, the best mean first."""
    comparison: Comparison | None
    """Of the best methods, at most as many as asked for; None with fewer than two methods or instances."""
    breakdowns: tuple[Breakdown, ...]
    """A table for every data set and for every backbone."""


def tabulate(table: "pa.Table", metric: str = "accuracy", best: int = 10, named: Iterable[str] = ()) -> Tables:
    """Summarise the results of a study: mean and standard deviation over instances of the median over seeds.

    The diagram compares the `best` methods by rank; recipes in `named` keep their names.
    """
    if metric not in METRICS:
        raise ParameterError(f"tabulate(metric={metric!r}): metric must be one of {', '.join(METRICS)}.")
    if not len(table):
        raise ParameterError("tabulate(table): the study has no finished experiment yet.")
    places, place = _groups(table, ("backbone", "dataset", "task"))
    methods, method = _groups(table, PARTS)
    naming = name_methods(methods, named)
    scores = _medians(place, method, table[metric].to_numpy(), (len(places), len(methods)))  # (instances, methods)
    seconds = table["seconds_generation"].to_numpy() + table["seconds_evaluation"].to_numpy()
    cost = np.bincount(method, seconds) / np.bincount(method)
    whole = np.flatnonzero(np.isfinite(scores).all(axis=0))
    ranks = np.full(len(methods), np.nan)
    ranks[whole] = rank_rows(scores[:, whole]).mean(axis=0) if len(whole) else []
    texts = zip(naming.names, (" / ".join(m) for m in methods))
    lines = [_line(*text, scores[:, i], float(ranks[i]), float(cost[i])) for i, text in enumerate(texts)]
    order = sorted(range(len(methods)), key=lambda i: (np.isnan(ranks[i]), ranks[i], -lines[i].mean))
    names = [naming.names[i] for i in order]
    return Tables(
        metric,
        len(places),
        len(table),
        sum(table["test_rows"].to_pylist()),
        sum(table["near_ties"].to_pylist()),
        naming.what,
        naming.common,
        tuple(lines[i] for i in order),
        _compared(scores[:, order], names, int(np.isfinite(ranks).sum()), best),
        break_down(places, scores[:, order], names),
    )


def _compared(scores: Array, names: Sequence[str], whole: int, best: int) -> Comparison | None:
    """The first methods beside each other, of which `whole` have all instances."""
    count = min(best, whole)
    return compare(scores[:, :count], names[:count]) if count > 1 and len(scores) > 1 else None


def _line(name: str, method: str, scores: Array, rank: float, seconds: float) -> MethodLine:
    known = scores[np.isfinite(scores)]
    std = float(known.std(ddof=1)) if len(known) > 1 else float("nan")
    return MethodLine(name, method, len(known), float(known.mean()), std, rank, seconds)


def _groups(table: "pa.Table", columns: Sequence[str]) -> tuple[list[tuple[str, ...]], Array]:
    """The distinct combinations of some text columns in order of appearance, and which one each row has."""
    codes = np.zeros(len(table), dtype=np.int64)
    texts = []
    for name in columns:
        values, code = np.unique(np.asarray(table[name].to_pylist(), dtype=str), return_inverse=True)
        texts.append(values)
        codes = codes * len(values) + code
    first, number = factorize(codes)
    rows = table.select(list(columns)).take(first).to_pylist()
    return [tuple(row.values()) for row in rows], number


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


@dataclass(frozen=True)
class Naming:
    """How the methods of a study are called."""

    names: tuple[str, ...]
    """One for each method, no two the same."""
    what: str
    """What such a name is, for the head of a column."""
    common: str
    """The parts that the methods without a recipe's name share, such as `norm_pre l2`; empty where none are."""


def name_methods(methods: Sequence[tuple[str, ...]], named: Iterable[str] = ()) -> Naming:
    """Name methods, given as texts of their parts; those in `named` that are recipes keep their names.

    >>> two = [("l2", "mean", "l2", "l2", "max"), ("l2", "kmeans(k=5)", "l2", "l2", "max")]
    >>> name_methods(two).names, name_methods(two).common
    (('mean', 'kmeans(k=5)'), 'norm_pre l2, norm_post l2, norm_inf l2, aggregator max')
    >>> name_methods(two, ["qi2018"]).names
    ('qi2018', 'l2 / kmeans(k=5) / l2 / l2 / max')
    """
    known = {_texts(name): name for name in named if name in recipes.names()}
    others = [m for m in methods if m not in known]
    varying = [j for j in range(len(PARTS)) if len({m[j] for m in others}) > 1] or list(range(len(PARTS)))
    names = tuple(known.get(m) or " / ".join(m[j] for j in varying) for m in methods)
    kinds = (["recipe"] if len(others) < len(methods) else []) + (
        [" / ".join(PARTS[j] for j in varying)] if others else []
    )
    shared = [f"{PARTS[j]} {others[0][j]}" for j in range(len(PARTS)) if j not in varying] if others else []
    return Naming(names, " or ".join(kinds), ", ".join(shared))


def _texts(recipe: str) -> tuple[str, ...]:
    method = Method.of(**recipes.describe(recipe).parts())
    return tuple(str(getattr(method, part)) for part in PARTS)
