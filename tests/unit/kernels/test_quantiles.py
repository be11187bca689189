import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from imprint.kernels.quantiles import Pool, quantiles, ranks, targets_in_turn, values_at

few = st.lists(st.floats(-4, 4, width=16), min_size=1, max_size=12).map(lambda v: np.array(v, dtype=np.float32))


@given(few, st.lists(st.tuples(few, st.integers(1, 5)), max_size=4))
def test_quantiles_are_those_of_numpy(first, more):
    pool, everything = Pool(first), [first]
    for values, times in more:
        pool.add(values, times)
        everything += [values] * times
    q = (np.arange(9) + 0.5) / 9
    expected = np.quantile(np.concatenate(everything), q)
    np.testing.assert_array_equal(pool.quantiles(q), expected)
    np.testing.assert_array_equal(quantiles(np.concatenate(everything), q), expected)


@pytest.mark.parametrize("dtype", [np.int16, np.int32])
def test_every_rank_gets_its_value(dtype):
    rng = np.random.default_rng(0)
    X, values = rng.normal(size=(5, 300)), np.sort(rng.normal(size=300)).astype(np.float32)
    room = np.zeros((9, 300), dtype=np.float32)
    values_at(ranks(X).astype(dtype), values, room[2:7])
    assert not room[[0, 1, 7, 8]].any()
    for row, found in zip(X, room[2:7]):
        assert np.array_equal(found[np.argsort(row)], values)


@given(values=st.lists(st.floats(-4, 4, width=16), min_size=1, max_size=30))
def test_ranks_are_those_of_a_stable_sort(values):
    for dtype in (np.float32, np.float64):
        X = np.array([values, values[::-1], [0.0, -0.0, 1e-40, -1e-40, *values][: len(values)]], dtype=dtype)
        expected = np.argsort(np.argsort(X, axis=1, kind="stable"), axis=1)
        np.testing.assert_array_equal(ranks(X), expected)


@given(rows=st.integers(1, 4), seed=st.integers(0, 99), sizes=st.lists(st.integers(1, 5), max_size=5))
def test_targets_are_quantiles_of_all_that_came_before(rows, seed, sizes):
    for dtype in (np.float32, np.float64):
        first = np.maximum(np.random.default_rng(seed).normal(size=(rows, 7)), 0).astype(dtype)
        targets = targets_in_turn(first, sizes)
        assert targets.dtype == dtype
        before = [first.ravel()]
        for target, size in zip(targets, sizes, strict=True):
            np.testing.assert_array_equal(
                target, quantiles(np.concatenate(before), (np.arange(7) + 0.5) / 7).astype(dtype)
            )
            before += [target] * size
