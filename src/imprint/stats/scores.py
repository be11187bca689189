"""Scores of methods on instances, read from arrays, mappings and tables.

Whatever its form, a table becomes triples (method, instance, score). These are checked
one by one, so that an error names the method and the instance, and then arranged.
"""

import math
from collections import Counter
from collections.abc import (
    Hashable,
    Iterable,
    Mapping,
    Sequence,
    Sized,
)
from itertools import chain
from numbers import Real
from typing import (
    NoReturn,
    Protocol,
    TypeAlias,
    TypeVar,
)

import numpy as np
from numpy.typing import ArrayLike

from imprint.core.arrays import Array
from imprint.core.errors import ParameterError, unknown

L = TypeVar("L", bound=Hashable)


class Column(Protocol):
    """A column of a data frame."""

    def to_numpy(self) -> Array:
        """Its values."""


class DataFrame(Protocol):
    """What pandas, polars and pyarrow tables have in common, next to their columns'
    names.
    """

    def __getitem__(self, name: str, /) -> Column:
        """The column of a name."""


Labels: TypeAlias = Sequence[Hashable]
Score: TypeAlias = tuple[Hashable, Hashable, object]  # method, instance, score
# Scores by method and instance.
Table: TypeAlias = dict[Hashable, dict[Hashable, Real | float]]
Columns: TypeAlias = dict[Hashable, Iterable[object]]
Scores: TypeAlias = (
    ArrayLike
    | DataFrame
    | Mapping[str, object]
    | Mapping[int, object]
    | Sequence[Mapping[str, object]]
)


def read_scores(
    scores: Scores,
    names: Labels | str | None,
    instances: Labels | str | None,
) -> tuple[tuple[str, ...], Array]:
    """The names of the methods, and a matrix of finite scores, instances x methods."""
    columns = _columns(scores, names)
    if isinstance(names, str):
        methods, triples = _read_long(columns, names, instances)
        return _matrix(methods, triples)
    labels: Iterable[Hashable] | None
    if isinstance(instances, str):
        labels = _labels(_column(columns, instances))
        del columns[instances]
    elif instances is None:
        labels = _index(scores)
    else:
        labels = instances
    if names is not None:
        methods = list(_distinct(names, "method"))
        columns = {name: _column(columns, name) for name in methods}
    return _matrix(columns, _read_wide(columns, labels))


def _index(table: object) -> Iterable[Hashable] | None:
    """The labels of the rows of a pandas table."""
    index = getattr(table, "index", None)
    # `index` of a list is a method
    return None if callable(index) else index


def _columns(table: Scores, names: Labels | str | None) -> Columns:
    """The columns of a table by name, or of an array by the names of the methods."""
    if isinstance(table, Mapping):
        return dict(table)
    # pandas and polars call the names `columns`; the `columns` of pyarrow are arrays.
    column_names = getattr(table, "columns", None)
    column_names = getattr(table, "column_names", column_names)
    if column_names is not None:
        frame: DataFrame = table  # type: ignore[assignment]  # it has named columns
        distinct_names = _distinct(column_names, "column")
        return {name: frame[name].to_numpy() for name in distinct_names}
    if isinstance(table, list | tuple) and table:
        rows = [row for row in table if isinstance(row, Mapping)]
        if len(rows) == len(table):
            return _columns_of_rows(rows)
    return _columns_of_array(table, names)


def _columns_of_rows(rows: Sequence[Mapping[str, object]]) -> Columns:
    """The columns of a list of dict rows; a key that a row lacks is None."""
    keys = dict.fromkeys(chain.from_iterable(rows))
    columns: Columns = {}
    for key in keys:
        columns[key] = [row.get(key) for row in rows]
    return columns


def _columns_of_array(array: Scores, names: Labels | str | None) -> Columns:
    """The columns of a two-dimensional array."""
    try:
        values = np.asarray(array)
    except ValueError:
        _refuse(
            "the rows of scores have different lengths; an array must be instances x"
            " methods"
        )
    if values.ndim != 2:
        _refuse(f"scores of shape {values.shape}; an array must be instances x methods")
    width = values.shape[1]
    if names is None or isinstance(names, str) or len(names) != width:
        _refuse(
            f"{width} columns of scores and names {names!r}; an array needs a name per"
            " column"
        )
    return dict(zip(_distinct(names, "method"), values.T))


