"""Read scores from an array, a table or mappings into one checked matrix: instances x methods."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sized
from numbers import Real
from typing import Any, NoReturn

import numpy as np

from imprint.core.errors import ParameterError
from imprint.core.family import unknown
from imprint.core.types import Array

Columns = dict[Any, Any]
Pairs = dict[Any, list[tuple[Any, Any]]]
"""For each method, its instances and scores."""


def read_scores(scores: Any, names: Any, instances: Any) -> tuple[tuple[str, ...], Array]:
    """The names of the methods, and a matrix of finite scores, instances x methods; `compare` lists the inputs."""
    columns = _columns(scores)
    if columns is None:
        columns = _array_columns(scores, names)
    if isinstance(names, str):
        return _matrix(_long(columns, names, instances))
    index = getattr(scores, "index", None)  # of pandas; a method of lists
    labels = index if instances is None and not callable(index) else instances
    if isinstance(instances, str):
        labels = _column(columns, instances)
        columns = {name: column for name, column in columns.items() if name != instances}
    methods = columns if names is None else {name: _column(columns, name) for name in _distinct(names, "method")}
    return _matrix(_wide(methods, labels))


def _columns(table: Any) -> Columns | None:
    """The columns of a table by name; None for an array."""
    if isinstance(table, Mapping):
        return dict(table)
    names = getattr(table, "column_names", getattr(table, "columns", None))  # pyarrow; pandas, polars
    if names is not None:
        return {name: table[name].to_numpy() for name in _distinct(names, "column")}
    if isinstance(table, list | tuple) and table and all(isinstance(row, Mapping) for row in table):
        keys = dict.fromkeys(key for row in table for key in row)
        return {key: [row.get(key) for row in table] for key in keys}
    return None


def _array_columns(scores: Any, names: Any) -> Columns:
    try:
        values = np.asarray(scores)
    except ValueError:
        _refuse("the rows of scores have different lengths; an array must be instances x methods")
    if values.ndim != 2:
        _refuse(f"scores of shape {values.shape}; an array must be instances x methods")
    if names is None or isinstance(names, str) or len(names) != values.shape[1]:
        _refuse(f"{values.shape[1]} columns of scores and names {names!r}; an array needs a name per column")
    return dict(zip(_distinct(names, "method"), values.T))


def _wide(columns: Columns, labels: Any) -> Pairs:
    """The scores of one column per method; a mapping names its instances itself, the others are labelled by row."""
    for name, column in columns.items():
        if not isinstance(column, Sized):
            _refuse(f"method {name!r} has {column!r}; give one score per instance")
    rows = max((len(column) for column in columns.values() if not isinstance(column, Mapping)), default=0)
    labels = range(rows) if labels is None else _plain(labels)
    if len(labels) != rows:
        _refuse(f"{len(labels)} instances for {rows} rows of scores")
    return {name: list(c.items() if isinstance(c, Mapping) else zip(labels, c)) for name, c in columns.items()}


def _long(columns: Columns, names: str, instances: Any) -> Pairs:
    """The scores of a table with one row per score."""
    if not isinstance(instances, str):
        _refuse(f"`names` is the column {names!r}, so `instances` must name a column too")
    others = [name for name in columns if name not in (names, instances)]
    if len(others) != 1:
        _refuse(f"next to {names!r} and {instances!r}, a long table has one column of scores, not {others}")
    pairs: Pairs = defaultdict(list)
    methods, labels = (_plain(_column(columns, name)) for name in (names, instances))
    for method, label, score in zip(methods, labels, columns[others[0]]):
        pairs[method].append((label, score))
    return pairs


def _matrix(by_method: Pairs) -> tuple[tuple[str, ...], Array]:
    """The checked scores of all methods, in one order of the instances."""
    names, columns = _distinct(map(str, by_method), "method"), []
    labels = dict.fromkeys(label for pairs in by_method.values() for label, _ in pairs)
    if any(label is None or (isinstance(label, float) and math.isnan(label)) for label in (*by_method, *labels)):
        _refuse("a score does not name its method or its instance")
    if len(names) < 2 or not labels:
        _refuse(f"{len(names)} methods on {len(labels)} instances; give at least two methods and one instance")
    for name, pairs in zip(names, by_method.values()):
        _distinct((label for label, _ in pairs), f"method {name!r}: instance")
        scores = dict(pairs)
        for label in labels:
            if label not in scores:
                _refuse(f"method {name!r} has no score for instance {label!r}")
            score = scores[label]
            if isinstance(score, bool) or not isinstance(score, Real) or not math.isfinite(score):
                shown = score.item() if isinstance(score, np.generic) else score
                _refuse(f"method {name!r} has {shown!r} for instance {label!r}; a score must be a finite number")
        column = np.asarray([scores[label] for label in labels])
        columns.append(column if column.dtype.kind in "iuf" else column.astype(np.float64))
    return names, np.stack(columns, axis=1)


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
