"""Rank tests on arrays: average ranks, Friedman, Wilcoxon signed-rank, Holm."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from imprint.core.arrays import Array
from imprint.core.errors import ParameterError

# non-zero ones; with more, `wilcoxon` uses the normal approximation
MAX_EXACT_DIFFERENCES = 200


class Friedman(NamedTuple):
    """Friedman's test of the null hypothesis that all methods perform alike, corrected
    for ties.
    """

    statistic: float
    p: float


def rounding_error(scores: Array) -> Array:
    """The rounding error of each score; two scores are tied if they differ by at most
    the sum of their errors.
    """
    eps = np.finfo(scores.dtype if scores.dtype.kind == "f" else np.float64).eps
    return 2 * float(eps) * np.abs(scores.astype(np.float64))


def tied_ranks(values: Array, errors: Array) -> Array:
    """Ranks, 1 for the smallest value; neighbours that differ by at most the sum of
    their errors are tied.

    Tied values share the average of their ranks.
    """
    order = np.lexsort((errors, values))
    ascending, errors = values[order], errors[order]
    group = np.cumsum(np.append(0, np.diff(ascending) > errors[1:] + errors[:-1]))
    size = np.bincount(group)
    ranks = np.empty(len(values))
    ranks[order] = (np.cumsum(size) - (size - 1) / 2)[group]
    return ranks


def rank_rows(scores: Array) -> Array:
    """The rank of each method on each instance, 1 for the highest score.  # (n, m) ->
    (n, m)
    """
    errors = rounding_error(scores)
    return np.stack(
        [
            tied_ranks(-row, error)
            for row, error in zip(scores.astype(np.float64), errors)
        ]
    )


def friedman(scores: ArrayLike) -> Friedman:
    """Friedman's chi-square test with the correction for ties, for two or more methods.

    If all scores are tied, the statistic is 0 and p = 1.
    """
    ranks = rank_rows(_finite_array("friedman", scores, 2))
    m = ranks.shape[1]
    centred = ranks - (m + 1) / 2
    variation = float((centred**2).sum())
    statistic = (
        (m - 1) * float((centred.sum(axis=0) ** 2).sum()) / variation
        if variation
        else 0.0
    )
    from scipy.special import chdtrc

    return Friedman(statistic, float(chdtrc(m - 1, statistic)))


def wilcoxon(first: ArrayLike, second: ArrayLike) -> float:
    """Two-sided p-value of the Wilcoxon signed-rank test on paired scores.

    Zero differences are ranked with the others and then left out (Pratt, 1959); tied
    differences share their average rank. The null distribution given these ranks is
    exact for up to 200 non-zero differences. Above, it is the normal approximation
    without continuity correction. Without a non-zero difference, p = 1.
    """
    a, b = (_finite_array("wilcoxon", scores, 1) for scores in (first, second))
    if len(a) != len(b):
        raise ParameterError(
            f"wilcoxon: {len(a)} and {len(b)} scores; the scores must be paired."
        )
    errors = rounding_error(a) + rounding_error(b)
    difference = a.astype(np.float64) - b
    nonzero = np.abs(difference) > errors
    ranks = tied_ranks(np.where(nonzero, np.abs(difference), 0), errors)[nonzero]
    positive = ranks[difference[nonzero] > 0].sum()
    smaller = min(positive, ranks.sum() - positive)
    if len(ranks) <= MAX_EXACT_DIFFERENCES:
        return min(
            1.0, 2 * _exact_tail(np.rint(2 * ranks).astype(np.intp), round(2 * smaller))
        )
    from scipy.special import ndtr

    return min(
        1.0,
        2 * float(ndtr((smaller - ranks.sum() / 2) / np.sqrt((ranks**2).sum() / 4))),
    )


def _exact_tail(doubled_ranks: Array, limit: int) -> float:
    """The probability that a random subset of the doubled ranks has a sum of at most
    `limit`.
    """
    subsets = np.zeros(limit + 1)  # number of subsets by their sum
    subsets[0] = 1
    for rank in doubled_ranks:
        subsets[rank:] += subsets[: max(limit + 1 - rank, 0)]
    return float(subsets.sum() / 2.0 ** len(doubled_ranks))


def holm(p: ArrayLike) -> Array:
    """Holm's step-down adjustment of p-values, to be compared with alpha.

    The smallest of m p-values is multiplied by m, the next by m - 1, and so on. An
    adjusted value is at least the one before it and at most 1.
    """
    raw = _finite_array("holm", p, 1).astype(np.float64)
    order = np.argsort(raw, kind="stable")
    stepped = raw[order] * np.arange(len(raw), 0, -1)
    adjusted = np.empty_like(raw)
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1)
    return adjusted


def _finite_array(call: str, values: ArrayLike, dimensions: int) -> Array:
    array = np.asarray(values)
    is_table = dimensions == 2
    fits = (
        array.ndim == dimensions
        and array.dtype.kind in "iuf"
        and (array.size > 0 or not is_table)
    )
    if not fits or not np.isfinite(array).all():
        shape = "instances x methods" if is_table else "a sequence"
        raise ParameterError(
            f"{call}: got {array.dtype} of shape {array.shape}; give finite numbers,"
            f" {shape}."
        )
    return array
