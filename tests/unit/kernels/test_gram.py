"""Gram matrices: accurate, complete, and independent of threads."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from imprint.kernels.ridge import gram, solve_ridge


@pytest.mark.parametrize("n", [0, 1, 7, 2048, 5000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equals_the_float64_product(n, dtype):
    X = np.random.default_rng(n).uniform(size=(n, 33)).astype(dtype)
    expected = X.astype(np.float64).T @ X.astype(np.float64)
    G = gram(X)
    assert G.dtype == np.float64
    np.testing.assert_allclose(G, expected, rtol=2e-6 if dtype == np.float32 else 1e-13)
    assert np.array_equal(G, G.T)


def test_many_rows_lose_no_digits():
    X = np.full((60_000, 2), 0.1, dtype=np.float32)
    np.testing.assert_allclose(gram(X), 60_000 * float(np.float32(0.1)) ** 2, rtol=1e-6)


def test_threads_change_no_bit():
    X = np.random.default_rng(0).normal(size=(9000, 200)).astype(np.float32)
    results = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            results.append(gram(X))
    assert np.array_equal(*results)


def test_ridge_solutions_do_not_depend_on_the_threads_of_blas():
    X = np.random.default_rng(0).normal(size=(2000, 640))
    solutions = []
    for threads in (1, 2, 4):
        with threadpool_limits(threads, user_api="blas"):
            solutions.append(solve_ridge(gram(X) / 2000, X[:8], 1e-4))
    assert all(np.array_equal(solutions[0], other) for other in solutions[1:])
