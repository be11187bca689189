"""Greedy k-means++ (Arthur and Vassilvitskii, 2007): of a few rows drawn by distance the best is kept."""

import numpy as np

from imprint.core.types import Array
from imprint.kernels.lloyd import Rows


def trials(k: int) -> int:
    """How many rows are drawn for each new centre."""
    return 2 + int(np.log(k))


def seed_rows(rows: Rows, k: int, draws: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Rows to start from and their products with all rows.  # (k',), (k', n)

    Fewer than `k` where every row coincides with a chosen one. For the same number of draws the choice for a
    smaller `k` is a prefix.
    """
    n, weight = len(rows.X), rows.weight
    chosen = np.empty(k, dtype=np.intp)
    products = np.empty((k, n))
    chosen[0] = rng.choice(n, p=weight / weight.sum())
    products[0] = rows.products(rows.X[chosen[:1]])[0]
    closest = _squared(rows, products[:1], chosen[:1])[0]
    for c in range(1, k):
        cumulated = np.cumsum(weight * closest)
        if not cumulated[-1] > 0:
            return chosen[:c], products[:c]
        drawn = np.searchsorted(cumulated, rng.uniform(size=draws) * cumulated[-1], side="right")
        candidates = np.minimum(drawn, np.searchsorted(cumulated, cumulated[-1]))
        found = rows.products(rows.X[candidates])
        distances = np.minimum(closest, _squared(rows, found, candidates))
        best = int(np.argmin((distances * weight).sum(axis=1)))
        chosen[c], products[c], closest = candidates[best], found[best], distances[best]
    return chosen, products


def _squared(rows: Rows, products: Array, candidates: Array) -> Array:
    """Squared distances from products; exactly zero to an equal row."""
    squared: Array = np.maximum(rows.norms - 2 * products + rows.norms[candidates, None], 0)
    doubtful = squared <= 1e-12 * rows.norms[candidates, None]
    for c, i in np.argwhere(doubtful):
        delta = rows.X[i].astype(np.float64) - rows.X[candidates[c]]
        squared[c, i] = delta @ delta
    return squared
