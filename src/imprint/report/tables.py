"""The tables of a study: mean score, standard deviation and average rank of every method."""

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
from imprint.stats import Comparison, compare
from imprint.stats.rank_tests import rank_rows

if TYPE_CHECKING:
    import pyarrow as pa

METRICS = ("accuracy", "macro_f1", "weighted_f1")
BACKBONE, DATASET, TASK = range(3)  # positions in an instance
WORDS = {BACKBONE: "backbone", DATASET: "data set", TASK: "task"}


@dataclass(frozen=True)
class MethodLine:
    """One method over the instances of a study. The score of an instance is the median over its seeds."""

    name: str
    """The name of a recipe, or the components in which the methods differ."""
    method: str
    """All five components."""
    instances: int
    mean: float
    std: float
    """Over instances, with n - 1; NaN for one instance."""
    rank: float
    """Average rank among the methods that have all instances; NaN for the others."""
    seconds: float
    """Mean processor seconds of an experiment: its share of generation and evaluation."""


@dataclass(frozen=True)
class BreakdownRow:
    """One method: its mean in every column, over all columns, and its average rank."""

    name: str
    values: tuple[float, ...]
    mean: float
    rank: float


@dataclass(frozen=True)
class Breakdown:
    """The instances of one data set or one backbone. A value is NaN if the method lacks some of the instances."""

    kind: str
    """`data set` or `backbone`."""
    name: str
    across: str
    """What the columns are: backbones, data sets or tasks."""
    columns: tuple[str, ...]
    instances: int
    rows: tuple[BreakdownRow, ...]


@dataclass(frozen=True)
class Tables:
    """The contents of `study report`."""

    metric: str
    instances: int
    experiments: int
    decisions: int
    """The number of predicted test rows, over all experiments."""
    near_ties: int
    """The number of those whose two best scores are equal up to float rounding."""
    heading: str
    """The heading of the column of method names: recipes, or certain components."""
    common: str
    """The components that all methods without a recipe's name share."""
    lines: tuple[MethodLine, ...]
    """By average rank; then the methods that lack instances, by mean."""
    comparison: Comparison | None
    """Of the best methods; None with fewer than two methods or instances."""
    breakdowns: tuple[Breakdown, ...]
    """A table for every data set and for every backbone."""


def tabulate(table: "pa.Table", metric: str = "accuracy", best: int = 10, named: Iterable[str] = ()) -> Tables:
    """Summarise the results of a study: mean and standard deviation over instances of the median over seeds.

    The diagram compares the `best` methods by rank. Recipes in `named` keep their names.
    """
    if metric not in METRICS:
        raise ParameterError(f"tabulate(metric={metric!r}): metric must be one of {', '.join(METRICS)}.")
    if not len(table):
        raise ParameterError("tabulate(table): the study has no finished experiment yet.")
    instances, instance = _groups(table, ("backbone", "dataset", "task"))
    methods, method = _groups(table, PARTS)
    naming = name_methods(methods, named)
    scores = _medians(instance, method, table[metric].to_numpy(), (len(instances), len(methods)))
    seconds = table["seconds_generation"].to_numpy() + table["seconds_evaluation"].to_numpy()
    cost, ranks = np.bincount(method, seconds) / np.bincount(method), _average_ranks(scores)
    lines = [
        _line(naming.names[i], " / ".join(methods[i]), scores[:, i], float(ranks[i]), float(cost[i]))
        for i in range(len(methods))
    ]
    order = sorted(range(len(methods)), key=lambda i: (np.isnan(ranks[i]), ranks[i], -lines[i].mean))
    names, ordered = [naming.names[i] for i in order], scores[:, order]
    count = min(best, int(np.isfinite(ranks).sum()))
    return Tables(
        metric,
        len(instances),
        len(table),
        sum(table["test_rows"].to_pylist()),
        sum(table["near_ties"].to_pylist()),
        naming.heading,
        naming.common,
        tuple(lines[i] for i in order),
        compare(ordered[:, :count], names[:count]) if count > 1 and len(instances) > 1 else None,
        break_down(instances, ordered, names),
    )


def _line(name: str, method: str, scores: Array, rank: float, seconds: float) -> MethodLine:
    known = scores[np.isfinite(scores)]
    std = float(known.std(ddof=1)) if len(known) > 1 else float("nan")
    return MethodLine(name, method, len(known), float(known.mean()), std, rank, seconds)


def _groups(table: "pa.Table", columns: Sequence[str]) -> tuple[list[tuple[str, ...]], Array]:
    """The distinct combinations of some text columns in order of appearance, and the index of each row's."""
    codes = np.zeros(len(table), dtype=np.int64)
    for name in columns:
        values, code = np.unique(np.asarray(table[name].to_pylist(), dtype=str), return_inverse=True)
        codes = codes * len(values) + code
    first, index = factorize(codes)
    rows = table.select(list(columns)).take(first).to_pylist()
    return [tuple(row.values()) for row in rows], index


