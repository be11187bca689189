"""Every generator compared with a plain implementation of its definition: loops and full matrices."""

import numpy as np
import pytest

from imprint import ImprintClassifier, generators
from imprint.core.arrays import class_rng
from imprint.kernels.medoids import Pairwise, alternate


def rows(n=40, d=5, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(dtype) + 0.5


def made(text, X, seed=1):
    g = generators.family.resolve(text)
    return g.proxies([g.summarise(X, np.random.default_rng(seed))])[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all(dtype):
    X = rows(dtype=dtype)
    assert np.array_equal(made("all", X), X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mean(dtype):
    X = rows(dtype=dtype)
    mean = [
        sum(float(X[i, j]) for i in range(len(X))) / len(X) for j in range(X.shape[1])
    ]
    np.testing.assert_allclose(made("mean", X), [mean], rtol=1e-12)


def test_mean_of_many_float32_rows_is_accurate():
    X = np.full((200_000, 1), 0.1, dtype=np.float32)
    assert np.float32(made("mean", X)[0, 0]) == np.float32(0.1)


def test_random_draws_k_rows_uniformly():
    X = np.arange(10.0)[:, None]
    drawn = [made("random(k=3)", X, seed)[:, 0] for seed in range(4000)]
    assert all(len(set(d)) == 3 for d in drawn)
    counts = np.bincount(np.concatenate(drawn).astype(int), minlength=10)
    assert counts.sum() == 12_000
    assert abs(counts - 1200).max() < 5 * np.sqrt(1200)


@pytest.mark.parametrize("k", [1, 4, 40])
def test_covmax_is_the_published_rule(k):
    X = rows()
    C = np.array(
        [[sum((a - a.mean()) * (b - b.mean())) / (len(a) - 1) for b in X] for a in X]
    )
    best = np.argsort(-C.sum(axis=0), kind="stable")[:k]
    assert np.array_equal(made(f"covmax(k={k})", X), X[best])


@pytest.mark.parametrize("k", [1, 2, 9, 40])
def test_fps_is_the_greedy_rule(k):
    X = rows()
    picked = [int(np.random.default_rng(1).integers(len(X)))]
    while len(picked) < k:
        gaps = [
            -1 if i in picked else min(np.linalg.norm(X[i] - X[j]) for j in picked)
            for i in range(len(X))
        ]
        picked.append(int(np.argmax(gaps)))
    assert np.array_equal(made(f"fps(k={k})", X), X[picked])


def test_kmeans_is_a_fixed_point_of_lloyd():
    X = rows(200, 4, seed=5)
    centres = made("kmeans(k=6)", X)
    nearest = [int(np.argmin([np.linalg.norm(x - c) for c in centres])) for x in X]
    again = [
        np.mean([x for x, j in zip(X, nearest) if j == c], axis=0) for c in range(6)
    ]
    np.testing.assert_allclose(again, centres, rtol=1e-10)


def cost(X, medoids):
    return sum(min(np.linalg.norm(x - m) for m in medoids) for x in X)


def test_kmedoids_cannot_be_improved_by_any_swap():
    X = rows(30, 3, seed=2)
    medoids = made("kmedoids(k=4)", X)
    assert all(any(np.array_equal(m, x) for x in X) for m in medoids)
    best = cost(X, medoids)
    for i in range(4):
        for x in X:
            other = medoids.copy()
            other[i] = x
            assert cost(X, other) >= best - 1e-6


def test_alternate_is_the_search_of_that_name_and_fasterpam_is_no_worse():
    """The tests of the search compare it with the published iteration."""
    X, k = rows(50, 3, seed=4), 5
    medoids = alternate(Pairwise(X), k, np.ones(len(X)))[0]
    assert np.array_equal(made(f"kmedoids(k={k}, method='alternate')", X), X[medoids])
    assert cost(X, made(f"kmedoids(k={k})", X)) <= cost(X, X[medoids]) + 1e-9


def classes(sizes=(30, 50, 20), d=4, seed=7):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, d)) + 2 * rng.normal(size=d) for n in sizes]


