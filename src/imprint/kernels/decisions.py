"""Decisions by the largest score, counted."""

import numpy as np

from imprint.core.types import Array
from imprint.kernels import engine


def count_decisions(scores: Array, truth: Array, rounding: float) -> tuple[Array, int]:
    """How often each true class was taken for each, the first of equals, and how many decisions were close.

    Close are those whose two best scores differ by at most `rounding` times the best.  # (C, q), (q,) -> (C, C)

    >>> count_decisions(np.array([[3.0, 1.0], [1.0, 1.0]]), np.array([0, 1]), 1e-6)
    (array([[1, 0],
           [1, 0]]), 1)
    """
    n_classes = len(scores)
    if engine.loaded():
        from imprint.kernels.compiled.decisions import decide

        confusion = np.zeros((n_classes, n_classes), dtype=np.int64)
        return confusion, decide(scores, truth, scores.dtype.type(rounding), confusion)
    pairs = truth * n_classes + scores.argmax(axis=0)
    confusion = np.bincount(pairs, minlength=n_classes**2).reshape(n_classes, n_classes)
    return confusion, int(_near(scores, rounding).sum())


def _near(scores: Array, rounding: float) -> Array:
    """Whether the two best scores of a query cannot be told apart.  # (q,)"""
    if len(scores) == 1:
        return np.zeros(scores.shape[1], dtype=bool)
    best, second = np.maximum(scores[0], scores[1]), np.minimum(scores[0], scores[1])
    for row in scores[2:]:
        np.maximum(second, np.minimum(best, row), out=second)
        np.maximum(best, row, out=best)
    return np.asarray(best - second <= rounding * np.abs(best))