def _medians(instance: Array, method: Array, values: Array, shape: tuple[int, int]) -> Array:
    """The median over seeds of every instance and method; NaN if there is no result.  # (instances, methods)"""
    group = instance * shape[1] + method
    order = np.lexsort((values, group))
    present, first, count = np.unique(group[order], return_index=True, return_counts=True)
    ordered = values[order]
    medians = np.full(shape[0] * shape[1], np.nan)
    medians[present] = (ordered[first + (count - 1) // 2] + ordered[first + count // 2]) / 2
    return medians.reshape(shape)


def _average_ranks(scores: Array) -> Array:
    """Average ranks among the methods that have all instances; NaN for the others.  # (methods,)"""
    complete = np.flatnonzero(np.isfinite(scores).all(axis=0))
    ranks = np.full(scores.shape[1], np.nan)
    ranks[complete] = rank_rows(scores[:, complete]).mean(axis=0) if len(complete) else []
    return ranks


@dataclass(frozen=True)
class Naming:
    """The names of the methods of a study."""

    names: tuple[str, ...]
    """One for each method, all different."""
    heading: str
    """The heading of a column of such names."""
    common: str
    """The components that the methods without a recipe's name share, such as `norm_pre l2`; may be empty."""


def name_methods(methods: Sequence[tuple[str, ...]], named: Iterable[str] = ()) -> Naming:
    """Name methods, given as texts of their components; those in `named` that are recipes keep their names.

    >>> two = [("l2", "mean", "l2", "l2", "max"), ("l2", "kmeans(k=5)", "l2", "l2", "max")]
    >>> name_methods(two).names, name_methods(two).common
    (('mean', 'kmeans(k=5)'), 'norm_pre l2, norm_post l2, norm_inf l2, aggregator max')
    >>> name_methods(two, ["qi2018"]).names
    ('qi2018', 'l2 / kmeans(k=5) / l2 / l2 / max')
    """
    parts = {name: Method.of(**recipes.describe(name).parts()) for name in named if name in recipes.names()}
    recipe_of = {tuple(str(getattr(method, part)) for part in PARTS): name for name, method in parts.items()}
    others = [m for m in methods if m not in recipe_of]
    varying = [j for j in range(len(PARTS)) if len({m[j] for m in others}) > 1] or list(range(len(PARTS)))
    names = tuple(recipe_of.get(m) or " / ".join(m[j] for j in varying) for m in methods)
    kinds = ["recipe"] * (len(others) < len(methods)) + [" / ".join(PARTS[j] for j in varying)] * bool(others)
    shared = [f"{PARTS[j]} {others[0][j]}" for j in range(len(PARTS)) if j not in varying] if others else []
    return Naming(names, " or ".join(kinds), ", ".join(shared))


def break_down(instances: Sequence[tuple[str, ...]], scores: Array, names: Sequence[str]) -> tuple[Breakdown, ...]:
    """A table for every data set, then for every backbone; none for a single instance, and no table twice.

    `scores` has shape (instances, methods). The table of a data set has backbones as columns, that of a backbone data
    sets; if there is only one of these, the columns are tasks.
    """
    counts = {part: len({i[part] for i in instances}) for part in WORDS}
    breakdowns = []
    for by, other in ((DATASET, BACKBONE), (BACKBONE, DATASET)):
        repeated = counts[DATASET] == counts[BACKBONE] == 1 and by == BACKBONE
        if len(instances) > 1 and not repeated:
            across = other if counts[other] > 1 else TASK
            for value in dict.fromkeys(i[by] for i in instances):
                members = [n for n, i in enumerate(instances) if i[by] == value]
                column_of = np.array([instances[n][across] for n in members])
                rows = _breakdown_rows(column_of, scores[members], names)
                columns = tuple(dict.fromkeys(column_of.tolist()))
                breakdowns.append(Breakdown(WORDS[by], value, WORDS[across], columns, len(members), rows))
    return tuple(breakdowns)


def _breakdown_rows(column_of: Array, scores: Array, names: Sequence[str]) -> tuple[BreakdownRow, ...]:
    columns = [scores[column_of == column] for column in dict.fromkeys(column_of.tolist())]
    means = np.stack([values.mean(axis=0) for values in (*columns, scores)], axis=1).tolist()  # NaN if one is missing
    ranks = _average_ranks(scores).tolist()
    return tuple(BreakdownRow(name, tuple(row[:-1]), row[-1], rank) for name, row, rank in zip(names, means, ranks))
