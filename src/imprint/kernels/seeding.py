"""Greedy k-means++ (Arthur and Vassilvitskii, 2007): of a few rows drawn by distance the best is kept."""

import numpy as np

from imprint.core.types import Array
from imprint.kernels.lloyd import Rows


def trials(k: int) -> int:
    """How many rows are drawn for each new centre."""
    return 2 + int(np.log(k))


def seed_rows(rows: Rows, k: int, draws: int, rng: np.random.Generator) -> Array:
    """Rows to start from.  # (k',)

    Fewer than `k` where every row coincides with a chosen one. For the same number of draws the choice for a
    smaller `k` is a prefix.
    """
    weight = rows.weight
    chosen = rng.choice(len(weight), size=1, p=weight / weight.sum())
    closest = rows.nearer(chosen, np.full(len(weight), np.inf))[0]
    while len(chosen) < k:
        cumulated = np.cumsum(weight * closest)
        if not cumulated[-1] > 0:
            break
        drawn = np.searchsorted(cumulated, rng.uniform(size=draws) * cumulated[-1], side="right")
        candidates = np.minimum(drawn, np.searchsorted(cumulated, cumulated[-1]))
        nearer = rows.nearer(candidates, closest)
        best = int(np.argmin((nearer * weight).sum(axis=1)))
        chosen, closest = np.append(chosen, candidates[best]), nearer[best]
    return chosen
