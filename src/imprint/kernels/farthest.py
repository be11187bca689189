"""Farthest-point traversal."""

import numpy as np

from imprint.core.types import Array
from imprint.kernels.rows import squared_norms


def farthest_points(X: Array, k: int, first: int) -> Array:
    """Start at row `first`; again and again take the row farthest from all taken.  # (min(k, n),)

    A row is never taken twice; of equally far rows the first is. The choice for a smaller `k` is a prefix.

    >>> farthest_points(np.array([[0.0], [1.0], [5.0]]), 3, first=1)
    array([1, 2, 0])
    """
    chosen = np.empty(min(k, len(X)), dtype=np.intp)
    nearest = np.full(len(X), np.inf)
    row = first
    for i in range(len(chosen)):
        chosen[i] = row
        np.minimum(nearest, squared_norms(X.astype(np.float64) - X[row]), out=nearest)
        nearest[row] = -1
        row = int(np.argmax(nearest))
    return chosen
