"""The rank tests compared with scipy and with enumeration of all signs, and their invariants."""

from itertools import product

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from imprint.core.errors import ParameterError
from imprint.stats import friedman, holm, wilcoxon
from imprint.stats.rank_tests import MAX_EXACT_DIFFERENCES, rank_rows

few_values = st.integers(0, 4)
tied_pairs = st.lists(st.tuples(few_values, few_values), min_size=1, max_size=10)


def count_every_sign(first, second):
    """The definition: the share of all 2^n signs with a statistic at least as extreme, two-sided."""
    difference = np.subtract(first, second)
    ranks = scipy.stats.rankdata(np.abs(difference))[difference != 0]
    seen = ranks[difference[difference != 0] > 0].sum()
    sums = np.array(
        [np.dot(signs, ranks) for signs in product((0, 1), repeat=len(ranks))]
    )
    return min(1.0, 2 * min(np.mean(sums <= seen), np.mean(sums >= seen)))


@given(tied_pairs)
def test_wilcoxon_counts_every_sign_with_zeros_and_ties(pairs):
    first, second = np.array(pairs).T
    assert wilcoxon(first, second) == pytest.approx(
        count_every_sign(first, second), rel=1e-12
    )


@pytest.mark.parametrize("n", [1, 2, 5, 20, 48, 51, MAX_EXACT_DIFFERENCES])
def test_wilcoxon_without_ties_is_scipys_exact_test(n):
    rng = np.random.default_rng(n)
    first, second = rng.normal(0.2, 1, n), rng.normal(0, 1, n)
    expected = scipy.stats.wilcoxon(first, second, method="exact").pvalue
    assert wilcoxon(first, second) == pytest.approx(expected, rel=1e-12)


def test_wilcoxon_agrees_with_scipys_permutation_of_heavily_tied_data():
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 3, 12), rng.integers(0, 4, 12)
    every = scipy.stats.PermutationMethod(n_resamples=np.inf)
    expected = scipy.stats.wilcoxon(
        first, second, zero_method="pratt", method=every
    ).pvalue
    assert wilcoxon(first, second) == pytest.approx(expected, rel=1e-12)


def test_wilcoxon_agrees_with_a_random_permutation_test_on_48_heavily_tied_instances():
    rng = np.random.default_rng(1)
    first, second = rng.integers(0, 4, 48), rng.integers(0, 5, 48)
    difference = first - second
    ranks = np.where(difference == 0, 0, scipy.stats.rankdata(np.abs(difference)))
    centred = np.abs(rng.choice([-1, 1], (100_000, 48)) @ ranks)
    estimate = np.mean(centred >= abs(np.sign(difference) @ ranks) - 1e-9)
    assert wilcoxon(first, second) == pytest.approx(
        estimate, abs=4 * np.sqrt(estimate / 100_000)
    )


def test_beyond_the_exact_limit_wilcoxon_is_scipys_normal_approximation_with_zeros_and_ties():
    rng = np.random.default_rng(2)
    first, second = rng.integers(0, 9, 400), rng.integers(0, 10, 400)
    expected = scipy.stats.wilcoxon(
        first, second, zero_method="pratt", method="asymptotic"
    ).pvalue
    assert np.count_nonzero(first - second) > MAX_EXACT_DIFFERENCES
    assert wilcoxon(first, second) == pytest.approx(expected, rel=1e-12)


def test_exact_and_normal_p_values_agree_at_the_limit():
    rng = np.random.default_rng(3)
    first, second = (
        rng.normal(0.1, 1, MAX_EXACT_DIFFERENCES),
        rng.normal(0, 1, MAX_EXACT_DIFFERENCES),
    )
    normal = scipy.stats.wilcoxon(first, second, method="asymptotic").pvalue
    assert wilcoxon(first, second) == pytest.approx(normal, rel=0.02)
    assert wilcoxon(first, second) != pytest.approx(normal, rel=1e-6)


