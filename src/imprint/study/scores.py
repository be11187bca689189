"""From scores of classes to the numbers of a cell."""

from typing import NamedTuple

import numpy as np

from imprint.core.types import Array
from imprint.kernels.decisions import count_decisions

ROUNDING = 8 * float(np.finfo(np.float32).eps)
"""Two best scores that differ by less than this share of the best may change places by float32 rounding alone."""


class Scores(NamedTuple):
    """What is kept of a decision."""

    accuracy: float
    macro_f1: float
    weighted_f1: float
    near_ties: int
    """Rows whose two best scores lie within float rounding."""


def judge(scores: Array, truth: Array) -> Scores:
    """Decide by the largest score, the first class on ties, and compare with the truth.  # (C, q), (q,)

    >>> judge(np.array([[3.0, 1.0, 0.0], [1.0, 1.0, 2.0]]), np.array([0, 1, 1]))
    Scores(accuracy=0.6666666666666666, macro_f1=0.6666666666666666, weighted_f1=0.6666666666666666, near_ties=1)
    """
    n = scores.shape[1]
    confusion, near = count_decisions(scores, truth, ROUNDING)
    right = confusion.diagonal()
    true, claimed = confusion.sum(axis=1), confusion.sum(axis=0)
    seen = true + claimed
    f1 = 2 * right / np.maximum(seen, 1)
    macro, weighted = f1[seen > 0].mean(), (f1 * true).sum() / n
    return Scores(float(right.sum() / n), float(macro), float(weighted), near)
