"""The tests themselves, on plain arrays: tied ranks, Friedman, Wilcoxon signed-rank, Holm."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from imprint.core.errors import ParameterError
from imprint.core.types import Array

EXACT_UP_TO = 200
"""Largest number of non-zero differences for which `wilcoxon` counts the exact null distribution."""


class Friedman(NamedTuple):
    """The tie-corrected Friedman test that all methods perform alike."""

    statistic: float
    p: float


def rounding(scores: Array) -> Array:
    """How far a score may be off by rounding alone; scores closer than the sum of theirs are tied."""
    precise = np.finfo(scores.dtype if scores.dtype.kind == "f" else np.float64)
    return 2 * float(precise.eps) * np.abs(scores.astype(np.float64))


def tied_ranks(values: Array, slack: Array) -> Array:
    """Ranks from 1 for the smallest value; values tied up to their slack share the average of their ranks.

    >>> tied_ranks(np.array([0.3, 0.1 + 0.2, 0.1]), np.full(3, 1e-15)).tolist()
    [2.5, 2.5, 1.0]
    """
    order = np.lexsort((slack, values))
    ascending, slack = values[order], slack[order]
    starts = np.append(True, np.diff(ascending) > slack[1:] + slack[:-1])
    group = np.cumsum(starts) - 1
    size = np.bincount(group)
    ranks = np.empty(len(values))
    ranks[order] = (np.cumsum(size) - (size - 1) / 2)[group]
    return ranks


def rank_rows(scores: Array) -> Array:
    """The rank of every method on every instance, 1 for the highest score.  # (n, m) -> (n, m)"""
    slack = rounding(scores)
    return np.stack([tied_ranks(-row, s) for row, s in zip(scores.astype(np.float64), slack)])


def friedman(scores: ArrayLike) -> Friedman:
    """Friedman's chi-square test with the correction for ties, for two or more methods.

    All scores tied: statistic 0, p = 1.

    >>> friedman([[3, 2, 1], [3, 1, 2], [9, 5, 5], [4, 4, 1]]).statistic
    5.571428571428571
    """
    table = _numbers("friedman", scores, 2)
    n, m = table.shape
    ranks = rank_rows(table)
    expected = (m + 1) / 2
    spread = ((ranks - expected) ** 2).sum()
    if spread == 0:
        return Friedman(0.0, 1.0)
    between = ((ranks.sum(axis=0) - n * expected) ** 2).sum()
    statistic = (m - 1) * between / spread
    from scipy.special import chdtrc

    return Friedman(float(statistic), float(chdtrc(m - 1, statistic)))


def wilcoxon(first: ArrayLike, second: ArrayLike) -> float:
    """Two-sided p of the Wilcoxon signed-rank test on paired scores.

    Zero differences are ranked with the others and then left out (Pratt, 1959); tied differences share their
    average rank. Given these ranks either sign is equally likely under the null hypothesis; that distribution
    is counted exactly for up to `EXACT_UP_TO` non-zero differences and taken as normal beyond, with its exact
    mean and variance and no continuity correction. Without any non-zero difference p = 1.

    >>> wilcoxon(range(1, 49), [0] * 48) == 2 / 2**48
    True
    >>> wilcoxon([1, 2, 3], [1, 2, 3])
    1.0
    """
    pair = [_numbers("wilcoxon", scores, 1) for scores in (first, second)]
    if len(pair[0]) != len(pair[1]):
        raise ParameterError(f"wilcoxon: {len(pair[0])} and {len(pair[1])} scores; they must come in pairs.")
    slack = rounding(pair[0]) + rounding(pair[1])
    difference = pair[0].astype(np.float64) - pair[1]
    size = np.abs(difference)
    moved = size > slack
    ranks = tied_ranks(np.where(moved, size, 0), slack)[moved]
    up = ranks[difference[moved] > 0].sum()
    return _two_sided(ranks, min(up, ranks.sum() - up))


def _two_sided(ranks: Array, smaller: float) -> float:
    if len(ranks) <= EXACT_UP_TO:
        return min(1.0, 2 * _lower_tail(np.rint(2 * ranks).astype(np.intp), round(2 * smaller)))
    z = (smaller - ranks.sum() / 2) / np.sqrt((ranks**2).sum() / 4)
    from scipy.special import ndtr

    return min(1.0, 2 * float(ndtr(z)))


def _lower_tail(doubled: Array, limit: int) -> float:
    """Chance that the doubled ranks of those fair coins that show heads sum to at most `limit`."""
    ways = np.zeros(limit + 1)
    ways[0] = 1
    for rank in doubled:
        ways[rank:] += ways[: max(limit + 1 - rank, 0)]
    return float(ways.sum() / 2.0 ** len(doubled))


def holm(p: ArrayLike) -> Array:
    """Holm's step-down adjustment: compare the result with alpha itself.

    The smallest of m values is multiplied by m, the next by m - 1, and so on; none falls below the one before
    it and none exceeds 1.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    raw = _numbers("holm", p, 1).astype(np.float64)
    order = np.argsort(raw, kind="stable")
    stepped = raw[order] * np.arange(len(raw), 0, -1)
    adjusted = np.empty_like(raw)
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1)
    return adjusted


def _numbers(call: str, values: ArrayLike, dimensions: int) -> Array:
    array = np.asarray(values)
    if array.ndim != dimensions or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        shape = "instances x methods" if dimensions == 2 else "a sequence"
        got = f"{array.dtype} of shape {array.shape}"
        raise ParameterError(f"{call}: got {got}; it takes finite numbers, {shape}.")
    return array
