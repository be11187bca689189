"""Aggregators and normalisers compared with plain loops, and with scikit-learn's k-NN."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.neighbors import KNeighborsClassifier

from imprint import ImprintClassifier, aggregators, normalisers
from imprint.core.arrays import Proxies
from imprint.kernels.rows import unit_rows


def problem(seed=0, n=60, q=50, d=6, dtype=np.float64, classes=4):
    rng = np.random.default_rng(seed)
    labels = np.sort(
        np.concatenate([np.arange(classes), rng.integers(classes, size=n - classes)])
    )
    P = Proxies(rng.normal(size=(n, d)).astype(dtype), labels, np.ones(n), np.zeros(n))
    return P, rng.normal(size=(q, d)).astype(dtype), classes


def scores(text, Q, P):
    a = aggregators.family.resolve(text)
    return a.scores(Q, a.prepare(P, a.sums(P.weights, P.weights)))


def test_max_is_the_best_product_per_class():
    P, Q, C = problem()
    want = [
        [
            max(float(q @ w) for w, y in zip(P.weights, P.labels) if y == c)
            for c in range(C)
        ]
        for q in Q
    ]
    np.testing.assert_allclose(scores("max", Q, P), want, rtol=1e-12)


DISTANCE = {
    "euclidean": lambda a, b: np.sqrt(((a - b) ** 2).sum()),
    "cosine": lambda a, b: 1 - a @ b / np.sqrt((a @ a) * (b @ b)),
    "manhattan": lambda a, b: np.abs(a - b).sum(),
}


@pytest.mark.parametrize("metric", DISTANCE)
@pytest.mark.parametrize("m", [1, 3, 10])
def test_nearest_by_inverse_distance(metric, m):
    P, Q, C = problem()
    want = np.zeros((len(Q), C))
    for i, q in enumerate(Q):
        near = sorted((DISTANCE[metric](q, w), y) for w, y in zip(P.weights, P.labels))[
            :m
        ]
        for distance, y in near:
            want[i, y] += 1 / (distance + 1e-10)
    ours = scores(f"nearest(m={m}, metric={metric!r})", Q, P)
    np.testing.assert_allclose(ours, want / want.sum(axis=1, keepdims=True), rtol=1e-7)


@pytest.mark.parametrize("m", [1, 2, 4, 7])
def test_uniform_votes_break_ties_by_the_nearest(m):
    P, Q, C = problem(seed=3)
    a = aggregators.family.resolve(f"nearest(m={m}, weighting='uniform')")
    S = a.scores(Q, a.prepare(P, {}))
    ties = 0
    for i, q in enumerate(Q):
        near = sorted((np.linalg.norm(q - w), y) for w, y in zip(P.weights, P.labels))[
            :m
        ]
        heads = np.bincount([y for _, y in near], minlength=C)
        tied = [c for c in range(C) if heads[c] == heads.max()]
        ties += len(tied) > 1
        assert S[i].argmax() == next(y for _, y in near if y in tied)
        np.testing.assert_allclose(a.probabilities(S, P)[i], heads / m)
    assert ties or m == 1


def test_one_vote_per_class_is_not_always_class_zero():
    """With k = 1 and m = C every class has one vote; the published code then always predicts class 0."""
    P = Proxies(np.eye(3), np.arange(3), np.ones(3), np.zeros(3))
    S = scores("nearest(m=3, weighting='uniform')", np.eye(3), P)
    assert S.argmax(axis=1).tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m", [1, 5, 20])
@pytest.mark.parametrize(
    ("metric", "theirs"), [("euclidean",) * 2, ("cosine",) * 2, ("manhattan",) * 2]
)
def test_all_with_nearest_is_sklearns_distance_weighted_knn(dtype, m, metric, theirs):
    P, Q, _ = problem(seed=9, n=400, q=200, dtype=dtype)
    parts = dict(norm_pre="none", generator="all", norm_post="none", norm_inf="none")
    clf = ImprintClassifier(
        **parts, aggregator=f"nearest(m={m}, metric={metric!r})"
    ).fit(P.weights, P.labels)
    knn = KNeighborsClassifier(
        m, weights="distance", metric=theirs, algorithm="brute"
    ).fit(P.weights, P.labels)
    assert np.array_equal(clf.predict(Q), knn.predict(Q))
    np.testing.assert_allclose(clf.predict_proba(Q), knn.predict_proba(Q), atol=1e-5)


def test_a_query_that_is_a_proxy_gets_its_class():
    P, _, _ = problem(seed=2, dtype=np.float32)
    S = scores("nearest(m=5)", P.weights, P)
    assert np.array_equal(S.argmax(axis=1), P.labels)


@pytest.mark.parametrize("norm_inf", ["none", "l2"])
def test_max_with_l2_proxies_is_one_nearest(norm_inf):
    P, Q, _ = problem(seed=4, n=300, q=400)
    parts = dict(norm_pre="none", generator="all", norm_post="l2", norm_inf=norm_inf)
    a, b = (
        ImprintClassifier(**parts, aggregator=agg).fit(P.weights, P.labels).predict(Q)
        for agg in ("max", "nearest(m=1)")
    )
    assert np.array_equal(a, b)


@pytest.mark.parametrize("noise", [0.1, 1.0])
@pytest.mark.parametrize("gamma", [1.0, 0.3])
def test_all_with_kernel_is_sklearns_kernel_ridge(noise, gamma):
    """On one-hot labels, with the scale that the method's documentation states: twice the variance of all rows."""
    P, Q, C = problem(seed=5, n=200)
    parts = dict(norm_pre="none", generator="all", norm_post="none", norm_inf="none")
    aggregator = f"kernel(gamma={gamma}, noise={noise}, balance=0)"
    clf = ImprintClassifier(**parts, aggregator=aggregator).fit(P.weights, P.labels)
    s = 2 * P.weights.var(axis=0).sum()
    ridge = KernelRidge(kernel="rbf", gamma=gamma / s, alpha=noise).fit(
        P.weights, np.eye(C)[P.labels]
    )
    np.testing.assert_allclose(clf.decision_function(Q), ridge.predict(Q), atol=1e-6)
    single = ImprintClassifier(**parts, aggregator=aggregator)
    single.fit(P.weights.astype(np.float32), P.labels)
    np.testing.assert_allclose(
        single.decision_function(Q.astype(np.float32)), ridge.predict(Q), atol=1e-4
    )


