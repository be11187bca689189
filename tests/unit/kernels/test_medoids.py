"""k-medoids: no swap improves, the published iteration, limited memory."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from imprint.kernels import cpu
from imprint.kernels.medoids import Pairwise, alternate, fasterpam


@pytest.fixture(params=[0, float("inf")], ids=["compiled", "numpy"], autouse=True)
def each_engine(request, monkeypatch):
    monkeypatch.setattr(cpu, "MIN_COMPILED_WORK", request.param)


def blobs(n, d=6, groups=5, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(groups, d))[rng.integers(groups, size=n)] * 3
        + rng.normal(size=(n, d))
        + 4
    ).astype(dtype)


def cost(D, medoids, mass):
    return D[medoids].min(axis=0) @ mass


def published(D, k):
    """The alternating iteration of the paper's package."""
    medoids = np.argsort(D.sum(axis=1), kind="stable")[:k]
    for _ in range(300):
        labels, old = np.argmin(D[medoids], axis=0), medoids.copy()
        for j in range(k):
            rows = np.flatnonzero(labels == j)
            costs = D[np.ix_(rows, rows)].sum(axis=1)
            if costs.min() < costs[rows == medoids[j]][0]:
                medoids[j] = rows[np.argmin(costs)]
        if np.array_equal(old, medoids):
            break
    return medoids


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [1, 2, 6])
def test_no_swap_lowers_the_cost(k, weighted):
    X = blobs(80)
    mass = np.random.default_rng(1).uniform(size=80) if weighted else np.ones(80)
    medoids, labels, distances = fasterpam(
        Pairwise(X), k, np.random.default_rng(0), mass
    )
    D, found = cdist(X, X), mass @ distances
    assert found == pytest.approx(cost(D, medoids, mass), rel=1e-5)
    assert np.array_equal(labels, np.argmin(D[medoids], axis=0))
    assert len(set(medoids)) == k
    for slot in range(k):
        for row in range(80):
            other = medoids.copy()
            other[slot] = row
            assert cost(D, other, mass) >= found * (1 - 1e-5)


def test_finds_separated_groups():
    X = np.repeat(np.arange(4) * 100.0, 30)[:, None] + np.random.default_rng(0).normal(
        size=(120, 1)
    )
    medoids, labels, _ = fasterpam(
        Pairwise(X), 4, np.random.default_rng(0), np.ones(120)
    )
    assert sorted(medoids // 30) == [0, 1, 2, 3]
    assert len(np.unique(labels.reshape(4, 30), axis=1)[0]) == 1


@pytest.mark.parametrize("k", [1, 3, 8])
def test_alternate_is_the_published_iteration(k):
    X = blobs(300)
    medoids, labels, distances = alternate(Pairwise(X), k, np.ones(300))
    D = cdist(X, X)
    assert np.array_equal(medoids, published(D, k))
    assert np.array_equal(labels, np.argmin(D[medoids], axis=0))
    np.testing.assert_allclose(distances, D[medoids].min(axis=0), rtol=1e-5, atol=1e-6)


def test_limited_memory_gives_the_same_medoids():
    X = blobs(1300)
    for method in (
        lambda pairs: fasterpam(pairs, 5, np.random.default_rng(2), np.ones(1300)),
        lambda pairs: alternate(pairs, 5, np.ones(1300)),
    ):
        held, computed = method(Pairwise(X, 2**30)), method(Pairwise(X, 1000))
        assert np.array_equal(held[0], computed[0])
        assert np.array_equal(held[1], computed[1])


def test_duplicates_and_large_k():
    X = blobs(3)[np.arange(20) % 3]
    for k in (3, 5, 20, 50):
        medoids, labels, distances = fasterpam(
            Pairwise(X), k, np.random.default_rng(0), np.ones(20)
        )
        assert len(medoids) <= 3
        assert np.array_equal(np.unique(labels), np.arange(len(medoids)))
        if k >= 20:
            assert not distances.any()


def test_many_medoids_of_few_rows_are_those_of_exact_distances():
    """Most clusters have two rows with equal costs as medoids; exact distances keep the current medoid."""
    for seed in range(30):
        X = blobs(60, d=32, seed=seed)
        D = cdist(X.astype(np.float64), X.astype(np.float64)).astype(np.float32)
        assert np.array_equal(
            alternate(Pairwise(X), 20, np.ones(60)).rows, published(D, 20)
        ), seed
