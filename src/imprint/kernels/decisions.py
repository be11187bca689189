"""Decisions by the largest score, counted."""

from typing import NamedTuple

import numpy as np

from imprint.core.types import Array
from imprint.kernels import engine


class Counts(NamedTuple):
    """What many decisions about the same queries came to."""

    confusion: Array  # (decisions, C, C) how often each true class was taken for each
    near: Array  # (decisions,) how many queries were close


def count_decisions(scores: Array, truth: Array, rounding: float) -> Counts:
    """Take the class with the largest score, the first of equals, and count; as one decision of many.

    Close are queries whose two best scores differ by at most `rounding` times the best.  # (C, q), (q,)

    >>> count_decisions(np.array([[3.0, 1.0], [1.0, 1.0]]), np.array([0, 1]), 1e-6)
    Counts(confusion=array([[[1, 0],
            [1, 0]]]), near=array([1]))
    """
    n_classes, q = scores.shape
    starts = np.arange(n_classes)[None] * q
    return count_many(scores.ravel(), starts, np.full_like(starts, -1), np.empty((0, q), np.intp), truth, rounding)


def count_many(scores: Array, starts: Array, which: Array, columns: Array, truth: Array, rounding: float) -> Counts:
    """The same for many decisions at once, whose scores lie about in one array.

    In decision t the score of query i for class c is `scores[starts[t, c] + columns[which[t, c], i]]`, or without
    columns where `which` is -1.
    """
    decisions, n_classes = starts.shape
    found = Counts(np.zeros((decisions, n_classes, n_classes), np.int64), np.zeros(decisions, np.int64))
    if engine.loaded():
        from imprint.kernels.compiled.decisions import decide_many

        decide_many(scores, starts, which, columns.astype(np.uint64), truth, scores.dtype.type(rounding), *found)
        return found
    columns = np.vstack([columns, np.arange(len(truth))])  # the last serves -1
    for t in range(decisions):
        own = scores[starts[t, :, None] + columns[which[t]]]  # (C, q)
        pairs = truth * n_classes + own.argmax(axis=0)
        found.confusion[t] = np.bincount(pairs, minlength=n_classes**2).reshape(n_classes, n_classes)
        found.near[t] = _near(own, rounding).sum()
    return found


def _near(scores: Array, rounding: float) -> Array:
    """Whether the two best scores of a query cannot be told apart.  # (q,)"""
    if len(scores) == 1:
        return np.zeros(scores.shape[1], dtype=bool)
    best, second = np.maximum(scores[0], scores[1]), np.minimum(scores[0], scores[1])
    for row in scores[2:]:
        np.maximum(second, np.minimum(best, row), out=second)
        np.maximum(best, row, out=best)
    return np.asarray(best - second <= rounding * np.abs(best))
