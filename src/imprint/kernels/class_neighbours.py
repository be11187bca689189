"""The nearest proxies of every class, from one product of queries and all proxies."""

from itertools import pairwise

import numpy as np

from imprint.core.types import Array
from imprint.kernels.neighbours import nearest
from imprint.kernels.rows import squared_norms, unit_rows

VALUES = 4_000_000  # distances held at a time
PAIRS = 4096  # differences held at a time
CANCELLED = 1e-6  # squared distances below this share of the lengths are computed again from differences


def class_neighbours(Q: Array, W: Array, starts: Array, m: int, metric: str) -> list[Array]:
    """Distances to the `m` nearest proxies of each class, nearest first, in float64.  # for each class: (<= m, q)

    The proxies `W` are sorted by class and `starts` holds the first row of each class.

    >>> Q, W = np.array([[0.0], [1.0]]), np.array([[1.0], [3.0], [5.0]])
    >>> [d.tolist() for d in class_neighbours(Q, W, np.array([0, 2]), 2, "euclidean")]
    [[[1.0, 0.0], [3.0, 2.0]], [[5.0, 4.0]]]
    """
    edges = [*starts.tolist(), len(W)]
    cuts = [slice(a, b) for a, b in pairwise(edges)]
    if metric == "manhattan":
        return [np.ascontiguousarray(nearest(Q, W[own], m, metric)[0].T) for own in cuts]
    found = [np.empty((min(m, own.stop - own.start), len(Q))) for own in cuts]
    wide = _wide(W, metric)
    rows = max(1, VALUES // len(W))
    for i in range(0, len(Q), rows):
        D = _distances(_wide(Q[i : i + rows], metric), wide, metric)
        for out, own in zip(found, cuts):
            out[:, i : i + rows] = _smallest(D[:, own], len(out)).T
    return [np.sqrt(out) for out in found] if metric == "euclidean" else found


def _wide(X: Array, metric: str) -> Array:
    X = X.astype(np.float64)
    return unit_rows(X) if metric == "cosine" else X


def _distances(Q: Array, W: Array, metric: str) -> Array:
    """Squared Euclidean or cosine distances.  # (q, p)"""
    D = Q @ W.T
    if metric == "cosine":
        return np.asarray(np.maximum(1 - D, 0, out=D))
    lengths, own = squared_norms(Q), squared_norms(W)
    D *= -2
    D += lengths[:, None]
    D += own
    rows, columns = np.nonzero(CANCELLED * (lengths[:, None] + own) >= D)
    for i in range(0, len(rows), PAIRS):
        q, p = rows[i : i + PAIRS], columns[i : i + PAIRS]
        D[q, p] = squared_norms(Q[q] - W[p])
    return np.asarray(D)


def _smallest(D: Array, m: int) -> Array:
    """The m smallest of every row, in order."""
    kept = np.partition(D, m - 1, axis=1)[:, :m] if m < D.shape[1] else D
    return np.sort(kept, axis=1)