@pytest.mark.parametrize("sizes", [(30, 30, 30), (30, 50, 20), (2, 3, 1)])
@pytest.mark.parametrize("reg", [1e-4, 0.3])
def test_least_squares_is_the_published_formula(sizes, reg):
    groups = classes(sizes)
    H = np.concatenate(groups)
    mu = H.mean(axis=0)
    total = sum(np.outer(h - mu, h - mu) for h in H) / len(H)
    M = np.stack([g.mean(axis=0) for g in groups])
    W = M @ np.linalg.inv(total + np.outer(mu, mu) + reg * np.eye(4)) / len(groups)
    g = generators.family.resolve(f"least_squares(reg={reg})")
    np.testing.assert_allclose(
        np.concatenate(g.proxies([g.summarise(x, None) for x in groups])), W, rtol=1e-7
    )


def test_least_squares_by_samples_is_ridge_regression():
    from sklearn.linear_model import Ridge

    groups, reg = classes(), 0.02
    H, T = (
        np.concatenate(groups),
        np.repeat(np.eye(3), [len(g) for g in groups], axis=0),
    )
    ridge = (
        Ridge(alpha=reg * len(H), fit_intercept=False, solver="cholesky")
        .fit(H, T)
        .coef_
    )
    g = generators.family.resolve(f"least_squares(reg={reg}, weighting='samples')")
    np.testing.assert_allclose(
        np.concatenate(g.proxies([g.summarise(x, None) for x in groups])),
        ridge,
        rtol=1e-8,
    )


def test_k_least_squares_solves_jointly_over_clusters():
    """Every k-means cluster is a class in the least-squares formula."""
    groups, reg, k = classes((60, 40)), 0.05, 3
    clusters = []
    for label, X in enumerate(groups):
        centres = generators.family.resolve(f"kmeans(k={k})").summarise(
            X, class_rng(0, label)
        )["rows"]
        owner = np.argmin([[np.linalg.norm(x - c) for c in centres] for x in X], axis=1)
        clusters += [X[owner == j] for j in range(k)]
    H = np.concatenate(groups)
    M = np.stack([c.mean(axis=0) for c in clusters])
    W = M @ np.linalg.inv(H.T @ H / len(H) + reg * np.eye(4)) / len(clusters)
    g = generators.family.resolve(f"k_least_squares(k={k}, reg={reg})")
    proxies = np.concatenate(
        g.proxies(
            [g.summarise(x, class_rng(0, label)) for label, x in enumerate(groups)]
        )
    )
    assert len(proxies) == len(W)
    for w in W:  # clusters may be in any order
        assert np.abs(proxies - w).max(axis=1).min() < 1e-8


@pytest.mark.parametrize(
    ("one", "other"),
    [("kmeans(k=1)", "mean"), ("k_least_squares(k=1)", "least_squares")],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_special_cases_agree(one, other, dtype):
    X = np.concatenate(classes()).astype(dtype)
    y = np.repeat([0, 1, 2], [30, 50, 20])
    a, b = (
        ImprintClassifier(generator=g, aggregator="max", random_state=0)
        .fit(X, y)
        .proxies_.weights
        for g in (one, other)
    )
    assert np.array_equal(a, b)


def test_random_with_enough_k_is_all():
    X = rows()
    assert np.array_equal(
        np.unique(made("random(k=1000)", X), axis=0), np.unique(X, axis=0)
    )


def test_mass_and_spread_of_extended_kmeans_include_all_rows():
    """Old rows follow their old centre to the nearest new centre; mass and spread are exact for this assignment."""
    g, X, more = (
        generators.family.resolve("kmeans(k=3)"),
        rows(60, 4, seed=3),
        rows(25, 4, seed=8) + 1,
    )
    old = g.summarise(X, np.random.default_rng(1))
    new = g.extend(old, more, np.random.default_rng(1))
    centres = new["rows"].astype(float)

    def nearest(points, to):
        return np.argmin([[((p - c) ** 2).sum() for c in to] for p in points], axis=1)

    home = np.concatenate(
        [nearest(old["rows"], centres)[nearest(X, old["rows"])], nearest(more, centres)]
    )
    everything = np.concatenate([X, more])
    assert np.array_equal(new["mass"], np.bincount(home, minlength=3))
    expected = [
        ((everything[home == j] - centres[j]) ** 2).sum(axis=1).mean() for j in range(3)
    ]
    np.testing.assert_allclose(new["spread"], expected, rtol=1e-9)
