"""From scores of classes to the numbers of a cell."""

from typing import NamedTuple

import numpy as np

from imprint.core.types import Array
from imprint.kernels.decisions import Counts

ROUNDING = 8 * float(np.finfo(np.float32).eps)
"""Two best scores that differ by less than this share of the best may change places by float32 rounding alone."""


class Scores(NamedTuple):
    """What is kept of decisions about the same rows, one number for each."""

    accuracy: Array
    macro_f1: Array
    weighted_f1: Array
    near_ties: Array
    """Rows whose two best scores lie within float rounding."""


def tally(counts: Counts) -> Scores:
    """The numbers of decisions that were counted.

    >>> tally(Counts(np.array([[[1, 0], [0, 1]]]), np.array([1])))
    Scores(accuracy=array([1.]), macro_f1=array([1.]), weighted_f1=array([1.]), near_ties=array([1]))
    """
    confusion, near = counts
    right = confusion.diagonal(axis1=1, axis2=2)  # (decisions, C)
    true, claimed = confusion.sum(axis=2), confusion.sum(axis=1)
    n, seen = true.sum(axis=1), true + claimed
    f1 = 2 * right / np.maximum(seen, 1)
    return Scores(right.sum(axis=1) / n, f1.sum(axis=1) / (seen > 0).sum(axis=1), (f1 * true).sum(axis=1) / n, near)
