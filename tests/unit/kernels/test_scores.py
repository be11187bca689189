"""Best scores per class; the predicted class has the largest probability, also after rounding."""

import numpy as np
import pytest

from imprint.kernels import scores
from imprint.kernels.scores import class_maxima, keep_winners


@pytest.mark.parametrize(
    ("queries", "proxies"), [(1, 1), (10, 7), (37, 50), (999, 999)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equals_the_loop_over_classes(queries, proxies, dtype, monkeypatch):
    monkeypatch.setattr(scores, "BLOCK_QUERIES", queries)
    monkeypatch.setattr(scores, "BLOCK_PROXIES", proxies)
    rng = np.random.default_rng(0)
    Q, W = (
        rng.normal(size=(37, 12)).astype(dtype),
        -np.abs(rng.normal(size=(50, 12))).astype(dtype),
    )
    starts = np.array([0, 1, 20, 49])
    products = Q.astype(np.float64) @ W.astype(np.float64).T
    expected = np.stack(
        [s.max(axis=1) for s in np.split(products, starts[1:], axis=1)], axis=1
    )
    best = class_maxima(Q, W, starts)
    assert best.dtype == dtype
    np.testing.assert_allclose(best, expected, rtol=1e-5, atol=1e-6)


def test_no_queries():
    assert class_maxima(np.empty((0, 3)), np.ones((2, 3)), np.array([0, 1])).shape == (
        0,
        2,
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("is_tensor", [False, True])
def test_the_winner_has_the_largest_probability(dtype, is_tensor):
    P, S = (
        np.array([[0.5, 0.5], [0.7, 0.3]]),
        np.array([[0, 1e-20], [2, 1]], dtype=dtype),
    )
    before = P.copy()
    if is_tensor:
        torch = pytest.importorskip("torch")
        P, S = torch.from_numpy(P), torch.from_numpy(S)
    result = keep_winners(P, S)
    assert result.dtype == S.dtype
    assert result.argmax(1).tolist() == [1, 0]
    np.testing.assert_allclose(result, before, rtol=1e-6)
    assert np.array_equal(P, before)  # the caller's probabilities do not change
