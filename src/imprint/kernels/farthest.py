"""Farthest-point traversal."""

from collections.abc import Sequence

import numpy as np

from imprint.core.types import Array
from imprint.kernels import engine
from imprint.kernels.rows import squared_norms

BLOCK = 1024


def farthest_points(X: Array, k: int, first: int) -> Array:
    """Start at row `first`; again and again take the row farthest from all taken.  # (min(k, n),)

    A row is never taken twice; of equally far rows the first is. The choice for a smaller `k` is a prefix.

    >>> farthest_points(np.array([[0.0], [1.0], [5.0]]), 3, first=1)
    array([1, 2, 0])
    """
    return np.asarray(farthest_from_each(X, k, [first])[0])


def farthest_from_each(X: Array, k: int, firsts: Sequence[int]) -> Array:
    """`farthest_points` from each of some first rows, which share the passes over the rows.  # (s, min(k, n))"""
    chosen = np.empty((len(firsts), min(k, len(X))), dtype=np.intp)
    chosen[:, 0] = firsts
    nearest = np.full((len(firsts), len(X)), np.inf)
    if engine.compiled(X.size * chosen.shape[1]):
        from imprint.kernels.compiled.farthest import traverse

        traverse(X, chosen, nearest)
    else:
        for own, distances in zip(chosen, nearest):
            _plain_traverse(X, own, distances)
    return chosen


def _plain_traverse(X: Array, chosen: Array, nearest: Array) -> None:
    for i, row in enumerate(chosen):
        _plain_approach(X, row, nearest)
        nearest[row] = -1
        chosen[i + 1 : i + 2] = np.argmax(nearest)


def _plain_approach(X: Array, row: int, nearest: Array) -> None:
    """Lower every squared distance to that of the given row."""
    for i in range(0, len(X), BLOCK):
        part = nearest[i : i + BLOCK]
        np.minimum(part, squared_norms(X[i : i + BLOCK].astype(np.float64) - X[row]), out=part)
