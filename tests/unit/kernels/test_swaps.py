"""Eager swaps, compiled and in NumPy, compared with a plain implementation: the same swaps, also for ties."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

pytest.importorskip("numba")

from imprint.kernels import medoids as plain
from imprint.kernels.compiled import pam


def plain_swaps(D, weight, medoids):
    """Swaps by their definition: every row and medoid in every round, in float64."""
    D, medoids, idle, row = D.astype(np.float64), medoids.copy(), 0, 0
    swaps = []
    while idle < len(D):
        M = D[medoids]
        cost, idle = weight @ M.min(axis=0), idle + 1
        costs = np.empty(len(medoids))
        for slot in range(len(medoids)):
            others = np.delete(M, slot, axis=0).min(axis=0)
            costs[slot] = weight @ np.minimum(others, D[row])
        best = int(np.argmin(costs))
        if costs[best] - cost < -1e-10 * cost:
            medoids[best], idle = row, 0
            swaps.append((best, row))
        row = (row + 1) % len(D)
    return medoids, swaps


def eager_swaps(D, weight, medoids, block, engine=pam):
    """The medoids after all swaps, the nearest of every row and its distance."""
    swap, rank = (
        (pam.eager_swaps, pam.rank)
        if engine is pam
        else (plain._eager_swaps, plain._rank)
    )
    medoids, M, idle = medoids.copy(), D[medoids], 0
    near, away = np.empty(len(D), np.int32), np.empty((2, len(D)), np.float32)
    rank(M, near, away)
    while idle < len(D):
        for start in range(0, len(D), block):
            if idle < len(D):
                idle = swap(
                    D[start : start + block],
                    start,
                    weight,
                    M,
                    medoids,
                    near,
                    away,
                    idle,
                )
    return medoids, near, away[0]


def distances(kind, n, rng):
    """Integer distances, whose sums are exact in any order."""
    X = {
        "normal": lambda: rng.normal(size=(n, 30)),
        "groups": lambda: (
            rng.normal(size=(6, 8))[rng.integers(6, size=n)] * 4
            + rng.normal(size=(n, 8))
        ),
        "integers": lambda: rng.integers(12, size=(n, 1)) * 1.0,
        "corners": lambda: np.eye(9)[rng.integers(9, size=n)] * 3,
    }[kind]()
    metric = "cityblock" if kind in ("integers", "corners") else "euclidean"
    return cdist(X, X, metric).astype(np.float32)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [2, 3, 4, 5, 9, 20, 69])
@pytest.mark.parametrize("kind", ["normal", "groups", "integers", "corners"])
def test_swaps_are_those_of_the_definition(kind, k, weighted):
    n, rng = 70, np.random.default_rng(k)
    D = distances(kind, n, rng)
    weight = rng.integers(1, 9, size=n) * 1.0 if weighted else np.ones(n)
    start = rng.choice(n, size=k, replace=False)
    expected, swaps = plain_swaps(D, weight, start)
    assert swaps or k == 69 or kind == "corners"
    for engine, block in ((pam, n), (pam, 16), (plain, n), (plain, 16)):
        medoids, labels, nearest = eager_swaps(D, weight, start, block, engine)
        assert np.array_equal(medoids, expected)
        assert np.array_equal(labels, np.argmin(D[expected], axis=0))
        assert np.array_equal(nearest, D[expected].min(axis=0))


@pytest.mark.parametrize("scale", [1e-60, 1e60])
def test_weights_of_any_size(scale):
    rng = np.random.default_rng(0)
    D, weight, start = (
        distances("groups", 90, rng),
        rng.uniform(1, 2, size=90),
        np.arange(5),
    )
    medoids = eager_swaps(D, weight * scale, start, 90)[0]
    assert np.array_equal(medoids, eager_swaps(D, weight, start, 90)[0])
    assert not np.array_equal(medoids, start)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("n", [1, 7, 50, 333])
@pytest.mark.parametrize("k", [2, 3, 7])
def test_the_two_nearest_of_every_row(k, n, ties):
    rng = np.random.default_rng(n)
    M = (
        rng.integers(4, size=(k, n)).astype(np.float32)
        if ties
        else rng.random((k, n), dtype=np.float32)
    )
    near, away = np.empty(n, np.int32), np.empty((2, n), np.float32)
    pam.rank(M, near, away)
    order = np.argsort(M, axis=0, kind="stable")
    assert np.array_equal(near, order[0])
    assert np.array_equal(away, np.take_along_axis(M, order[:2], axis=0))
