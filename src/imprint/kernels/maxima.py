"""Best score per class, without holding every score."""

import numpy as np

from imprint.core.types import Array


def class_maxima(Q: Array, W: Array, starts: Array) -> Array:
    """Largest inner product of every query with the proxies of every class.  # (q, C)

    The proxies `W` are sorted by class and `starts` holds the first row of each class.

    >>> class_maxima(np.array([[1.0, 0.0]]), np.array([[2.0, 0.0], [3.0, 0.0], [0.0, 1.0]]), np.array([0, 2]))
    array([[3., 0.]])
    """
    rows = max(1, 8_000_000 // max(1, len(W)))
    best = np.empty((len(Q), len(starts)), dtype=np.result_type(Q, W))
    for i in range(0, len(Q), rows):
        best[i : i + rows] = np.maximum.reduceat(Q[i : i + rows] @ W.T, starts, axis=1)
    return best
