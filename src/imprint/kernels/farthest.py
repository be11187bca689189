"""Farthest-point traversal."""

from collections.abc import Callable

import numpy as np

from imprint.core.types import Array
from imprint.kernels import engine
from imprint.kernels.rows import squared_norms

BLOCK = 1024


def farthest_points(X: Array, k: int, first: int) -> Array:
    """Start at row `first`; again and again take the row farthest from all taken.  # (min(k, n),)

    A row is never taken twice; of equally far rows the first is. The choice for a smaller `k` is a prefix.

    >>> farthest_points(np.array([[0.0], [1.0], [5.0]]), 3, first=1)
    array([1, 2, 0])
    """
    chosen = np.empty(min(k, len(X)), dtype=np.intp)
    nearest = np.full(len(X), np.inf)
    approach = _compiled_approach() if engine.compiled(X.size * len(chosen)) else _plain_approach
    row = first
    for i in range(len(chosen)):
        chosen[i] = row
        approach(X, row, nearest)
        nearest[row] = -1
        row = int(np.argmax(nearest))
    return chosen


def _compiled_approach() -> Callable[[Array, int, Array], None]:
    from imprint.kernels.compiled.farthest import approach

    return approach


def _plain_approach(X: Array, row: int, nearest: Array) -> None:
    """Lower every squared distance to that of the given row."""
    for i in range(0, len(X), BLOCK):
        part = nearest[i : i + BLOCK]
        np.minimum(part, squared_norms(X[i : i + BLOCK].astype(np.float64) - X[row]), out=part)
