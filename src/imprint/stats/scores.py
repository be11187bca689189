"""Scores in the shapes people keep them in, as one checked matrix: instances x methods."""

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple, NoReturn

import numpy as np

from imprint.core.errors import ParameterError
from imprint.core.family import unknown
from imprint.core.types import Array

Columns = dict[Any, Any]


class ScoreMatrix(NamedTuple):
    """A complete matrix of finite scores."""

    names: tuple[str, ...]
    values: Array  # (instances, methods)


def read_scores(scores: Any, names: Any, instances: Any) -> ScoreMatrix:
    """The matrix in an array, a wide or long table or a mapping of mappings, or a sentence why not."""
    columns = _columns(scores)
    if columns is None:
        return _array(scores, names, instances)
    if isinstance(names, str):
        return _aligned(_long(columns, names, instances))
    if any(isinstance(column, Mapping) for column in columns.values()):
        if instances is not None:
            _refuse("scores that name their instances take no `instances`")
        return _aligned(_chosen(columns, names))
    return _wide(columns, names, instances, getattr(scores, "index", None))


def _columns(table: Any) -> Columns | None:
    """The columns of whatever is a table, by name; None for an array."""
    if isinstance(table, Mapping):
        return dict(table)
    names = getattr(table, "column_names", getattr(table, "columns", None))  # pyarrow; pandas, polars
    if names is not None:
        return {name: table[name].to_numpy() for name in _distinct(names, "column")}
    if isinstance(table, list | tuple) and table and all(isinstance(row, Mapping) for row in table):
        keys = dict.fromkeys(key for row in table for key in row)
        return {key: [row.get(key) for row in table] for key in keys}
    return None


def _array(scores: Any, names: Any, instances: Any) -> ScoreMatrix:
    values = np.asarray(scores)
    if values.ndim != 2:
        _refuse(f"scores of shape {values.shape}; an array must be instances x methods")
    if names is None or isinstance(names, str) or len(names) != values.shape[1]:
        _refuse(f"{values.shape[1]} columns of scores and names {names!r}; an array needs a name per column")
    if isinstance(instances, str):
        _refuse(f"an array has no column {instances!r}; give one label per row")
    labels = _labels(instances, len(values))
    return _matrix(dict(zip(_distinct(names, "method"), values.T)), labels)


def _wide(columns: Columns, names: Any, instances: Any, index: Any) -> ScoreMatrix:
    if isinstance(instances, str):
        labels = _column(columns, instances)
        columns = {name: column for name, column in columns.items() if name != instances}
    else:
        labels = index if instances is None else instances
    chosen = _chosen(columns, names)
    for name, column in chosen.items():
        if not hasattr(column, "__len__"):
            _refuse(f"method {name!r} has {column!r}; it takes one score per instance")
    lengths = {name: len(column) for name, column in chosen.items()}
    if len(set(lengths.values())) > 1:
        _refuse(f"methods have unlike numbers of scores, {lengths}; write {{method: {{instance: score}}}}")
    return _matrix(chosen, _labels(labels, next(iter(lengths.values()), 0)))


def _long(columns: Columns, names: str, instances: Any) -> Columns:
    """{method: {instance: score}} from one row per score."""
    if not isinstance(instances, str):
        _refuse(f"`names` is the column {names!r}, so `instances` must name a column too")
    methods, labels = _plain(_column(columns, names)), _plain(_column(columns, instances))
    rest = [name for name in columns if name not in (names, instances)]
    if len(rest) != 1:
        _refuse(f"beside {names!r} and {instances!r} a long table has one column of scores, not {rest}")
    aligned: Columns = {}
    for method, instance, score in zip(methods, labels, _plain(columns[rest[0]])):
        if _absent(method) or _absent(instance):
            _refuse(f"a row has {names} {method!r} and {instances} {instance!r}; both must be given")
        row = aligned.setdefault(method, {})
        if instance in row:
            _refuse(f"method {method!r} has two scores for instance {instance!r}")
        row[instance] = score
    return aligned


def _aligned(methods: Columns) -> ScoreMatrix:
    """Every method's scores in one order of the instances."""
    for name, row in methods.items():
        if not isinstance(row, Mapping):
            _refuse(f"method {name!r} does not say which instances its scores belong to, others do")
    labels = list(dict.fromkeys(instance for row in methods.values() for instance in row))
    for name, row in methods.items():
        for instance in labels:
            if instance not in row:
                _refuse(f"method {name!r} has no score for instance {instance!r}")
    return _matrix({name: [row[instance] for instance in labels] for name, row in methods.items()}, labels)


def _matrix(methods: Columns, labels: Sequence[Any]) -> ScoreMatrix:
    names = _distinct(map(str, methods), "method")
    if len(names) < 2 or not labels:
        _refuse(f"{len(names)} methods on {len(labels)} instances; it takes two methods and an instance")
    columns = [_checked(name, column, labels) for name, column in zip(names, methods.values())]
    return ScoreMatrix(names, np.stack(columns, axis=1))


def _checked(method: str, column: Any, labels: Sequence[Any]) -> Array:
    values = np.asarray(column)
    if values.ndim == 1 and values.dtype.kind in "iuf" and np.isfinite(values).all():
        return values
    plain = _plain(column)
    for instance, score in zip(labels, plain):
        if isinstance(score, bool) or not isinstance(score, Real) or not math.isfinite(score):
            what = f"method {method!r} has {score!r} for instance {instance!r}"
            _refuse(f"{what}; a score must be a finite number")
    return np.array(plain, dtype=np.float64)


def _labels(instances: Any, rows: int) -> Sequence[Any]:
    if instances is None:
        return range(rows)
    labels = _plain(instances)
    if len(labels) != rows:
        _refuse(f"{len(labels)} instances for {rows} rows of scores")
    for row, label in enumerate(labels):
        if _absent(label):
            _refuse(f"row {row} does not name its instance")
    return _distinct(labels, "instance")


def _distinct(labels: Iterable[Any], what: str) -> tuple[Any, ...]:
    seen: dict[Any, None] = {}
    for label in labels:
        if label in seen:
            _refuse(f"{what} {label!r} is there twice")
        seen[label] = None
    return tuple(seen)


def _chosen(columns: Columns, names: Any) -> Columns:
    return columns if names is None else {name: _column(columns, name) for name in _distinct(names, "method")}


def _column(columns: Columns, name: Any) -> Any:
    if name not in columns:
        raise unknown("column of scores", name, map(str, columns))
    return columns[name]


def _plain(values: Any) -> list[Any]:
    return list(values.tolist() if hasattr(values, "tolist") else values)


def _absent(label: Any) -> bool:
    return label is None or (isinstance(label, float) and math.isnan(label))


def _refuse(why: str) -> NoReturn:
    raise ParameterError(f"compare: {why}.")
