"""Exact nearest neighbours."""

import numpy as np
from scipy.spatial.distance import cdist

from imprint.core.types import Array
from imprint.kernels.rows import unit_rows


def nearest(Q: Array, W: Array, m: int, metric: str = "euclidean") -> tuple[Array, Array]:
    """Distances and indices of the `m` rows of `W` nearest to every query, nearest first.  # (q, m), (q, m)

    Equally near rows are listed by index.

    >>> nearest(np.array([[0.9]]), np.array([[0.0], [1.0], [5.0]]), 2)[1]
    array([[1, 0]])
    """
    m = min(m, len(W))
    distances = np.empty((len(Q), m))
    indices = np.empty((len(Q), m), dtype=np.intp)
    if metric == "cosine":
        Q, W = unit_rows(Q.astype(np.float64)), unit_rows(W.astype(np.float64))
    rows = max(1, 8_000_000 // max(1, len(W)))
    for i in range(0, len(Q), rows):
        if metric == "cosine":
            block = 1 - Q[i : i + rows] @ W.T
        else:
            block = cdist(Q[i : i + rows], W, "euclidean" if metric == "euclidean" else "cityblock")
        order = np.argsort(block, axis=1, kind="stable")[:, :m]
        indices[i : i + rows] = order
        distances[i : i + rows] = np.take_along_axis(block, order, axis=1)
    return distances, indices
