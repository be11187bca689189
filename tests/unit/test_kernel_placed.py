"""The tensor kernels behind the same doors, on the CPU's tensors."""

import numpy as np
import pytest

from imprint.kernels import placed
from imprint.kernels.kmeans import Problem

torch = pytest.importorskip("torch")
rng = np.random.default_rng(0)
Q, W = rng.normal(size=(40, 6)).astype(np.float32), rng.normal(size=(30, 6)).astype(np.float32)
STARTS = np.array([0, 12, 13])


@pytest.fixture
def tensors(monkeypatch):
    """Take the way of another device, and stay on this one."""
    monkeypatch.setattr(placed, "_tensor", lambda array, device: torch.from_numpy(np.array(array)))
    return "elsewhere"


def test_maxima(tensors):
    here, there = (placed.class_maxima(Q, W, STARTS, device) for device in ("cpu", tensors))
    np.testing.assert_allclose(here, there, rtol=1e-5)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
def test_neighbours(tensors, metric):
    here, there = (placed.class_neighbours(Q, W, STARTS, 5, metric, device) for device in ("cpu", tensors))
    assert [a.shape for a in here] == [b.shape for b in there] == [(5, 40), (1, 40), (5, 40)]
    for a, b in zip(here, there):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


def test_clusterings(tensors):
    problems = [Problem(0, k, (seed, 3)) for k in (1, 3, 40) for seed in (1, 2)]
    for a, b in zip(*(placed.kmeans_many(W, problems, device) for device in ("cpu", tensors))):
        one, two = np.lexsort(a.centres.T), np.lexsort(b.centres.T)  # centres may come in another order
        np.testing.assert_allclose(a.centres[one], b.centres[two], atol=1e-5)
        np.testing.assert_array_equal(a.mass[one], b.mass[two])
        np.testing.assert_allclose(a.centres[a.labels], b.centres[b.labels], atol=1e-5)
