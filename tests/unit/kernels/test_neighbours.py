"""Neighbour lists compared with brute force in scikit-learn."""

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from imprint.core.errors import ParameterError
from imprint.kernels import neighbours
from imprint.kernels.neighbours import METRICS, nearest


def rows(n, d, rank, seed, dtype=np.float32):
    rng = np.random.default_rng(seed)
    X = np.random.default_rng(5).normal(size=(rank, d))
    return (rng.normal(size=(n, rank)) @ X + rng.normal(size=(n, d)) * 0.2 + 2).astype(
        dtype
    )


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n", "d", "rank"), [(5000, 150, 8), (700, 10, 10), (9000, 128, 128)]
)
@pytest.mark.parametrize("m", [1, 7])
def test_equals_brute_force(metric, dtype, n, d, rank, m):
    Q, W = rows(300, d, rank, 1, dtype), rows(n, d, rank, 2, dtype)
    distances, indices = nearest(Q, W, m, metric)
    theirs = NearestNeighbors(n_neighbors=m, metric=metric, algorithm="brute").fit(
        W.astype(np.float64)
    )
    expected, neighbours = theirs.kneighbors(Q.astype(np.float64))
    assert np.array_equal(indices, neighbours)
    np.testing.assert_allclose(distances, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("metric", METRICS)
def test_ties_go_to_the_lower_index(metric):
    W = np.repeat(rows(400, 70, 5, 3), 3, axis=0)[
        np.random.default_rng(0).permutation(1200)
    ]
    distances, indices = nearest(W[:200], W, 6, metric)
    assert (np.diff(distances, axis=1) >= 0).all()
    for q in range(200):
        same = np.flatnonzero((W[q] == W).all(axis=1))
        assert indices[q, :3].tolist() == same.tolist()
        second = np.flatnonzero((W[indices[q, 3]] == W).all(axis=1))
        assert indices[q, 3:].tolist() == second.tolist()


def test_fewer_rows_than_asked_for():
    distances, indices = nearest(rows(4, 6, 2, 0), rows(3, 6, 2, 1), 5)
    assert indices.shape == distances.shape == (4, 3)
    assert (np.sort(indices, axis=1) == np.arange(3)).all()


def test_a_zero_row_is_at_cosine_distance_one():
    W = rows(2000, 70, 5, 0)
    W[3] = 0
    Q = np.concatenate([np.zeros((1, 70), dtype=np.float32), W[:1]])
    distances, indices = nearest(Q, W, 3, "cosine")
    assert distances[0].tolist() == [1, 1, 1]
    assert indices[0].tolist() == [0, 1, 2]
    assert indices[1, 0] == 0


def compared_with_all(monkeypatch):
    """The number of queries compared with all rows, per call."""
    counts, whole = [], neighbours._among_all
    monkeypatch.setattr(
        neighbours,
        "_among_all",
        lambda Q, *rest: (counts.append(len(Q)), whole(Q, *rest))[1],
    )
    return counts


def test_an_outlier_neither_hides_neighbours_nor_costs_comparisons(monkeypatch):
    Q, W = rows(50, 130, 4, 1), rows(5000, 130, 4, 2)
    W[17] *= 1e4
    expected = nearest(Q.astype(np.float64), W.astype(np.float64), 3)[1]
    counts = compared_with_all(monkeypatch)
    assert np.array_equal(nearest(Q, W, 3)[1], expected)
    assert sum(counts) < 5


def test_queries_that_rounding_affects_are_compared_with_all_rows(monkeypatch):
    """Rows so close that float32 products cannot determine the nearest."""
    W = rows(3000, 40, 5, 2)
    W[100:200] = W[100] * (1 + 1e-7 * np.arange(100, dtype=np.float32)[:, None])
    Q = W[np.r_[100:110, 200:300]]
    expected = nearest(Q.astype(np.float64), W.astype(np.float64), 4)[1]
    counts = compared_with_all(monkeypatch)
    assert np.array_equal(nearest(Q, W, 4)[1], expected)
    assert counts == [10]


def test_refuses_unknown_metrics_and_empty_lists():
    X = rows(5, 3, 2, 0)
    with pytest.raises(ParameterError, match="euclidean, cosine, manhattan"):
        nearest(X, X, 1, "minkowski")
    with pytest.raises(ParameterError, match=r"nearest\(m=0\)"):
        nearest(X, X, 0)
