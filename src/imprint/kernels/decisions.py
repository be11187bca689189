"""Decisions by the largest score, counted."""

from typing import NamedTuple

import numpy as np

from imprint.core.types import Array
from imprint.kernels import cpu


class Counts(NamedTuple):
    """What many decisions between the same classes came to; more queries are added to it."""

    right: Array  # (decisions, C) of the queries of each class how many were given to it
    claimed: Array  # (decisions, C) how many queries were given to each class
    near: Array  # (decisions,) how many queries have two best scores that rounding might swap

    @classmethod
    def of(cls, decisions: int, n_classes: int) -> "Counts":
        """Nothing yet."""
        right, claimed = np.zeros((2, decisions, n_classes), dtype=np.int64)
        return cls(right, claimed, np.zeros(decisions, dtype=np.int64))


def count_decisions(scores: Array, truth: Array, rounding: float, counts: Counts) -> None:
    """Give every query to the class with the largest score, the first of equals, and count; as one decision.

    Near are queries whose two best scores differ by at most `rounding` times the best.  # (C, q), (q,)

    >>> counts = Counts.of(1, 2)
    >>> count_decisions(np.array([[3.0, 1.0], [1.0, 1.0]]), np.array([0, 1]), 1e-6, counts)
    >>> counts.right.tolist(), counts.claimed.tolist(), counts.near.tolist()
    ([[1, 0]], [[2, 0]], [1])
    """
    count_many(np.ascontiguousarray(scores), np.arange(len(scores))[None], truth, rounding, counts)


def count_many(scores: Array, rows: Array, truth: Array, rounding: float, counts: Counts) -> None:
    """The same for many decisions: in decision t the scores of class c are `scores[rows[t, c]]`."""
    if cpu.loaded():
        from imprint.kernels.compiled.deciding import decide_many

        decide_many(scores, rows, truth, scores.dtype.type(rounding), *counts)
        return
    for t, own in enumerate(rows):
        best = scores[own]  # (C, q)
        winner = best.argmax(axis=0)
        counts.claimed[t] += np.bincount(winner, minlength=len(own))
        counts.right[t] += np.bincount(truth[winner == truth], minlength=len(own))
        counts.near[t] += _near(best, rounding).sum()


def _near(scores: Array, rounding: float) -> Array:
    """Whether the two best scores of a query cannot be told apart.  # (q,)"""
    if len(scores) == 1:
        return np.zeros(scores.shape[1], dtype=bool)
    best, second = np.maximum(scores[0], scores[1]), np.minimum(scores[0], scores[1])
    for row in scores[2:]:
        np.maximum(second, np.minimum(best, row), out=second)
        np.maximum(best, row, out=best)
    return np.asarray(best - second <= rounding * np.abs(best))