def test_kernel_is_the_stated_formula():
    """Proxies are noisy observations: the noise decreases with mass and increases with spread."""
    P, Q, C = problem(seed=6, n=90)
    clf = ImprintClassifier(
        norm_pre="none",
        generator="kmeans(k=4)",
        norm_post="none",
        norm_inf="none",
        random_state=0,
    )
    W, labels, mass, spread, _ = (
        clf.set_params(aggregator="kernel").fit(P.weights, P.labels).proxies_
    )
    s = 2 * P.weights.var(axis=0).sum()
    K = np.array([[np.exp(-((a - b) ** 2).sum() / s) for b in W] for a in W])
    A = np.linalg.solve(K + np.diag(0.1 / mass + 0.2 * spread / s), np.eye(C)[labels])
    rows = np.minimum(np.bincount(P.labels), 2 * 4)
    want = (
        np.array([[np.exp(-((q - w) ** 2).sum() / s) for w in W] for q in Q])
        @ A
        * (rows.mean() / rows) ** 0.35
    )
    np.testing.assert_allclose(clf.decision_function(Q), want, atol=1e-9)


# Normalisers


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_l2_divides_by_the_length(dtype):
    X = np.random.default_rng(0).normal(size=(20, 7)).astype(dtype)
    X[3] = 0
    lengths = [np.sqrt(sum(float(v) ** 2 for v in x)) for x in X]
    want = [x / length if length else x for x, length in zip(X.astype(float), lengths)]
    np.testing.assert_allclose(
        normalisers.family.resolve("l2").apply(X), want, rtol=2e-7
    )


@pytest.mark.parametrize("scale", [1e-38, 1e-20, 1e20, 1e37])
def test_l2_of_rows_too_long_or_short_to_square(scale):
    X = np.array([[3, 4], [0, 0], [1, 0]], dtype=np.float32) * np.float32(scale)
    np.testing.assert_allclose(unit_rows(X), [[0.6, 0.8], [0, 0], [1, 0]], rtol=1e-6)


@pytest.mark.parametrize("d", [5, 49, 98, 512, 784])
def test_quantile_is_the_published_rule_at_every_width(d):
    """The published code fails at widths such as 49, 98 and 784, where a float range has one element too many."""
    rng = np.random.default_rng(0)
    reference, X = rng.normal(size=(3, d)), rng.normal(size=(4, d))
    pool = np.sort(reference.ravel())
    out = normalisers.family.resolve("quantile").apply(X, reference)
    for x, o in zip(X, out):
        for place, column in enumerate(sorted(range(d), key=lambda j: x[j])):
            at = (place + 0.5) / d * (len(pool) - 1)
            low = int(at)
            want = pool[low] + (at - low) * (
                pool[min(low + 1, len(pool) - 1)] - pool[low]
            )
            assert o[column] == pytest.approx(want, rel=1e-10, abs=1e-12)


def test_quantile_uses_all_classes_imprinted_before():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 8)), np.repeat([0, 1, 2], 10)
    parts = dict(
        norm_pre="none", norm_post="quantile", norm_inf="none", generator="random(k=3)"
    )
    raw = (
        ImprintClassifier(**parts | dict(norm_post="none"), random_state=0)
        .fit(X, y)
        .proxies_
    )
    done = ImprintClassifier(**parts, random_state=0).fit(X, y).proxies_
    q = normalisers.family.resolve("quantile")
    first = raw.weights[:3]
    second = q.apply(raw.weights[3:6], first)
    third = q.apply(raw.weights[6:], np.concatenate([first, second]))
    assert np.array_equal(done.weights, np.concatenate([first, second, third]))
    assert np.array_equal(np.sort(done.weights[6]), np.sort(done.weights[8]))
