"""Exact nearest neighbours."""

from typing import Any

import numpy as np

from imprint.core.errors import ParameterError
from imprint.core.inkind import is_torch
from imprint.core.types import Array
from imprint.kernels import cpu
from imprint.kernels.rows import unit_rows

METRICS = ("euclidean", "cosine", "manhattan")


def nearest(Q: Any, W: Array, m: int, metric: str = "euclidean") -> tuple[Any, Any]:
    """Distances and indices of the `m` rows of `W` nearest to every query, nearest first.  # (q, m), (q, m)

    Distances are computed in float64; equally near rows are listed by index. A zero row has the cosine distance one
    to every row. Where `W` has fewer than `m` rows, all are listed.

    >>> nearest(np.array([[0.9]]), np.array([[0.0], [1.0], [5.0]]), 2)[1]
    array([[1, 0]])
    """
    if metric not in METRICS:
        raise ParameterError(f"nearest(metric={metric!r}): metric must be one of {', '.join(METRICS)}.")
    if m < 1:
        raise ParameterError(f"nearest(m={m}): m must be int >= 1.")
    if is_torch(Q):
        from imprint.kernels.tensor import neighbours
        from imprint.kernels.tensor.device import on_device_of

        return neighbours.nearest(Q, on_device_of(W, Q), m, metric)
    m = min(m, len(W))
    if m <= max(64, len(W) // 64) and cpu.compiled(Q.size * len(W)):
        return _compiled(np.ascontiguousarray(Q), np.ascontiguousarray(W), m, metric)
    return _plain(Q, W, m, metric)


def _compiled(Q: Array, W: Array, m: int, metric: str) -> tuple[Array, Array]:
    from imprint.kernels.compiled.neighbours import search

    images = (unit_rows(Q), unit_rows(W)) if metric == "cosine" else (Q, W)
    distances, indices = search(Q, W, m, METRICS.index(metric), images)
    return (np.sqrt(distances) if metric == "euclidean" else distances), indices


def _plain(Q: Array, W: Array, m: int, metric: str) -> tuple[Array, Array]:
    from scipy.spatial.distance import cdist

    distances = np.empty((len(Q), m))
    indices = np.empty((len(Q), m), dtype=np.intp)
    if metric == "cosine":
        Q, W = unit_rows(Q.astype(np.float64)), unit_rows(W.astype(np.float64))
    rows = max(1, 8_000_000 // max(1, len(W)))
    for i in range(0, len(Q), rows):
        if metric == "cosine":
            block = np.maximum(1 - Q[i : i + rows] @ W.T, 0)
        else:
            block = cdist(Q[i : i + rows], W, "euclidean" if metric == "euclidean" else "cityblock")
        order = np.argsort(block, axis=1, kind="stable")[:, :m]
        indices[i : i + rows] = order
        distances[i : i + rows] = np.take_along_axis(block, order, axis=1)
    return distances, indices
