"""Which proxies stand for all of them, where all are too many."""

import numpy as np

from imprint.core.arrays import Array


def choose_centres(labels: Array, count: int) -> Array:
    """Rows of every class at even steps; `labels` are in ascending order."""
    sizes = np.bincount(labels)
    proportional = np.round(count * sizes / len(labels)).astype(int)
    # at least one of every class, however small
    shares = np.minimum(sizes, np.maximum(1, proportional))
    starts = np.cumsum(sizes) - sizes
    chosen = []
    for start, size, share in zip(starts, sizes, shares):
        steps = np.arange(share) * size // share
        chosen.append(start + steps)
    return np.concatenate(chosen)
