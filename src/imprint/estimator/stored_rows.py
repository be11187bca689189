"""Training rows that a head stores, by their numbers or digests."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from imprint.core.arrays import Array
from imprint.core.errors import ParameterError
from imprint.head import Head
from imprint.head.merging import stored_rows


def find_rows(
    head: Head,
    y: Any,
    numbers: Sequence[int] | None,
    digests: Sequence[str] | None,
) -> Array:
    """The stored rows of a class with some numbers, or those of all classes with some
    digests; refused if they are not stored.  # (k, d)
    """
    if numbers is not None:
        return _numbered_rows(head, y, numbers)
    if isinstance(digests, str) or not digests:
        raise ParameterError("forget_rows(digests=...): give a list of digests.")
    if head.folds is None:
        raise ParameterError(
            "forget_rows(digests=...): the model stores no digests; give the rows."
        )
    parts = [held.find(digests) for held in head.folds.held.values()]
    rows = np.concatenate(parts)
    if len(np.unique(rows, axis=0)) < len(set(digests)):
        raise ParameterError(
            "forget_rows(digests=...): the model does not hold all of these rows; give"
            " the rows themselves (X)."
        )
    return rows


def _numbered_rows(head: Head, label: Any, numbers: Sequence[int]) -> Array:
    """The rows of a class with some numbers.  # (k, d)"""
    call = "forget_rows(numbers=...)"
    if label not in head:
        raise ParameterError(f"{call}: name the class of the rows: y=LABEL.")
    stored = stored_rows(head, label)
    if stored is None:
        raise ParameterError(
            f"{call}: the model does not hold all rows of {label!r}; give the rows"
            " themselves (X), or keep all rows (keep_rows=True, --keep-rows)."
        )
    count = len(stored.rows)
    if not len(numbers) or not all(0 <= number < count for number in numbers):
        raise ParameterError(
            f"{call}: the class {label!r} has the rows 0 to {count - 1}."
        )
    return stored.rows[list(numbers)]
