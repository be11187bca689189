"""Farthest-point traversal."""

import numpy as np

from imprint.core.types import Array
from imprint.kernels import cpu
from imprint.kernels.rows import squared_distances


def farthest_points(X: Array, k: int, first: int) -> Array:
    """Start at row `first`; again and again take the row farthest from all taken.  # (min(k, n),)

    A row is never taken twice; of equally far rows the first is. The choice for a smaller `k` is a prefix.

    >>> farthest_points(np.array([[0.0], [1.0], [5.0]]), 3, first=1)
    array([1, 2, 0])
    """
    chosen = np.empty(min(k, len(X)), dtype=np.intp)
    nearest = np.full(len(X), np.inf)
    chosen[0] = first
    if cpu.use_numba(X.size * len(chosen)):
        from imprint.kernels.compiled.products import traverse

        traverse(X, chosen, nearest)
        return chosen
    for i, row in enumerate(chosen):
        np.minimum(nearest, squared_distances(X, X[row].astype(np.float64)), out=nearest)
        nearest[row] = -1
        chosen[i + 1 : i + 2] = np.argmax(nearest)
    return chosen
