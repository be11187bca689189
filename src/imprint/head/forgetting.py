"""Heads without single training rows, as if they had never been learnt."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from imprint.core.arrays import Array
from imprint.core.errors import ParameterError, unknown
from imprint.head.merging import ClassFit, StoredRows, stored_rows
from imprint.kernels.matching import matching_rows

if TYPE_CHECKING:
    from imprint.head.head import Head


def forget_rows(
    head: "Head",
    X: Array,
    labels: Sequence[Any] | None,
) -> "Head":
    """The head without some rows; with `labels`, one for each row, only in their
    classes.

    Refuses rows that the head does not have. A class whose last row is forgotten is
    forgotten.
    """
    X = np.unique(X, axis=0) if labels is None else X
    found = np.zeros(len(X), dtype=bool)
    is_named = labels is not None
    for label in head.labels if labels is None else dict.fromkeys(labels):
        if label not in head:
            raise unknown("class", label, head.labels)
        index = np.arange(len(X))
        if labels is not None:
            index = np.flatnonzero([one == label for one in labels])
        rows = X[index]
        head, is_present = _forget_in_class(head, label, rows, is_named)
        found[index] |= is_present
    if not found.all():
        first = int(np.flatnonzero(~found)[0])
        where = "the model" if labels is None else f"the class {labels[first]!r}"
        raise ParameterError(
            f"forget_rows: {(~found).sum():,} of {len(X):,} rows are not training rows"
            f" of {where}; nothing was forgotten."
        )
    return head


def _forget_in_class(
    head: "Head",
    label: Any,
    X: Array,
    is_named: bool,
) -> tuple["Head", Array]:
    """The head without the rows that are in a class, and which rows these are.  #
    (n,)

    `is_named` states that the user named the class.
    """
    stored = stored_rows(head, label)
    if stored is not None:
        return _refit_class(head, label, X, stored)
    is_present = _which_are_in(head, label, X, is_named)
    rows = np.unique(X[is_present], axis=0)
    if not len(rows):
        return head, is_present
    if _count_rows(head, label) <= len(rows):
        return head.forget(label), is_present
    folds = head.folds
    if folds is not None:
        folds = folds.remove_rows(label, rows)
    state = head.states[head.labels.index(label)]
    rest = head.method.remove(state, rows, head.seed, label)
    return head.with_state(label, rest, folds), is_present


def _refit_class(
    head: "Head",
    label: Any,
    X: Array,
    stored: StoredRows,
) -> tuple["Head", Array]:
    """The head with a class that is fitted again from its other rows, all of which are
    stored.
    """
    matches = matching_rows(stored.rows, X)
    remains = ~matches.stored
    if remains.all():
        return head, matches.given
    if not remains.any():
        return head.forget(label), matches.given
    rest = StoredRows(stored.rows[remains], stored.weight[remains])
    fit = ClassFit(head.method, head.seed, label)
    state = fit.summarise(rest)
    folds = head.folds.forget_rows(label, rest)
    return head.with_state(label, state, folds), matches.given


def _which_are_in(
    head: "Head",
    label: Any,
    X: Array,
    is_named: bool,
) -> Array:
    """Which rows are in a class, as far as the head stores it.  # (n,)"""
    if head.folds is not None:
        return np.asarray(head.folds.contains(label, X))
    state = head.states[head.labels.index(label)]
    kept = head.method.generator.all_rows(state.summary)
    if kept is not None:
        scaled = head.method.scaling("pre").apply(X)
        return matching_rows(kept[0], scaled).given
    if not is_named:
        raise ParameterError(
            "forget_rows: the model does not store which rows it has; name the class of"
            " every row (y), or keep all rows (keep_rows=True, --keep-rows)."
        )
    return np.ones(len(X), dtype=bool)


def _count_rows(head: "Head", label: Any) -> float:
    """The number of rows of a class, as far as the head stores it; else infinite."""
    if head.folds is not None:
        return len(head.folds.held[label].digests)
    summary = head.states[head.labels.index(label)].summary
    kept = head.method.generator.all_rows(summary)
    if kept is not None:
        return len(np.unique(kept[0], axis=0))
    # without masses, proxies do not tell how many rows there were
    return float(summary["mass"].sum()) if "mass" in summary else np.inf
