"""Rank tests on arrays: average ranks, Friedman, Wilcoxon signed-rank, Holm."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from imprint.core.arrays import Array
from imprint.core.errors import ParameterError

# With more non-zero differences, `wilcoxon` uses the normal approximation. The exact
# distribution takes n steps over up to n^2 / 2 counts; at 200 the two differ by less
# than 2 % (tests/unit/stats/test_rank_tests.py). The limit is a matter of taste.
MAX_EXACT_DIFFERENCES = 200


class Friedman(NamedTuple):
    """Friedman's test of the null hypothesis that all methods perform alike.

    It is corrected for ties.

    Attributes
    ----------
    statistic : float
        Chi-square distributed with one degree of freedom less than there are methods.
    p : float
        The probability of a statistic at least as large under the null hypothesis.

    Examples
    --------
    >>> from imprint.stats import friedman
    >>> round(friedman([[90, 80, 70]] * 8).p, 6)
    0.000335
    """

    statistic: float
    p: float


def rounding_error(scores: Array) -> Array:
    """The rounding error of each score.

    Two scores are tied if they differ by at most the sum of their errors.
    """
    # Scores of integers are often written as floats later, so they round like float64.
    dtype = np.dtype(np.float64)
    if scores.dtype.kind == "f":
        dtype = scores.dtype
    eps = float(np.finfo(dtype).eps)
    magnitude = np.abs(scores, dtype=np.float64)

    # A score is usually a count divided by another and perhaps multiplied by 100. Each
    # of the two operations rounds by at most eps / 2, and so does the constant: 2 eps
    # leaves room for both.
    return 2 * eps * magnitude


def tied_ranks(values: Array, errors: Array) -> Array:
    """Ranks, 1 for the smallest value; tied values share the average of their ranks.

    Neighbours that differ by at most the sum of their errors are tied.
    """
    # The errors are the second key, so that the order of equal values is defined.
    order = np.lexsort((errors, values))
    ascending = values[order]
    errors = errors[order]

    # A group of tied values starts where the gap to the value before is too large.
    gaps = np.diff(ascending)
    tolerances = errors[1:] + errors[:-1]
    starts_group = np.append(0, gaps > tolerances)
    group = np.cumsum(starts_group)
    size = np.bincount(group)

    # A group of s values that ends at rank e holds the ranks e - s + 1, ..., e, whose
    # average is e - (s - 1) / 2.
    last_rank = np.cumsum(size)
    average_rank = last_rank - (size - 1) / 2

    ranks = np.empty(len(values))
    ranks[order] = average_rank[group]
    return ranks


def rank_rows(scores: Array) -> Array:
    """The rank of each method on each instance.

    Parameters
    ----------
    scores : array of shape (instances, methods)
        Higher scores are better.

    Returns
    -------
    array of shape (instances, methods)
        Ranks, 1 for the highest score; tied scores share the average of their ranks.

    Examples
    --------
    >>> import numpy as np
    >>> from imprint.stats import rank_rows
    >>> rank_rows(np.array([[90.0, 80.0, 90.0]])).tolist()
    [[1.5, 3.0, 1.5]]
    """
    # Negated, the highest score is the smallest value.
    negated = -scores.astype(np.float64)
    errors = rounding_error(scores)
    ranks = list(map(tied_ranks, negated, errors))
    return np.stack(ranks)


def friedman(scores: ArrayLike) -> Friedman:
    """Friedman's chi-square test with the correction for ties.

    Parameters
    ----------
    scores : array-like of shape (instances, methods)
        Two or more methods; higher scores are better.

    Returns
    -------
    Friedman
        The statistic and the p-value: 0 and 1 if all scores are tied.

    Examples
    --------
    >>> from imprint.stats import friedman
    >>> friedman([[3, 2, 1], [3, 1, 2], [9, 5, 5], [4, 4, 1]]).statistic
    5.571428571428571
    """
    # SciPy's special functions take a tenth of a second to import.
    from scipy.special import chdtrc

    table = _finite_array("friedman", scores, dimensions=2)
    ranks = rank_rows(table)
    methods = ranks.shape[1]
    centred = ranks - (methods + 1) / 2

    # Without ties, the variation of the ranks is n m (m^2 - 1) / 12, and the ratio
    # below is the textbook formula. Ties reduce the variation: that is the correction.
    variation = float((centred**2).sum())
    rank_sums = centred.sum(axis=0)
    between_methods = float((rank_sums**2).sum())
    freedom = methods - 1
    statistic = 0.0
    if variation:
        statistic = freedom * between_methods / variation
    p = chdtrc(freedom, statistic)
    return Friedman(statistic, float(p))


def wilcoxon(first: ArrayLike, second: ArrayLike) -> float:
    """Two-sided p-value of the Wilcoxon signed-rank test on paired scores.

    Zero differences are ranked with the others and then left out (Pratt, 1959); tied
    differences share their average rank. The null distribution given these ranks is
    exact for up to 200 non-zero differences. Above, it is the normal approximation
    without continuity correction.

    Parameters
    ----------
    first, second : array-like of shape (instances,)
        The scores of two methods on the same instances.

    Returns
    -------
    float
        The p-value: 1 without a non-zero difference.

    Examples
    --------
    >>> from imprint.stats import wilcoxon
    >>> wilcoxon(range(1, 49), [0] * 48) == 2 / 2**48
    True
    >>> wilcoxon([1, 2, 3], [1, 2, 3])
    1.0
    """
    a = _finite_array("wilcoxon", first, dimensions=1)
    b = _finite_array("wilcoxon", second, dimensions=1)
    if len(a) != len(b):
        raise ParameterError(
            f"wilcoxon: {len(a)} and {len(b)} scores; the scores must be paired."
        )
    errors = rounding_error(a) + rounding_error(b)
    difference = a.astype(np.float64) - b
    magnitude = np.abs(difference)
    nonzero = magnitude > errors

    # Zeros take the lowest ranks before they are left out: that is Pratt's method.
    magnitude[~nonzero] = 0
    all_ranks = tied_ranks(magnitude, errors)
    ranks = all_ranks[nonzero]
    total = ranks.sum()
    is_positive = difference[nonzero] > 0
    positive = ranks[is_positive].sum()
    smaller = min(positive, total - positive)

    if len(ranks) <= MAX_EXACT_DIFFERENCES:
        tail = _exact_tail(ranks, smaller)
    else:
        tail = _normal_tail(ranks, smaller)
    # The null distribution is symmetric. If both sums are equal, the tails overlap.
    return min(1.0, 2 * tail)


def _exact_tail(ranks: Array, limit: float) -> float:
    """The probability that a random subset of the ranks has a sum <= `limit`."""
    # Average ranks are multiples of 1/2, so twice a rank is an integer.
    doubled_ranks = np.rint(2 * ranks)
    doubled_limit = round(2 * limit)

    subsets = np.zeros(doubled_limit + 1)  # number of subsets by their sum
    subsets[0] = 1
    for rank in doubled_ranks.astype(np.intp):
        # Each subset so far, once without this rank and once with it. NumPy buffers
        # operands that overlap, so the right side holds the old numbers.
        reachable = max(doubled_limit + 1 - rank, 0)
        subsets[rank:] += subsets[:reachable]
    every_subset = 2.0 ** len(ranks)
    return float(subsets.sum() / every_subset)


def _normal_tail(ranks: Array, limit: float) -> float:
    """The same probability if the sum is taken as normally distributed."""
    from scipy.special import ndtr

    # Each rank is in the subset with probability 1/2, independently of the others.
    mean = ranks.sum() / 2
    variance = (ranks**2).sum() / 4
    standard_score = (limit - mean) / np.sqrt(variance)
    return float(ndtr(standard_score))


def holm(p: ArrayLike) -> Array:
    """Holm's step-down adjustment of p-values, to be compared with alpha.

    The smallest of m p-values is multiplied by m, the next by m - 1, and so on. An
    adjusted value is at least the one before it and at most 1.

    Parameters
    ----------
    p : array-like of shape (tests,)
        Raw p-values.

    Returns
    -------
    array of shape (tests,)
        Adjusted p-values, in the same order.

    Examples
    --------
    >>> from imprint.stats import holm
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    values = _finite_array("holm", p, dimensions=1)
    raw = values.astype(np.float64)
    order = np.argsort(raw, kind="stable")
    tests = len(raw)
    factors = np.arange(tests, 0, -1)
    stepped = raw[order] * factors
    # Holm stops at the first test that does not reject, so no later one rejects either.
    increasing = np.maximum.accumulate(stepped)
    adjusted = np.empty_like(raw)
    adjusted[order] = np.minimum(increasing, 1)
    return adjusted


def _finite_array(
    call: str,
    values: ArrayLike,
    dimensions: int,
) -> Array:
    """The values as an array; refused unless they are finite real numbers."""
    array = np.asarray(values)
    is_table = dimensions == 2
    # A sequence may be empty: the test then finds no difference. A table may not.
    has_values = array.size > 0 or not is_table
    is_numeric = array.dtype.kind in "iuf"
    fits = array.ndim == dimensions and is_numeric and has_values
    if fits and np.isfinite(array).all():
        return array
    shape = "instances x methods" if is_table else "a sequence"
    raise ParameterError(
        f"{call}: got {array.dtype} of shape {array.shape}; give finite numbers,"
        f" {shape}."
    )
