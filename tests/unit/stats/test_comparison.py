"""`compare`: results, groups, and their invariants."""

import dataclasses
import pickle
from itertools import combinations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from imprint.core.errors import ParameterError
from imprint.stats import compare

NAMES = ("fps", "kmeans", "mean", "random", "all")
tables = arrays(
    np.int64,
    st.tuples(st.integers(1, 20), st.integers(2, 5)),
    elements=st.integers(0, 6),
    fill=st.nothing(),
)


def graded(n=20, gap=1.0, methods=4, seed=0):
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(n, methods))
        + gap * np.arange(methods)
        + rng.normal(size=(n, 1))
    )


def verdicts(result):
    """All results of a comparison, by name."""
    return {frozenset(pair[:2]): pair[2:] for pair in result.pairs}, dict(
        zip(result.names, result.ranks)
    )


@given(tables)
def test_ranks_are_average_ranks_and_sum_up(scores):
    result = compare(scores, NAMES[: scores.shape[1]])
    expected = scipy.stats.rankdata(-scores, axis=1).mean(axis=0)
    assert result.ranks == pytest.approx(expected)
    assert result.instances == len(scores)


@given(tables)
def test_adjusted_p_lies_between_raw_p_and_1(scores):
    for pair in compare(scores, NAMES[: scores.shape[1]]).pairs:
        assert 0 < pair.p <= pair.adjusted <= 1


@given(tables, st.randoms(use_true_random=False))
def test_the_order_of_rows_and_of_methods_changes_nothing(scores, random):
    rows, columns = list(range(len(scores))), list(range(scores.shape[1]))
    random.shuffle(rows), random.shuffle(columns)
    names = NAMES[: scores.shape[1]]
    plain = compare(scores, names)
    mixed = compare(scores[rows][:, columns], [names[j] for j in columns])
    assert verdicts(mixed) == verdicts(plain)
    assert mixed.friedman == plain.friedman
    assert (mixed.groups, mixed.order) == (plain.groups, plain.order)


@given(arrays(np.float64, (12, 5), elements=st.integers(0, 9)), st.floats(0.01, 0.9))
@settings(max_examples=300)
def test_groups_are_the_maximal_runs_without_a_difference(scores, alpha):
    result = compare(scores + np.arange(5), NAMES, alpha=alpha)
    differ = {frozenset(pair[:2]) for pair in result.pairs if pair.significant}
    runs = {result.order[i:j] for i, j in combinations(range(6), 2)}
    alike = {
        r
        for r in runs
        if not any(frozenset(two) in differ for two in combinations(r, 2))
    }
    maximal = {
        r
        for r in alike
        if not any(set(r) < set(other) for other in alike) and len(r) > 1
    }
    assert set(result.groups) == maximal
    assert len(result.groups) == len(maximal)


def test_a_group_never_bridges_a_method_that_differs():
    """a and c do not differ significantly, but b between them differs from a: no bar may join a and c."""
    n = 30
    b = np.zeros(n)
    a = np.where(np.arange(n) < 22, 0.5, -0.01)  # over b mostly, by little
    c = np.where(np.arange(n) < 9, 5.0, -1.0)  # seldom over b, but by much
    c[9:16] = -0.001
    result = compare(np.stack([a, b, c], axis=1), ["a", "b", "c"])
    assert result.order == ("a", "b", "c")
    assert result.pair("a", "b").significant
    assert not result.pair("a", "c").significant
    assert all({"a", "c"} - set(group) for group in result.groups)


def test_no_pair_is_significant_where_friedman_does_not_reject():
    """Holm alone would separate b from c; raw and adjusted p are still reported."""
    a, b, c = (
        [7, 0, 0, 7, 8, 2, 3, 8],
        [5, 9, 8, 7, 1, 9, 6, 7],
        [2, 2, 4, 1, 1, 3, 3, 1],
    )
    result = compare({"a": a, "b": b, "c": c})
    assert result.friedman.p > 0.05 >= result.pair("b", "c").adjusted
    assert not any(pair.significant for pair in result.pairs)
    assert result.groups == (("b", "a", "c"),)


def test_two_methods_are_judged_by_wilcoxon_alone():
    scores = np.stack([[9, 8, 7, 6, 5, 4, -1, -2, -3], np.zeros(9)], axis=1)
    result = compare(scores, ["a", "b"])
    assert result.friedman.p > 0.05
    assert result.pair("b", "a").adjusted == result.pair("a", "b").p
    assert not result.pairs[0].significant
    clear = compare(
        np.stack([[9, 8, 7, 6, 5, 4, 3, 0.1, -1, -2], np.zeros(10)], axis=1), ["a", "b"]
    )
    assert clear.friedman.p > 0.05 > clear.pairs[0].p
    assert clear.pairs[0].significant
    assert clear.groups == ()


@pytest.mark.parametrize("methods", [2, 3, 25])
def test_one_instance_separates_no_methods(methods):
    result = compare([range(methods)], [f"m{j}" for j in range(methods)])
    assert all(pair.p == pair.adjusted == 1 for pair in result.pairs)
    assert result.groups == (result.order,)


def test_equal_methods_are_one_group():
    result = compare(np.full((10, 4), 0.5), NAMES[:4])
    assert result.ranks == (2.5,) * 4
    assert result.friedman == (0.0, 1.0)
    assert result.groups == (tuple(sorted(NAMES[:4])),)


def test_clear_differences_give_no_groups():
    result = compare(np.arange(4) + np.arange(20)[:, None] * 10, NAMES[:4])
    assert result.groups == ()
    assert result.order == ("random", "mean", "kmeans", "fps")


def test_pairs_cover_all_methods_once_in_order():
    result = compare(graded(), NAMES[:4])
    assert [pair[:2] for pair in result.pairs] == list(combinations(NAMES[:4], 2))


def test_raw_p_values_are_scipys():
    scores = graded(48, 0.2)
    result = compare(scores, NAMES[:4])
    for (i, j), pair in zip(combinations(range(4), 2), result.pairs):
        assert pair.p == pytest.approx(
            scipy.stats.wilcoxon(scores[:, i], scores[:, j]).pvalue, rel=1e-12
        )


def test_a_comparison_is_a_frozen_value():
    result = compare(graded(), NAMES[:4])
    assert result == compare(graded(), NAMES[:4])
    assert hash(result) == hash(pickle.loads(pickle.dumps(result)))
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.alpha = 0.1


def test_unknown_methods_get_a_suggestion():
    result = compare(graded(), NAMES[:4])
    with pytest.raises(
        ParameterError, match=r"Unknown method 'kmean'\. Did you mean 'kmeans'\?"
    ):
        result.rank("kmean")
    with pytest.raises(ParameterError, match="Unknown pair of methods 'mean, mean'"):
        result.pair("mean", "mean")


@pytest.mark.parametrize("alpha", [0, 1, -0.1, "0.05", None, float("nan")])
def test_alpha_must_be_a_probability(alpha):
    with pytest.raises(ParameterError, match="alpha must be a number between 0 and 1"):
        compare(graded(), NAMES[:4], alpha=alpha)


def test_scores_do_not_change():
    scores = graded()
    before = scores.copy()
    compare(scores, NAMES[:4])
    assert (scores == before).all()
