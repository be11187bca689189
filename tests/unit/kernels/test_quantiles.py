import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from imprint.kernels import cpu
from imprint.kernels.quantiles import quantiles, ranks, successive_targets

few = st.lists(st.floats(-4, 4, width=16), min_size=1, max_size=12).map(
    lambda v: np.array(v, dtype=np.float32)
)


@given(few)
def test_quantiles_are_those_of_numpy(values):
    levels = (np.arange(9) + 0.5) / 9
    np.testing.assert_array_equal(
        quantiles(np.sort(values), levels), np.quantile(values, levels)
    )


@given(values=st.lists(st.floats(-4, 4, width=16), min_size=1, max_size=30))
def test_ranks_are_those_of_a_stable_sort(values):
    for dtype in (np.float32, np.float64):
        X = np.array(
            [values, values[::-1], [0.0, -0.0, 1e-40, -1e-40, *values][: len(values)]],
            dtype=dtype,
        )
        expected = np.argsort(np.argsort(X, axis=1, kind="stable"), axis=1)
        np.testing.assert_array_equal(ranks(X), expected)


@pytest.mark.parametrize("compiled", [False, True])
@given(
    rows=st.integers(1, 4),
    seed=st.integers(0, 99),
    sizes=st.lists(st.integers(1, 5), max_size=5),
)
def test_targets_are_quantiles_of_all_that_came_before(rows, seed, sizes, compiled):
    for dtype in (np.float32, np.float64):
        first = np.maximum(
            np.random.default_rng(seed).normal(size=(rows, 7)), 0
        ).astype(dtype)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cpu, "use_numba", lambda work: compiled)
            targets = successive_targets(first, sizes)
        assert targets.dtype == dtype
        before = [first.ravel()]
        for target, size in zip(targets, sizes, strict=True):
            expected = np.quantile(
                np.concatenate(before), (np.arange(7) + 0.5) / 7
            ).astype(dtype)
            np.testing.assert_array_equal(target, expected)
            before += [target] * size
