"""Which stored rows equal given ones."""

from typing import NamedTuple

import numpy as np

from imprint.core.arrays import Array

# relative to the largest value of a row; a network embeds an input alone and in a batch
# with differences of this size
TOLERANCE = 1e-5


class Matches(NamedTuple):
    """Which stored rows equal a given one, and which given rows equal a stored one."""

    stored: Array  # (n,)
    given: Array  # (m,)


def matching_rows(stored: Array, given: Array) -> Matches:
    """Compare all rows: bit for bit or, if no stored row is equal, up to rounding."""
    index_of: dict[bytes, list[int]] = {}
    for i, row in enumerate(_signless(stored)):
        index_of.setdefault(row.tobytes(), []).append(i)
    is_stored = np.zeros(len(stored), dtype=bool)
    is_given = np.zeros(len(given), dtype=bool)
    for i, row in enumerate(_signless(given)):
        equal = index_of.get(row.tobytes())
        if equal is None:
            limit = TOLERANCE * float(np.abs(row).max())
            distances = np.abs(stored - row).max(axis=1)
            equal = np.flatnonzero(distances <= limit).tolist()
        is_stored[equal] = True
        is_given[i] = len(equal) > 0
    return Matches(is_stored, is_given)


def _signless(X: Array) -> Array:
    """The rows, with zero instead of minus zero."""
    return np.ascontiguousarray(X + X.dtype.type(0))
