"""Best scores per class."""

import numpy as np
import pytest

from imprint.kernels import maxima


@pytest.mark.parametrize(("queries", "proxies"), [(1, 1), (10, 7), (37, 50), (999, 999)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equals_the_loop_over_classes(queries, proxies, dtype, monkeypatch):
    monkeypatch.setattr(maxima, "QUERIES", queries)
    monkeypatch.setattr(maxima, "PROXIES", proxies)
    rng = np.random.default_rng(0)
    Q, W = rng.normal(size=(37, 12)).astype(dtype), -np.abs(rng.normal(size=(50, 12))).astype(dtype)
    starts = np.array([0, 1, 20, 49])
    scores = Q.astype(np.float64) @ W.astype(np.float64).T
    expected = np.stack([s.max(axis=1) for s in np.split(scores, starts[1:], axis=1)], axis=1)
    best = maxima.class_maxima(Q, W, starts)
    assert best.dtype == dtype
    np.testing.assert_allclose(best, expected, rtol=1e-5, atol=1e-6)


def test_no_queries():
    assert maxima.class_maxima(np.empty((0, 3)), np.ones((2, 3)), np.array([0, 1])).shape == (0, 2)
