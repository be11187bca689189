"""Rows that are the same thing twice."""

import numpy as np

from imprint.core.types import Array
from imprint.kernels.neighbours import nearest
from imprint.kernels.rows import unit_rows

NEIGHBOURS = 6
SAME = 1e-3
"""Unit rows this close differ by rounding only."""
NEAR = 0.3
"""Rows are near duplicates below this share of the usual distance to the nearest row; see docs/check.md."""


def duplicates(X: Array) -> list[list[int]]:
    """Groups of rows that are copies of one another, or nearly; each and all in ascending order.

    Distances are between unit rows. Near means much nearer than nearest rows usually are, so the same limit serves
    every backbone.

    >>> duplicates(np.array([[1.0, 0], [0, 1.0], [1.0, 0], [0.6, 0.8]]))
    [[0, 2]]
    """
    if len(X) < 2:
        return []
    U = unit_rows(X.astype(np.float64))
    distances, indices = nearest(U, U, NEIGHBOURS + 1)
    own = np.arange(len(U))[:, None]
    others = np.where(indices == own, np.inf, distances).min(axis=1)
    apart = others[others > SAME]
    limit = max(SAME, NEAR * float(np.median(apart))) if len(apart) else SAME
    pairs = np.argwhere((distances <= limit) & (indices != own))
    return _groups(len(U), [(int(i), int(indices[i, j])) for i, j in pairs])


def _groups(n: int, pairs: list[tuple[int, int]]) -> list[list[int]]:
    """The connected rows."""
    parent = list(range(n))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = i = parent[parent[i]]
        return i

    for i, j in pairs:
        low, high = sorted((root(i), root(j)))
        parent[high] = low
    found: dict[int, list[int]] = {}
    for i in {i for pair in pairs for i in pair}:
        found.setdefault(root(i), []).append(i)
    return sorted(sorted(group) for group in found.values())
