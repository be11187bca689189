"""Metrics from batches, workers and several passes equal those of all rows at once."""

import functools
import itertools
import operator
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imprint.collapse import Accumulator, cdnv, nc1, nc2, nc3, nc4, vci
from imprint.core.errors import ParameterError


def data(rows=900, classes=4, width=6, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    y = np.concatenate(
        [
            np.arange(classes),
            rng.choice(classes, rows - classes, p=np.arange(1, classes + 1) / 10),
        ]
    )
    X = rng.normal(size=(classes, width))[y] + rng.normal(size=(rows, width)) + 20
    return X.astype(dtype), y


def batches(X, y, cuts):
    edges = [0, *sorted(set(cuts) & set(range(1, len(y)))), len(y)]
    return [(X[a:b], y[a:b]) for a, b in itertools.pairwise(edges)]


def same(result, X, y, weights=None):
    assert result.nc1 == pytest.approx(nc1(X, y), rel=1e-9)
    assert result.nc1_legacy == pytest.approx(nc1(X, y, legacy=True), rel=1e-7)
    assert result.vci == pytest.approx(vci(X, y), rel=1e-9)
    assert result.cdnv == pytest.approx(cdnv(X, y), rel=1e-9)
    assert vars(result.nc2) == pytest.approx(vars(nc2(X, y)), rel=1e-9)
    if weights is not None:
        assert result.nc3(weights) == pytest.approx(nc3(X, y, weights), rel=1e-9)


splits = st.lists(st.integers(1, 899), max_size=12)


@given(splits, st.integers(0, 5), st.sampled_from([np.float32, np.float64]))
@settings(max_examples=40, deadline=None)
def test_any_split_into_batches_gives_the_same_metrics(cuts, seed, dtype):
    X, y = data(seed=seed, dtype=dtype)
    seen = Accumulator()
    for part in batches(X, y, cuts):
        seen.update(*part)
    same(seen.result(), X, y, np.eye(4, 6))


@given(splits, st.randoms(use_true_random=False), st.booleans())
@settings(max_examples=40, deadline=None)
def test_workers_may_be_merged_in_any_order(cuts, random, scatter):
    X, y = data()
    workers = [Accumulator(scatter).update(*part) for part in batches(X, y, cuts)] + [
        Accumulator(scatter)
    ]
    random.shuffle(workers)
    whole = functools.reduce(operator.add, workers)
    assert whole.result().cdnv == pytest.approx(cdnv(X, y), rel=1e-9)
    if scatter:
        same(whole.result(), X, y)


@given(splits, splits)
@settings(max_examples=30, deadline=None)
def test_two_passes_without_scatter_give_the_same_metrics(first, second):
    X, y = data()
    weights, bias = np.random.default_rng(1).normal(size=(4, 6)), np.arange(4.0)
    seen = Accumulator(scatter=False)
    for part in batches(X, y, first):
        seen.update(*part)
    order = np.random.default_rng(2).permutation(len(y))
    passes = [
        seen.second_pass(weights, bias).update(*part)
        for part in batches(X[order], y[order], second)
    ]
    result = functools.reduce(operator.add, passes).result()
    same(result, X, y, weights)
    assert result.nc4 == nc4(X, y, weights=weights, bias=bias)


def test_many_rows_of_wide_classes_become_matrices_and_still_agree():
    X, y = data(rows=3000, width=40)
    left, right = Accumulator(), Accumulator()
    for a in range(0, 3000, 100):
        (left if a < 1500 else right).update(X[a : a + 100], y[a : a + 100])
    same(left.merge(right).result(), X, y)
    more = left.update(X[:50], y[:50]).result()
    same(more, np.concatenate([X, X[:50]]), np.concatenate([y, y[:50]]))


def test_a_result_can_be_computed_at_any_time_and_does_not_change():
    X, y = data()
    seen = Accumulator().update(X[:500], y[:500])
    early = seen.result()
    value = early.nc1
    seen.update(X[500:], y[500:])
    assert early.nc1 == value == pytest.approx(nc1(X[:500], y[:500]), rel=1e-9)
    same(seen.result(), X, y)


def test_adding_accumulators_does_not_change_them():
    X, y = data()
    left, right = (
        Accumulator().update(X[:400], y[:400]),
        Accumulator().update(X[400:], y[400:]),
    )
    before = left.result().nc1, right.result().nc1
    same((left + right).result(), X, y)
    (left + right).update(X, y)
    assert (left.result().nc1, right.result().nc1) == before


def test_merging_with_itself_counts_every_row_twice():
    X, y = data()
    seen = Accumulator().update(X, y)
    same(seen.merge(seen).result(), np.concatenate([X, X]), np.concatenate([y, y]))
    assert seen.result().counts.sum() == 2 * len(y)


def test_accumulators_can_be_pickled():
    X, y = data()
    seen = Accumulator().update(X[:400], np.array(list("abcd"))[y[:400]])
    again = pickle.loads(pickle.dumps(seen)).update(
        X[400:], np.array(list("abcd"))[y[400:]]
    )
    same(again.result(), X, y)
    assert again.result().classes.tolist() == list("abcd")


def test_classes_may_appear_late_and_labels_keep_their_order():
    X, y = data()
    order = np.argsort(-y, kind="stable")
    seen = Accumulator()
    for a in range(0, 900, 90):
        seen.update(X[order][a : a + 90], y[order][a : a + 90])
    same(seen.result(), X, y, np.eye(4, 6))


def test_predictions_come_with_the_batches_of_the_second_pass():
    X, y = data()
    predicted = np.random.default_rng(0).permutation(y)
    again = Accumulator().update(X, y).second_pass()
    for a in range(0, 900, 300):
        again.update(X[a : a + 300], y[a : a + 300], predicted[a : a + 300])
    assert again.result().nc4 == nc4(X, y, predictions=predicted)


def refused(match, action):
    with pytest.raises(ParameterError, match=match) as error:
        action()
    assert str(error.value).endswith(".")


def test_metrics_that_need_a_second_pass_are_refused():
    X, y = data()
    light = Accumulator(scatter=False).update(X, y)
    refused("second pass", lambda: light.result().nc1)
    refused("second pass", lambda: light.result().vci)
    refused("second pass", lambda: light.result().nc4)
    refused("second pass", lambda: light.second_pass().update(X, y).result().nc4)


def test_a_refused_batch_changes_nothing():
    X, y = data()
    seen = Accumulator().update(X, y)
    bad = X.copy()
    bad[-1, -1] = np.nan
    refused("finite", lambda: seen.update(bad, y))
    refused("6 columns", lambda: seen.update(X[:, :5], y))
    refused("one type", lambda: seen.update(X, y.astype(str)))
    same(seen.result(), X, y)


def test_incompatible_accumulators_are_refused():
    X, y = data()
    seen = Accumulator().update(X, y)
    refused("6 columns", lambda: seen.merge(Accumulator().update(X[:, :5], y)))
    refused("one type", lambda: seen.merge(Accumulator().update(X, y.astype(str))))
    refused("scatter=True", lambda: seen.merge(Accumulator(scatter=False)))
    refused("at least 2 classes", Accumulator().result)
    refused("at least 2 classes", Accumulator().update(X[:1], y[:1]).result)


def test_a_second_pass_over_other_rows_is_refused():
    X, y = data()
    again = Accumulator(scatter=False).update(X, y).second_pass()
    refused("class 0 must have", again.update(X[:300], y[:300]).result)
    refused("first pass", lambda: again.update(X, y + 1))
    refused("first pass", lambda: again.update(X[:, :3], y))
    refused("finite", lambda: again.update(X * np.nan, y))
    refused(
        "same first pass",
        lambda: again.merge(Accumulator(scatter=False).update(X + 1, y).second_pass()),
    )
    refused(
        "same first pass", lambda: again.merge(Accumulator().update(X, y).second_pass())
    )
    head = np.eye(4, 6)
    one, other = (
        Accumulator().update(X, y).second_pass(weights) for weights in (head, -head)
    )
    refused("same head", lambda: one.merge(other))


def test_many_small_classes_hold_rows_not_matrices():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 300)), np.arange(600) % 200
    X += rng.normal(size=(200, 300))[y]
    seen = Accumulator().update(X, y)
    same(seen.result(), X, y)
    assert len(pickle.dumps(seen)) < 3 * X.nbytes


def test_a_result_of_the_second_pass_does_not_change():
    X, y = data()
    again = Accumulator(scatter=False).update(X, y).second_pass().update(X, y)
    result = again.result()
    value = result.nc1
    again.update(X, y)
    assert result.nc1 == value
