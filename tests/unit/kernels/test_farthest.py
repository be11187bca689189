"""Farthest points compared with their definition."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from imprint.kernels import cpu
from imprint.kernels.medoids import farthest_points


@pytest.fixture(params=[0, float("inf")], ids=["compiled", "numpy"], autouse=True)
def each_engine(request, monkeypatch):
    monkeypatch.setattr(cpu, "MIN_COMPILED_WORK", request.param)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_each_row_is_the_farthest(dtype):
    X = np.random.default_rng(0).normal(size=(1500, 9)).astype(dtype)
    chosen = farthest_points(X, 40, first=7)
    D = cdist(X, X)
    assert chosen[0] == 7
    for i in range(1, 40):
        assert chosen[i] == np.argmax(D[chosen[:i]].min(axis=0))
    assert np.array_equal(farthest_points(X, 11, first=7), chosen[:11])


def test_no_row_is_taken_twice():
    X = np.repeat(np.eye(3, dtype=np.float32), 4, axis=0)
    chosen = farthest_points(X, 50, first=2)
    assert sorted(chosen) == list(range(12))
    assert len(set(chosen[:3] // 4)) == 3
    assert chosen[3] == 0


@pytest.mark.parametrize("scale", [1e-23, 1, 1e19])
@pytest.mark.parametrize("offset", [0, 3000])
def test_far_from_the_origin_and_of_any_size(offset, scale):
    rng = np.random.default_rng(3)
    X = ((rng.normal(size=(400, 40)) + offset) * scale).astype(np.float32)
    X[5] = 0 if not offset else X[6]
    D = cdist(X.astype(np.float64) / scale, X.astype(np.float64) / scale)
    chosen = farthest_points(X, 60, first=1)
    for i in range(1, 60):
        assert chosen[i] == np.argmax(D[chosen[:i]].min(axis=0))
