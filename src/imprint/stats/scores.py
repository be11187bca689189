"""Read scores from an array, a table or mappings into one checked matrix: instances x methods."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from numbers import Real
from typing import Any, NoReturn

import numpy as np

from imprint.core.errors import ParameterError
from imprint.core.family import unknown
from imprint.core.types import Array

Columns = dict[Any, Any]
ScoreMatrix = tuple[tuple[str, ...], Array]
"""The names of the methods, and a matrix of finite scores, instances x methods."""


def read_scores(scores: Any, names: Any, instances: Any) -> ScoreMatrix:
    """The matrix of an array, a wide table, a long table or one mapping per method; see `compare`."""
    columns = _columns(scores)
    if columns is None:
        return _wide(_array_columns(scores, names, instances), None, instances, None)
    if isinstance(names, str):
        return _aligned(_long(columns, names, instances))
    if any(isinstance(column, Mapping) for column in columns.values()):
        if instances is not None:
            _refuse("scores that name their instances take no `instances`")
        return _aligned(_selected(columns, names))
    return _wide(columns, names, instances, getattr(scores, "index", None))


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


def _array_columns(scores: Any, names: Any, instances: Any) -> Columns:
    values = np.asarray(scores)
    if values.ndim != 2:
        _refuse(f"scores of shape {values.shape}; an array must be instances x methods")
    if names is None or isinstance(names, str) or len(names) != values.shape[1]:
        _refuse(f"{values.shape[1]} columns of scores and names {names!r}; an array needs a name per column")
    if isinstance(instances, str):
        _refuse(f"an array has no column {instances!r}; give one label per row")
    return dict(zip(_distinct(names, "method"), values.T))


def _wide(columns: Columns, names: Any, instances: Any, index: Any) -> ScoreMatrix:
    labels = index if instances is None else instances
    if isinstance(instances, str):
        labels = _column(columns, instances)
        columns = {name: column for name, column in columns.items() if name != instances}
    methods = _selected(columns, names)
    lengths = {name: len(column) if hasattr(column, "__len__") else 0 for name, column in methods.items()}
    if len(set(lengths.values())) > 1:
        _refuse(f"methods have different numbers of scores, {lengths}; write {{method: {{instance: score}}}}")
    rows = next(iter(lengths.values()), 0)
    labels = range(rows) if labels is None else _plain(labels)
    if len(labels) != rows:
        _refuse(f"{len(labels)} instances for {rows} rows of scores")
    if any(map(_absent, labels)):
        _refuse(f"row {list(map(_absent, labels)).index(True)} does not name its instance")
    return _matrix(methods, _distinct(labels, "instance"))


def _long(columns: Columns, names: str, instances: Any) -> Columns:
    """{method: {instance: score}} from one row per score."""
    if not isinstance(instances, str):
        _refuse(f"`names` is the column {names!r}, so `instances` must name a column too")
    rest = [name for name in columns if name not in (names, instances)]
    if len(rest) != 1:
        _refuse(f"besides {names!r} and {instances!r}, a long table has one column of scores, not {rest}")
    aligned: Columns = {}
    for method, instance, score in zip(*(_plain(_column(columns, name)) for name in (names, instances, rest[0]))):
        if _absent(method) or _absent(instance):
            _refuse(f"a row has {names} {method!r} and {instances} {instance!r}; both must be given")
        if instance in aligned.setdefault(method, {}):
            _refuse(f"method {method!r} has two scores for instance {instance!r}")
        aligned[method][instance] = score
    return aligned


def _aligned(methods: Columns) -> ScoreMatrix:
    """The scores of all methods in one order of the instances."""
    for name, by_instance in methods.items():
        if not isinstance(by_instance, Mapping):
            _refuse(f"method {name!r} does not name the instances of its scores, other methods do")
    labels = list(dict.fromkeys(instance for by_instance in methods.values() for instance in by_instance))
    for name, instance in product(methods, labels):
        if instance not in methods[name]:
            _refuse(f"method {name!r} has no score for instance {instance!r}")
    return _matrix({name: [scores[label] for label in labels] for name, scores in methods.items()}, labels)


def _matrix(methods: Columns, labels: Sequence[Any]) -> ScoreMatrix:
    names = _distinct(map(str, methods), "method")
    if len(names) < 2 or not labels:
        _refuse(f"{len(names)} methods on {len(labels)} instances; give at least two methods and one instance")
    return names, np.stack([_finite(name, column, labels) for name, column in zip(names, methods.values())], axis=1)


def _finite(method: str, column: Any, labels: Sequence[Any]) -> Array:
    for instance, score in zip(labels, _plain(column)):
        if isinstance(score, bool) or not isinstance(score, Real) or not math.isfinite(score):
            _refuse(f"method {method!r} has {score!r} for instance {instance!r}; a score must be a finite number")
    values = np.asarray(column)
    return values if values.dtype.kind in "iuf" else values.astype(np.float64)


def _distinct(labels: Iterable[Any], kind: str) -> tuple[Any, ...]:
    labels = tuple(labels)
    for label, count in Counter(labels).items():
        if count > 1:
            _refuse(f"{kind} {label!r} appears twice")
    return labels


def _selected(columns: Columns, names: Any) -> Columns:
    return columns if names is None else {name: _column(columns, name) for name in _distinct(names, "method")}


def _column(columns: Columns, name: Any) -> Any:
    if name not in columns:
        raise unknown("column of scores", name, map(str, columns))
    return columns[name]


def _plain(values: Any) -> list[Any]:
    return list(values.tolist() if hasattr(values, "tolist") else values)


def _absent(label: Any) -> bool:
    return label is None or (isinstance(label, float) and math.isnan(label))


def _refuse(reason: str) -> NoReturn:
    raise ParameterError(f"compare: {reason}.")
