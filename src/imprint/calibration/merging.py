"""One cross-validation from several, and the held rows of a class under new numbers.

Key and fold of a row follow from its number in the class. Each fold model of a class
that is not held completely was fitted without the rows of one fold, so such rows get
new numbers that have their old folds.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from imprint.calibration.held import (
    FOLDS,
    MAX_HELD_ROWS,
    HeldRows,
    absorb,
    folds_of,
    keys_of,
    row_digests,
    select,
)
from imprint.core.arrays import Array, factorize
from imprint.core.errors import ParameterError
from imprint.core.labels import as_labels
from imprint.head.merging import StoredRows, concatenated
from imprint.method import ClassState

if TYPE_CHECKING:
    from imprint.calibration.cross_validation import CrossValidation


class NumberedRows(NamedTuple):
    """The held rows of a class, and the folds of all its distinct rows."""

    held: HeldRows
    fold: Array  # (n,)


def merge_folds(parts: Sequence["CrossValidation"]) -> "CrossValidation":
    """The cross-validation of all rows of several.

    Classes whose rows are all held are learnt again from them, as in one fit.
    """
    held: dict[Any, HeldRows] = {}
    fitted: dict[Any, tuple[ClassState, ...]] = {}
    added: dict[Any, StoredRows] = {}
    for label in {label for part in parts for label in part.held}:
        holders = [part for part in parts if label in part.held]
        complete = [part for part in holders if part.held[label].complete]
        others = [part for part in holders if not part.held[label].complete]
        if complete and len(holders) == 1:
            held[label] = complete[0].held[label]
        elif complete:
            rows = [part.held[label].in_order() for part in complete]
            added[label] = concatenated([StoredRows(X, w) for X, w, _ in rows])
        if others:
            held[label] = _merged_rows(others, label)
            fitted[label] = _merged_states(others, label)
    keep_rows = all(part.keep_rows for part in parts)
    merged = replace(parts[0], held=held, fitted=fitted, keep_rows=keep_rows)
    if added:
        labels = [label for label, rows in added.items() for _ in rows.weight]
        stored = concatenated(list(added.values()))
        merged = merged.learn(stored.rows, as_labels(labels), stored.weight)
    return merged


def rename_class(
    folds: "CrossValidation",
    old: object,
    new: object,
) -> "CrossValidation":
    """The cross-validation with another name for a class.

    Keys and folds depend on the name. A class whose rows are all held gets those of its
    new name; the rows of another class keep their folds.
    """
    seed = folds.empty.seed
    held = {new if label == old else label: rows for label, rows in folds.held.items()}
    fitted = {
        new if label == old else label: states for label, states in folds.fitted.items()
    }
    if new in fitted:
        numbered = numbered_rows(held[new], seed, old)
        held[new] = renumbered([numbered], seed, new)
        return replace(folds, held=held, fitted=fitted)
    rows, weight, _ = held[new].in_order()
    held[new], _ = absorb(None, rows, weight, seed, new, limit=None)
    return replace(folds, held=held, fitted=fitted)


def without_rows(
    folds: "CrossValidation",
    label: object,
    X: Array,
) -> "CrossValidation":
    """The cross-validation without some rows of a class, each of which came once.

    Other rows keep their folds.
    """
    seed = folds.empty.seed
    held = folds.held[label]
    if held.total != len(held.digests):
        raise ParameterError(
            f"forget_rows: some rows of {label!r} came several times, and the model"
            " does not store which; keep all rows (keep_rows=True, --keep-rows)."
        )
    digests = row_digests(X)
    remains = ~np.isin(held.digests, digests)
    fold = folds_of(seed, label, len(remains))

    # the numbers of the other rows, which follow one another
    number = np.cumsum(remains) - 1
    usable = remains[held.index]
    rest = replace(
        held,
        rows=held.rows[usable],
        index=number[held.index[usable]],
        weight=held.weight[usable],
        fold=held.fold[usable],
        digests=held.digests[remains],
        total=float(remains.sum()),
    )
    fold_of = dict(zip(held.digests.tolist(), fold.tolist()))
    fold_of_row = np.array([fold_of[row] for row in digests.tolist()])
    states = []
    for f, state in enumerate(folds.fitted[label]):
        rows = X[fold_of_row != f]
        if len(rows):
            state = folds.empty.method.remove(state, rows, seed, label)
        states.append(state)
    numbered = NumberedRows(rest, fold[remains])
    return replace(
        folds,
        held={**folds.held, label: renumbered([numbered], seed, label)},
        fitted={**folds.fitted, label: tuple(states)},
    )


def _merged_rows(parts: Sequence["CrossValidation"], label: object) -> HeldRows:
    """The held rows of a class, of which no part holds all rows."""
    if len(parts) == 1:
        return parts[0].held[label]
    seed = parts[0].empty.seed
    numbered = [numbered_rows(part.held[label], seed, label) for part in parts]
    return renumbered(numbered, seed, label)


def _merged_states(
    parts: Sequence["CrossValidation"],
    label: object,
) -> tuple[ClassState, ...]:
    """The states of a class without each fold, where no part holds all its rows."""
    if len(parts) == 1:
        return parts[0].fitted[label]
    method = parts[0].empty.method
    seed = parts[0].empty.seed
    return tuple(
        method.merge([part.fitted[label][f] for part in parts], seed, label)
        for f in range(FOLDS)
    )


def numbered_rows(
    held: HeldRows,
    seed: int,
    label: object,
) -> NumberedRows:
    """The held rows of a class with the folds of all its rows."""
    return NumberedRows(held, folds_of(seed, label, len(held.digests)))


def renumbered(
    parts: Sequence[NumberedRows],
    seed: int,
    label: object,
) -> HeldRows:
    """The held rows of a class that has the rows of all parts, with their old folds.

    Each part has a share of the held rows in proportion to its number of rows. Held
    rows get the numbers with the smallest keys, as if they had been chosen among all
    rows: rows that arrive later compete with them on equal terms. Numbers of the right
    fold may run out, by a few rows of each part; these rows are not held.
    """
    part_folds = np.concatenate([part.fold for part in parts])
    part_digests = np.concatenate([part.held.digests for part in parts])
    first, index = factorize(part_digests)
    fold = part_folds[first]

    # a row that is in several parts must have been left out of the same fold model
    differs = np.zeros(len(first), dtype=bool)
    differs[index[fold[index] != part_folds]] = True
    offsets = np.cumsum([0, *(len(part.fold) for part in parts)])
    held = [
        (part.held, index[offset + part.held.index])
        for part, offset in zip(parts, offsets)
    ]
    chosen = _shares(held, differs, [len(part.fold) for part in parts])
    if not len(chosen):
        raise ParameterError(
            f"merge: the models have the same rows of {label!r} in different folds;"
            " fit one model."
        )
    number, has_fold = _numbers(fold, chosen, seed, label)
    rows, weight = _weights(held, chosen)
    usable = has_fold[chosen]
    digests = np.empty(len(first), dtype=np.uint64)
    digests[number] = part_digests[first]
    return select(
        rows[usable],
        number[chosen][usable],
        weight[usable],
        digests,
        sum(part.held.total for part in parts),
        seed,
        label,
    )


def _shares(
    held: Sequence[tuple[HeldRows, Array]],
    excluded: Array,
    sizes: Sequence[int],
) -> Array:
    """The distinct rows to hold: the first held rows of each part, in proportion to the
    sizes of the parts.
    """
    usable = [index[~excluded[index]] for _, index in held]
    # position of each row, as a share of the sample that its part would fill alone
    ranks = [(np.arange(len(index)) + 0.5) / size for index, size in zip(usable, sizes)]
    order = np.argsort(np.concatenate(ranks), kind="stable")
    candidates = np.concatenate(usable)[order]
    _, first = np.unique(candidates, return_index=True)
    return np.asarray(candidates[np.sort(first)][:MAX_HELD_ROWS])


def _numbers(
    fold: Array,
    chosen: Array,
    seed: int,
    label: object,
) -> tuple[Array, Array]:
    """A new number for every distinct row, and whether the number has its fold.  #
    (n,), (n,)

    The `chosen` rows come first, and get the smallest keys of their folds.
    """
    count = len(fold)
    keys = keys_of(seed, label, count)
    new_folds = folds_of(seed, label, count)
    number = np.full(count, -1)
    is_chosen = np.zeros(count, dtype=bool)
    is_chosen[chosen] = True
    for f in range(FOLDS):
        rows = np.flatnonzero(fold == f)
        rows = rows[np.argsort(~is_chosen[rows], kind="stable")]
        free = np.flatnonzero(new_folds == f)
        free = free[np.argsort(keys[free], kind="stable")]
        length = min(len(rows), len(free))
        number[rows[:length]] = free[:length]
    has_fold = number >= 0
    number[~has_fold] = np.setdiff1d(np.arange(count), number[has_fold])
    return number, has_fold


def _weights(
    held: Sequence[tuple[HeldRows, Array]],
    chosen: Array,
) -> tuple[Array, Array]:
    """The chosen rows, and their total weights in all parts that hold them.  # (m, d),
    (m,)
    """
    position = {row: i for i, row in enumerate(chosen.tolist())}
    rows = np.empty((len(chosen), held[0][0].rows.shape[1]), held[0][0].rows.dtype)
    weight = np.zeros(len(chosen))
    for part, index in held:
        for i, row in enumerate(index.tolist()):
            if row in position:
                rows[position[row]] = part.rows[i]
                weight[position[row]] += part.weight[i]
    return rows, weight
