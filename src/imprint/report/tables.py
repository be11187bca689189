"""The tables of a study: mean score and average rank of every method."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from imprint import recipes
from imprint.core.arrays import Array
from imprint.core.component import PARTS
from imprint.core.errors import ParameterError
from imprint.method import Method
from imprint.stats import Comparison, compare
from imprint.stats.rank_tests import rank_rows

METRICS = ("accuracy", "macro_f1", "weighted_f1")
INSTANCE_COLUMNS = ("backbone", "dataset", "task")
BACKBONE, DATASET, TASK = range(3)  # positions in an instance
WORDS = {BACKBONE: "backbone", DATASET: "data set", TASK: "task"}

# Stands between texts that are joined for grouping; no name holds it.
SEPARATOR = "\0"

Texts: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class MethodLine:
    """One method over the instances of a study.

    The score of an instance is the median over its seeds.
    """

    name: str  # of a recipe, or the components in which the methods differ
    method: str  # all five components
    instances: int
    mean: float
    std: float  # over instances, with n - 1; NaN for one instance
    # average rank among the methods that have all instances; NaN for the others
    rank: float
    # mean CPU seconds of an experiment: its share of generation and evaluation
    seconds: float


@dataclass(frozen=True)
class BreakdownRow:
    """One method: its mean in every column, over all columns, and its average rank."""

    name: str
    values: tuple[float, ...]
    mean: float
    rank: float


@dataclass(frozen=True)
class Breakdown:
    """The instances of one data set or one backbone.

    A value is NaN if the method lacks some of the instances.
    """

    kind: str  # "data set" or "backbone"
    name: str
    across: str  # what the columns are: "backbone", "data set" or "task"
    columns: Texts
    instances: int
    rows: tuple[BreakdownRow, ...]


@dataclass(frozen=True)
class Tables:
    """The contents of `study report`."""

    metric: str
    instances: int
    experiments: int
    decisions: int  # predicted test rows, over all experiments
    near_ties: int  # those whose two best scores are equal up to float rounding
    heading: str  # of the column of method names: recipes, or certain components
    # a sentence: the components that all methods without a recipe's name share
    common: str
    # by average rank; then the methods that lack instances, by mean
    lines: tuple[MethodLine, ...]
    # of the best methods; None with fewer than two methods or instances
    comparison: Comparison | None
    # a table for every data set and for every backbone
    breakdowns: tuple[Breakdown, ...]


def tabulate(
    table: pa.Table,
    metric: str = "accuracy",
    best: int = 10,
    named: Iterable[str] = (),
) -> Tables:
    """Summarise the results of a study.

    Parameters
    ----------
    table : pyarrow.Table
        The results, as `Study.results` returns them.
    metric : str
        `accuracy`, `macro_f1` or `weighted_f1`. [default: `accuracy`]
    best : int
        The number of methods, best by rank, that the diagram compares. [default: 10]
    named : iterable of str
        Recipes that keep their names. [default: none]

    Returns
    -------
    Tables
        Mean and standard deviation over instances of the median over seeds, ranks and
        tests.
    """
    if metric not in METRICS:
        raise ParameterError(
            f"tabulate(metric={metric!r}): metric must be one of {', '.join(METRICS)}."
        )
    if not len(table):
        raise ParameterError(
            "tabulate(table): the study has no finished experiment yet."
        )
    instances, instance = _groups(table, INSTANCE_COLUMNS)
    methods, method = _groups(table, PARTS)
    names = name_methods(methods, named)
    shape = (len(instances), len(methods))
    values = table[metric].to_numpy()
    scores = _medians(instance, method, values, shape)
    ranks = _average_ranks(scores)
    lines = _method_lines(methods, names.names, scores, ranks, _costs(table, method))

    def place(i: int) -> tuple[float, float]:
        # NaN cannot be ordered.
        rank = ranks[i] if np.isfinite(ranks[i]) else np.inf
        return float(rank), -lines[i].mean

    order = sorted(range(len(methods)), key=place)
    ordered = scores[:, order]
    sorted_names = [names.names[i] for i in order]
    # Methods with a rank come first, and they have all instances.
    count = min(best, int(np.isfinite(ranks).sum()))
    comparison = None
    if count > 1 and len(instances) > 1:
        comparison = compare(ordered[:, :count], sorted_names[:count])
    return Tables(
        metric=metric,
        instances=len(instances),
        experiments=len(table),
        decisions=sum(table["test_rows"].to_pylist()),
        near_ties=sum(table["near_ties"].to_pylist()),
        heading=names.heading,
        common=names.common,
        lines=tuple(lines[i] for i in order),
        comparison=comparison,
        breakdowns=break_down(instances, ordered, sorted_names),
    )


def _method_lines(
    methods: Sequence[Texts],
    names: Sequence[str],
    scores: Array,
    ranks: Array,
    costs: Array,
) -> list[MethodLine]:
    """A line for every method, in their order."""
    lines = []
    for i, components in enumerate(methods):
        scores_of_method = scores[:, i]
        known = scores_of_method[np.isfinite(scores_of_method)]
        std = float("nan")
        if len(known) > 1:
            std = float(known.std(ddof=1))
        line = MethodLine(
            name=names[i],
            method=" / ".join(components),
            instances=len(known),
            mean=float(known.mean()),
            std=std,
            rank=float(ranks[i]),
            seconds=float(costs[i]),
        )
        lines.append(line)
    return lines


def _costs(table: pa.Table, method: Array) -> Array:
    """The mean CPU seconds of an experiment of each method."""
    generation = table["seconds_generation"].to_numpy()
    evaluation = table["seconds_evaluation"].to_numpy()
    totals = np.bincount(method, generation + evaluation)
    costs: Array = totals / np.bincount(method)
    return costs


def _groups(
    table: pa.Table,
    columns: Sequence[str],
) -> tuple[list[Texts], Array]:
    """The distinct combinations of some text columns in order of appearance, and the
    index of each row's.
    """
    texts = [table[name].cast(pa.string()) for name in columns]
    joined = pc.binary_join_element_wise(*texts, SEPARATOR)
    codes = joined.combine_chunks().dictionary_encode()
    groups = [tuple(text.split(SEPARATOR)) for text in codes.dictionary.to_pylist()]
    return groups, codes.indices.to_numpy()


def _medians(
    instance: Array,
    method: Array,
    values: Array,
    shape: tuple[int, int],
) -> Array:
    """The median over seeds of every instance and method; NaN if there is no result.

    The shape is that of the result.  # (instances, methods)
    """
    from scipy.ndimage import median

    instances, methods = shape
    group = instance * methods + method
    present = np.unique(group)
    medians = np.full(instances * methods, np.nan)
    medians[present] = median(values, group, present)
    return medians.reshape(shape)


def _average_ranks(scores: Array) -> Array:
    """Average ranks among the methods that have all instances; NaN for the others.

    # (instances, methods) -> (methods,)
    """
    ranks = np.full(scores.shape[1], np.nan)
    is_complete = np.isfinite(scores).all(axis=0)
    if is_complete.any():
        ranks_on_instances = rank_rows(scores[:, is_complete])
        ranks[is_complete] = ranks_on_instances.mean(axis=0)
    return ranks


class MethodNames(NamedTuple):
    """How the tables name some methods."""

    names: list[str]  # a different one for each method
    heading: str  # of a column of these names
    common: str  # a sentence: what the methods without a recipe's name share


def name_methods(
    methods: Sequence[Texts],
    named: Iterable[str] = (),
) -> MethodNames:
    """Name methods, given as the texts of their five components.

    Those that are recipes in `named` keep their names. The others are named by the
    components in which they differ from one another.
    """
    recipe_of = _recipes_by_parts(named)
    others = [method for method in methods if method not in recipe_of]
    varying = []
    # By component, the texts of all methods.
    for j, texts in enumerate(zip(*others)):
        if len(set(texts)) > 1:
            varying.append(j)
    if not varying:
        varying = list(range(len(PARTS)))

    names = []
    for method in methods:
        parts = " / ".join(method[j] for j in varying)
        names.append(recipe_of.get(method, parts))

    headings = []
    if len(others) < len(methods):
        headings.append("recipe")
    if others:
        headings.append(" / ".join(PARTS[j] for j in varying))
    return MethodNames(
        names,
        heading=" or ".join(headings),
        common=_shared_parts(others, varying, some_named=len(others) < len(methods)),
    )


def _recipes_by_parts(named: Iterable[str]) -> dict[Texts, str]:
    """The recipes among some names, by the texts of their components."""
    known = set(recipes.names())
    by_parts = {}
    for name in named:
        if name not in known:
            continue
        # As a method, because texts of equal components may differ: max and max().
        method = Method.of(**recipes.describe(name).parts())
        parts = tuple(str(getattr(method, part)) for part in PARTS)
        by_parts[parts] = name
    return by_parts


def _shared_parts(
    methods: Sequence[Texts],
    varying: Sequence[int],
    some_named: bool,
) -> str:
    """A sentence with the components that do not vary; empty if all do."""
    if not methods:
        return ""
    shared = [
        f"{part} {methods[0][j]}" for j, part in enumerate(PARTS) if j not in varying
    ]
    if not shared:
        return ""
    scope = "Methods that are not recipes" if some_named else "All methods"
    return f"{scope}: {', '.join(shared)}."


def break_down(
    instances: Sequence[Texts],
    scores: Array,
    names: Sequence[str],
) -> tuple[Breakdown, ...]:
    """A table for every data set, then for every backbone.

    `scores` has shape (instances, methods). The table of a data set has backbones as
    columns, that of a backbone data sets; if there is only one of these, the columns
    are tasks. There is none for a single instance, and no table twice.
    """
    if len(instances) == 1:
        return ()
    counts = {}
    for part in WORDS:
        counts[part] = len({instance[part] for instance in instances})
    # The table of the only data set is also that of the only backbone.
    is_single = counts[DATASET] == counts[BACKBONE] == 1
    breakdowns = _breakdowns_by(DATASET, BACKBONE, counts, instances, scores, names)
    if not is_single:
        breakdowns += _breakdowns_by(
            BACKBONE, DATASET, counts, instances, scores, names
        )
    return tuple(breakdowns)


def _breakdowns_by(
    by: int,
    other: int,
    counts: Mapping[int, int],
    instances: Sequence[Texts],
    scores: Array,
    names: Sequence[str],
) -> list[Breakdown]:
    """A table for every data set or for every backbone."""
    across = other if counts[other] > 1 else TASK
    values = np.array([instance[by] for instance in instances])
    columns_of_instances = np.array([instance[across] for instance in instances])
    breakdowns = []
    for value in dict.fromkeys(values.tolist()):
        members = values == value
        column_of = columns_of_instances[members]
        columns = tuple(dict.fromkeys(column_of.tolist()))
        breakdown = Breakdown(
            kind=WORDS[by],
            name=value,
            across=WORDS[across],
            columns=columns,
            instances=int(members.sum()),
            rows=_breakdown_rows(scores[members], column_of, columns, names),
        )
        breakdowns.append(breakdown)
    return breakdowns


def _breakdown_rows(
    scores: Array,
    column_of: Array,
    columns: Texts,
    names: Sequence[str],
) -> tuple[BreakdownRow, ...]:
    """A row for every method; the mean of a column is NaN if a score is missing."""
    by_column = [scores[column_of == column].mean(axis=0) for column in columns]
    means = scores.mean(axis=0).tolist()
    ranks = _average_ranks(scores).tolist()
    values = np.stack(by_column, axis=1).tolist()  # (methods, columns)
    return tuple(
        BreakdownRow(name, tuple(row), mean, rank)
        for name, row, mean, rank in zip(names, values, means, ranks)
    )
