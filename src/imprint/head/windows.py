"""Heads of the newest rows of each class: first in, first out."""

from typing import TYPE_CHECKING, Any

import numpy as np

from imprint.core.arrays import Array, rows_at, to_numpy
from imprint.core.errors import ParameterError
from imprint.core.labels import distinct
from imprint.generators._base import row_masses
from imprint.head.merging import ClassFit, StoredRows, concatenated, stored_rows
from imprint.kernels.matching import matching_rows

if TYPE_CHECKING:
    from imprint.head.head import Head


def learn_newest(
    head: "Head",
    X: Array,
    y: Array,
    weight: Array | None,
    max_rows: int,
) -> "Head":
    """The head after more rows, where each class that gets some keeps its `max_rows`
    newest ones: that of a fit of these rows.
    """
    weight = row_masses(X, weight)
    present, index = distinct(y)
    for i, label in enumerate(present):
        rows = np.flatnonzero(index == i)
        new = StoredRows(to_numpy(rows_at(X, rows)), weight[rows])
        if label not in head:
            # the first row makes the class, which is then fitted from the newest
            new = _newest(new, max_rows)
            first = StoredRows(new.rows[:1], new.weight[:1])
            head = head.learn(first.rows, y[rows][:1], first.weight)
            new = StoredRows(new.rows[1:], new.weight[1:])
        head = _with_newest(head, label, new, max_rows)
    return head


def newest_rows(y: Array, max_rows: int) -> Array:
    """The indices of the last rows of each class, in ascending order."""
    present, index = distinct(y)
    newest = []
    for i in range(len(present)):
        rows = np.flatnonzero(index == i)
        newest.append(rows[-max_rows:])
    return np.sort(np.concatenate(newest))


def remaining(
    head: "Head",
    label: Any,
    X: Array,
) -> Array:
    """Which rows are training rows of a class of which the head holds every row.  #
    (n,)
    """
    stored = stored_rows(head, label)
    if stored is not None:
        return matching_rows(X, stored.rows).stored
    summary = head.states[head.labels.index(label)].summary
    kept = head.method.generator.all_rows(summary)
    if kept is None:
        return np.zeros(len(X), dtype=bool)
    rows, _ = kept
    scaled = head.method.scaling("pre").apply(X)
    return matching_rows(scaled, rows).stored


def _with_newest(
    head: "Head",
    label: Any,
    new: StoredRows,
    max_rows: int,
) -> "Head":
    """The head with the newest rows of a class."""
    stored = stored_rows(head, label)
    if stored is not None:
        newest = _newest(concatenated([stored, new]), max_rows)
        state = ClassFit(head.method, head.seed, label).summarise(newest)
        folds = head.folds.forget_rows(label, newest)
        return head.with_state(label, state, folds)
    method = head.method
    summary = head.states[head.labels.index(label)].summary
    kept = method.generator.all_rows(summary)
    if kept is None or head.folds is not None or method.norm_inf != method.norm_pre:
        raise ParameterError(
            f"max_rows={max_rows}: the model does not hold all rows of {label!r}; use"
            " calibrate=True, with max_rows or keep_rows=True from the beginning, or"
            " generator='all' with equal norm_pre and norm_inf."
        )
    rows, masses = kept
    earlier = StoredRows(rows, row_masses(rows, masses))
    scaled = method.scaling("pre").apply(new.rows)
    added = StoredRows(scaled, new.weight)
    newest = _newest(concatenated([earlier, added]), max_rows)
    state = method.summarise_scaled(*newest, head.seed, label)
    return head.with_state(label, state, None)


def _newest(stored: StoredRows, max_rows: int) -> StoredRows:
    """The last rows."""
    start = max(len(stored.rows) - max_rows, 0)
    return StoredRows(stored.rows[start:], stored.weight[start:])
