"""Duplicates and outliers among embeddings; see docs/evaluate.md for the limits."""

import numpy as np

from imprint.core.types import Array
from imprint.kernels.neighbours import nearest
from imprint.kernels.rows import unit_rows

NEIGHBOURS = 6
ROUNDING = 1e-3
"""Unit rows at most this far apart differ by rounding only."""
NEAR_DUPLICATE = 0.3
"""Maximum distance of near duplicates, as a share of the median distance to the nearest row."""
COMPONENTS = 50
ROWS_PER_COMPONENT = 10
OUTLIER = 3.0
"""Robust standard deviations above the median from which a row is an outlier."""


def duplicates(X: Array) -> list[list[int]]:
    """Groups of rows that are copies or near copies of one another, in ascending order.

    Distances are between unit rows. The limit is relative to the usual distance of nearest rows, so it suits every
    backbone.

    >>> duplicates(np.array([[1.0, 0], [0, 1.0], [1.0, 0], [0.6, 0.8]]))
    [[0, 2]]
    """
    if len(X) < 2:
        return []
    U = unit_rows(X.astype(np.float64))
    distances, indices = nearest(U, U, NEIGHBOURS + 1)
    itself = np.arange(len(U))[:, None]
    to_nearest = np.where(indices == itself, np.inf, distances).min(axis=1)
    distinct = to_nearest[to_nearest > ROUNDING]
    limit = max(ROUNDING, NEAR_DUPLICATE * float(np.median(distinct))) if len(distinct) else ROUNDING
    pairs = np.argwhere((distances <= limit) & (indices != itself))
    return _connected(len(U), [(int(i), int(indices[i, j])) for i, j in pairs])


def _connected(n: int, pairs: list[tuple[int, int]]) -> list[list[int]]:
    """Connected components of rows that are in a pair."""
    parent = list(range(n))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = i = parent[parent[i]]
        return i

    for i, j in pairs:
        low, high = sorted((root(i), root(j)))
        parent[high] = low
    components: dict[int, list[int]] = {}
    for i in {i for pair in pairs for i in pair}:
        components.setdefault(root(i), []).append(i)
    return sorted(sorted(rows) for rows in components.values())


def outliers(X: Array) -> list[int]:
    """Rows whose Mahalanobis distance from the centre is unusually large, the largest first.

    The distance is that of unit rows in their leading principal components, on a logarithmic scale. Fewer than 20 rows
    have no outliers.
    """
    scores = outlier_scores(X)
    rows = np.flatnonzero(scores > OUTLIER)
    order: list[int] = rows[np.argsort(-scores[rows], kind="stable")].tolist()
    return order


def outlier_scores(X: Array) -> Array:
    """Robust standard deviations of each row's distance above the median distance.  # (n,)"""
    count = min(COMPONENTS, X.shape[1], len(X) // ROWS_PER_COMPONENT)
    if count < 2:
        return np.zeros(len(X))
    U = unit_rows(X.astype(np.float64))
    U -= U.mean(axis=0)
    values, vectors = np.linalg.eigh(U.T @ U)
    values, vectors = values[-count:], vectors[:, -count:]
    varies = values > values[-1] * 1e-9
    if not varies.any():
        return np.zeros(len(X))
    squared = np.sum((U @ vectors[:, varies]) ** 2 / values[varies], axis=1)
    logarithms = np.log(squared + np.finfo(np.float64).tiny)
    above = logarithms - np.median(logarithms)
    scale = 1.4826 * float(np.median(np.abs(above)))
    return np.asarray(above / scale if scale > 0 else np.zeros(len(X)))