def _read_wide(columns: Columns, labels: Iterable[Hashable] | None) -> list[Score]:
    """The scores in one column per method.

    A column that is a mapping names its instances; the others use `labels`.
    """
    rows = 0
    for name, column in columns.items():
        if isinstance(column, Mapping):
            continue
        if not isinstance(column, Sized):
            _refuse(f"method {name!r} has {column!r}; give one score per instance")
        rows = max(rows, len(column))
    row_labels = _labels(range(rows) if labels is None else labels)
    if len(row_labels) != rows:
        _refuse(f"{len(row_labels)} instances for {rows} rows of scores")

    scores: list[Score] = []
    for name, column in columns.items():
        labelled: Iterable[tuple[Hashable, object]] = zip(row_labels, column)
        if isinstance(column, Mapping):
            labelled = column.items()
        scores += [(name, label, score) for label, score in labelled]
    return scores


def _read_long(
    columns: Columns,
    names: str,
    instances: Labels | str | None,
) -> tuple[list[Hashable], Iterable[Score]]:
    """The methods and the scores of a table with one row per score."""
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
    methods = _labels(_column(columns, names))
    labels = _labels(_column(columns, instances))
    scores = columns[others[0]]
    return methods, zip(methods, labels, scores)


def _matrix(
    methods: Iterable[Hashable], scores: Iterable[Score]
) -> tuple[tuple[str, ...], Array]:
    """The checked scores of all methods, in one order of the instances."""
    table: Table = {method: {} for method in methods}
    for method, label, score in scores:
        _check_names(method, label)
        if label in table[method]:
            _refuse(f"method {method!r} has two scores for instance {label!r}")
        table[method][label] = _checked_score(method, label, score)

    # Methods may be numbers: their texts must differ too.
    texts = map(str, table)
    names = _distinct(texts, "method")
    # The instances in the order of their first appearance.
    labels = dict.fromkeys(chain.from_iterable(table.values()))
    if len(names) < 2 or not labels:
        _refuse(
            f"{len(names)} methods on {len(labels)} instances; give at least two"
            " methods and one instance"
        )
    columns = []
    for name, by_instance in zip(names, table.values()):
        for label in labels:
            if label not in by_instance:
                _refuse(f"method {name!r} has no score for instance {label!r}")
        column = np.asarray([by_instance[label] for label in labels])
        # Fractions and decimals are numbers too, but NumPy holds them as objects.
        if column.dtype.kind not in "iuf":
            column = column.astype(np.float64)
        columns.append(column)
    return names, np.stack(columns, axis=1)


def _check_names(*names: Hashable) -> None:
    """Refuse a missing name: pandas writes NaN for an empty cell."""
    for name in names:
        is_nan = isinstance(name, float) and math.isnan(name)
        if name is None or is_nan:
            _refuse("a score does not name its method or its instance")


def _checked_score(
    method: Hashable,
    label: Hashable,
    score: object,
) -> Real | float:
    """The score, unless it is not a finite number."""
    number = score if isinstance(score, Real) else math.nan
    # A bool is a number to Python, but in a table it is a mistake.
    if math.isfinite(number) and not isinstance(score, bool):
        return number
    # A NumPy number would be shown as np.float64(nan).
    shown = score.item() if isinstance(score, np.generic) else score
    _refuse(
        f"method {method!r} has {shown!r} for instance {label!r}; a score must be a"
        " finite number"
    )


def _distinct(labels: Iterable[L], kind: str) -> tuple[L, ...]:
    """The labels; refused if one appears twice."""
    labels = tuple(labels)
    for label, count in Counter(labels).items():
        if count > 1:
            _refuse(f"{kind} {label!r} appears twice")
    return labels


def _column(columns: Columns, name: Hashable) -> Iterable[object]:
    if name not in columns:
        raise unknown("column of scores", name, map(str, columns))
    return columns[name]


def _labels(labels: Iterable[object]) -> list[Hashable]:
    """The labels as plain Python values, which are compared and shown as such."""
    if hasattr(labels, "tolist"):
        labels = labels.tolist()
    return list(labels)


def _refuse(reason: str) -> NoReturn:
    raise ParameterError(f"compare: {reason}.")
