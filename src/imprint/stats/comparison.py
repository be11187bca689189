"""`compare`: reads scores, ranks methods over instances, and tests which differences
are significant.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from numbers import Real
from typing import Any, NamedTuple, NoReturn

import numpy as np

from imprint.core.arrays import Array
from imprint.core.errors import ParameterError, unknown
from imprint.stats.rank_tests import Friedman, friedman, holm, rank_rows, wilcoxon

Columns = dict[Any, Any]
Score = tuple[Any, Any, Any]  # method, instance, score


class Pair(NamedTuple):
    """Two methods: the Wilcoxon p-value, raw and adjusted by Holm, and whether they
    differ significantly.
    """

    first: str
    second: str
    p: float
    adjusted: float
    significant: bool


@dataclass(frozen=True)
class Comparison:
    """The result of `compare`, an immutable value."""

    names: tuple[str, ...]  # the methods in the order of the input
    ranks: tuple[float, ...]
    """The average rank of each method, in the order of `names`; rank 1 is the highest
    score.
    """
    friedman: Friedman
    pairs: tuple[Pair, ...]  # every pair once, in the order of `names`
    alpha: float
    instances: int  # the number of instances

    @property
    def order(self) -> tuple[str, ...]:
        """The methods from best to worst average rank; equal ranks in the order of
        their names.
        """
        return tuple(name for _, name in sorted(zip(self.ranks, self.names)))

    @cached_property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The maximal runs of methods, in the order of their ranks, of which no two
        differ significantly.
        """
        differ = {
            frozenset((pair.first, pair.second))
            for pair in self.pairs
            if pair.significant
        }
        order, groups = self.order, []
        end = 0
        for start in range(len(order)):
            previous_end = end
            while end < len(order) and not any(
                frozenset((order[end], other)) in differ for other in order[start:end]
            ):
                end += 1
            if end > previous_end and end - start > 1:
                groups.append(order[start:end])
        return tuple(groups)

    def rank(self, name: str) -> float:
        """The average rank of one method."""
        if name not in self.names:
            raise unknown("method", name, self.names)
        return self.ranks[self.names.index(name)]

    def pair(self, first: str, second: str) -> Pair:
        """The comparison of two methods, in either order."""
        for pair in self.pairs:
            if {first, second} == {pair.first, pair.second}:
                return pair
        raise unknown(
            "pair of methods",
            f"{first}, {second}",
            [f"{p.first}, {p.second}" for p in self.pairs],
        )


def compare(
    scores: Any,
    names: Sequence[str] | str | None = None,
    instances: Sequence[Any] | str | None = None,
    alpha: float = 0.05,
) -> Comparison:
    """Rank methods over instances and test which differences are significant; higher
    scores are better.

    `scores` is one of

    - an array, instances x methods, with the `names` of the methods (`instances`:
      labels of the rows);
    - a mapping of methods, `{method: {instance: score}}`: methods are aligned by
      instance;
    - a wide table, one column per method: pandas, pyarrow, a mapping of columns or a
      list of dict rows, with `instances` the name of the instance column (`names`: the
      columns of the methods [default: all others]);
    - a long table, one row per score, with `names` and `instances` the names of the
      columns of the method and of the instance; the remaining column holds the scores.

    A score that is missing, duplicate or not finite is an error that names it. With
    three or more methods, a pair is significant if Friedman's test rejects at `alpha`
    and the Holm-adjusted Wilcoxon p-value is at most `alpha`; with two methods, the
    Wilcoxon test decides.
    """
    if not (isinstance(alpha, int | float) and 0 < alpha < 1):
        raise ParameterError(
            f"compare(alpha={alpha!r}): alpha must be a number between 0 and 1."
        )
    methods, values = _read_scores(scores, names, instances)
    overall = friedman(values)
    ranks = tuple(rank_rows(values).mean(axis=0).tolist())
    may_differ = len(methods) == 2 or overall.p <= alpha
    p = np.array(
        [wilcoxon(first, second) for first, second in combinations(values.T, 2)]
    )
    pairs = tuple(
        Pair(*pair, raw, adjusted, may_differ and adjusted <= alpha)
        for pair, raw, adjusted in zip(
            combinations(methods, 2), p.tolist(), holm(p).tolist()
        )
    )
    return Comparison(methods, ranks, overall, pairs, float(alpha), len(values))


def _read_scores(
    scores: Any, names: Any, instances: Any
) -> tuple[tuple[str, ...], Array]:
    """The names of the methods, and a matrix of finite scores, instances x methods."""
    columns = _columns(scores, names)
    if isinstance(names, str):
        return _matrix(*_long(columns, names, instances))
    index = getattr(scores, "index", None)  # of pandas; a method of lists
    labels = index if instances is None and not callable(index) else instances
    if isinstance(instances, str):
        labels = _column(columns, instances)
        columns = {
            name: column for name, column in columns.items() if name != instances
        }
    methods = (
        columns
        if names is None
        else {name: _column(columns, name) for name in _distinct(names, "method")}
    )
    return _matrix(methods, _wide(methods, labels))