@given(st.lists(few_values, min_size=1, max_size=300))
def test_identical_scores_have_p_1(scores):
    assert wilcoxon(scores, scores) == 1.0


@given(
    tied_pairs, st.sampled_from([500, 5, 7]), st.sampled_from([np.float64, np.float32])
)
def test_counts_fractions_and_percentages_give_one_p(pairs, total, dtype):
    """1/500 - 0/500 and 3/500 - 2/500 are the same difference, despite rounding in the last bit."""
    first, second = np.array(pairs).T + 0.0
    scaled = [(scores / total).astype(dtype) for scores in (first, second)]
    assert wilcoxon(*scaled) == wilcoxon(first, second)
    assert wilcoxon(*(100 * scores for scores in scaled)) == wilcoxon(first, second)


def test_differences_by_rounding_are_ties():
    first, second = [0.1 + 0.2, 0.8 - 0.7], [0.3, 0.1]
    assert first != second
    assert wilcoxon(first, second) == 1.0
    assert rank_rows(np.array([[0.1 + 0.2, 0.3, 0.2]])).tolist() == [[1.5, 1.5, 3.0]]


def test_differences_larger_than_rounding_count_however_small():
    first = 0.5 + np.arange(1, 7) * 1e-14
    assert wilcoxon(first, np.full(6, 0.5)) == 2 / 2**6


def test_wilcoxon_does_not_underflow_or_lose_the_tail():
    assert wilcoxon(np.arange(1, 201), np.zeros(200)) == 2.0**-199


@given(
    arrays(
        np.int64, st.tuples(st.integers(1, 12), st.integers(3, 6)), elements=few_values
    )
)
def test_friedman_is_scipys_with_its_correction_for_ties(scores):
    if (scores == scores[:, :1]).all():
        assert friedman(scores) == (0.0, 1.0)
    else:
        expected = scipy.stats.friedmanchisquare(*scores.T)
        assert friedman(scores) == pytest.approx(
            (expected.statistic, expected.pvalue), rel=1e-9
        )


def test_friedman_of_two_methods_is_the_sign_test_as_chi_square():
    scores = [[1, 0]] * 15 + [[0, 1]] * 5 + [[2, 2]] * 3
    statistic = (15 - 5) ** 2 / (15 + 5)
    assert friedman(scores) == pytest.approx(
        (statistic, scipy.stats.chi2.sf(statistic, 1))
    )


def test_friedman_never_rejects_on_one_instance():
    assert friedman([range(30)]).p > 0.4


@given(st.lists(st.floats(0, 1), max_size=20))
def test_holm_is_the_step_down_rule_and_never_below_raw(p):
    adjusted = holm(p)
    assert (adjusted >= p).all()
    assert (adjusted <= 1).all()
    order = np.argsort(p, kind="stable")
    for alpha in (0.01, 0.05, 0.2):
        rejected = 0
        while rejected < len(p) and p[order[rejected]] * (len(p) - rejected) <= alpha:
            rejected += 1
        assert set(np.flatnonzero(adjusted <= alpha)) == set(order[:rejected])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: wilcoxon([1, 2], [1]),
            "wilcoxon: 2 and 1 scores; the scores must be paired.",
        ),
        (
            lambda: wilcoxon([1, np.nan], [1, 2]),
            "wilcoxon: got float64 of shape (2,); give finite numbers, a sequence.",
        ),
        (
            lambda: friedman([1, 2]),
            "friedman: got int64 of shape (2,); give finite numbers, instances x methods.",
        ),
        (
            lambda: friedman(np.empty((0, 3))),
            "friedman: got float64 of shape (0, 3); give finite numbers, instances x methods.",
        ),
        (
            lambda: holm(["a"]),
            "holm: got <U1 of shape (1,); give finite numbers, a sequence.",
        ),
    ],
)
def test_bad_input_is_refused_in_one_sentence(call, message):
    with pytest.raises(ParameterError) as caught:
        call()
    assert str(caught.value) == message