def _columns(table: Any, names: Any) -> Columns:
    """The columns of a table by name, or of an array by the names of the methods."""
    if isinstance(table, Mapping):
        return dict(table)
    # pyarrow; pandas, polars
    column_names = getattr(table, "column_names", getattr(table, "columns", None))
    if column_names is not None:
        return {
            name: table[name].to_numpy() for name in _distinct(column_names, "column")
        }
    if (
        isinstance(table, list | tuple)
        and table
        and all(isinstance(row, Mapping) for row in table)
    ):
        keys = dict.fromkeys(key for row in table for key in row)
        return {key: [row.get(key) for row in table] for key in keys}
    try:
        values = np.asarray(table)
    except ValueError:
        _refuse(
            "the rows of scores have different lengths; an array must be instances x"
            " methods"
        )
    if values.ndim != 2:
        _refuse(f"scores of shape {values.shape}; an array must be instances x methods")
    if names is None or isinstance(names, str) or len(names) != values.shape[1]:
        _refuse(
            f"{values.shape[1]} columns of scores and names {names!r}; an array needs a"
            " name per column"
        )
    return dict(zip(_distinct(names, "method"), values.T))


def _wide(columns: Columns, labels: Any) -> list[Score]:
    """The scores in one column per method; a column that is a mapping names its
    instances, others use `labels`.
    """
    for name, column in columns.items():
        if not isinstance(column, Sized):
            _refuse(f"method {name!r} has {column!r}; give one score per instance")
    rows = max(
        (len(column) for column in columns.values() if not isinstance(column, Mapping)),
        default=0,
    )
    labels = range(rows) if labels is None else _plain(labels)
    if len(labels) != rows:
        _refuse(f"{len(labels)} instances for {rows} rows of scores")
    scores = {
        name: c.items() if isinstance(c, Mapping) else zip(labels, c)
        for name, c in columns.items()
    }
    return [
        (name, label, score)
        for name, by_instance in scores.items()
        for label, score in by_instance
    ]


def _long(
    columns: Columns, names: str, instances: Any
) -> tuple[list[Any], Iterable[Score]]:
    """The methods and the scores of a long table."""
    if not isinstance(instances, str):
        _refuse(
            f"`names` is the column {names!r}, so `instances` must name a column too"
        )
    others = [name for name in columns if name not in (names, instances)]
    if len(others) != 1:
        _refuse(
            f"next to {names!r} and {instances!r}, a long table has one column of"
            f" scores, not {others}"
        )
    methods, labels = (_plain(_column(columns, name)) for name in (names, instances))
    return methods, zip(methods, labels, columns[others[0]])


def _matrix(
    methods: Iterable[Any], scores: Iterable[Score]
) -> tuple[tuple[str, ...], Array]:
    """The checked scores of all methods, in one order of the instances."""
    table: dict[Any, dict[Any, Any]] = {method: {} for method in methods}
    for method, label, score in scores:
        if any(
            name is None or (isinstance(name, float) and math.isnan(name))
            for name in (method, label)
        ):
            _refuse("a score does not name its method or its instance")
        if label in table[method]:
            _refuse(f"method {method!r} has two scores for instance {label!r}")
        if (
            isinstance(score, bool)
            or not isinstance(score, Real)
            or not math.isfinite(score)
        ):
            shown = score.item() if isinstance(score, np.generic) else score
            _refuse(
                f"method {method!r} has {shown!r} for instance {label!r}; a score must"
                " be a finite number"
            )
        table[method][label] = score
    names, labels = (
        _distinct(map(str, table), "method"),
        dict.fromkeys(chain(*table.values())),
    )
    if len(names) < 2 or not labels:
        _refuse(
            f"{len(names)} methods on {len(labels)} instances; give at least two"
            " methods and one instance"
        )
    for name, by_instance in zip(names, table.values()):
        for label in labels:
            if label not in by_instance:
                _refuse(f"method {name!r} has no score for instance {label!r}")
    columns = [
        np.asarray([by_instance[label] for label in labels])
        for by_instance in table.values()
    ]
    return names, np.stack(
        [c if c.dtype.kind in "iuf" else c.astype(np.float64) for c in columns], axis=1
    )


def _distinct(labels: Iterable[Any], kind: str) -> tuple[Any, ...]:
    labels = tuple(labels)
    for label, count in Counter(labels).items():
        if count > 1:
            _refuse(f"{kind} {label!r} appears twice")
    return labels


def _column(columns: Columns, name: Any) -> Any:
    if name not in columns:
        raise unknown("column of scores", name, map(str, columns))
    return columns[name]


def _plain(labels: Any) -> list[Any]:
    return list(labels.tolist() if hasattr(labels, "tolist") else labels)


def _refuse(reason: str) -> NoReturn:
    raise ParameterError(f"compare: {reason}.")
