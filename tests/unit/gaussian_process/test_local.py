"""Very many classes: the system of a query holds the proxies nearest to it."""

import numpy as np
import pytest

from imprint.gaussian_process import local


@pytest.fixture
def process():
    """30 classes with 80 proxies each, more than count in full."""
    rng = np.random.default_rng(5)
    centres = rng.normal(size=(30, 6))
    labels = np.repeat(np.arange(30), 80)
    weights = centres[labels] + 0.4 * rng.normal(size=(len(labels), 6))
    return local.solve_locally(weights, labels, np.full(len(labels), 0.1), rate=0.3)


def test_a_query_is_answered_by_the_nearest_proxies_of_the_nearest_classes(process):
    Q = process.weights[::97] + 0.1
    scores = process.scores(Q)
    means = np.stack([process.weights[process.labels == c].mean(0) for c in range(30)])
    for q, row in zip(Q, scores):
        by_mean = np.argsort(np.square(means - q).sum(axis=1))[:5]
        candidates = np.flatnonzero(np.isin(process.labels, by_mean))
        squares = np.square(process.weights[candidates] - q).sum(axis=1)
        chosen = candidates[np.argsort(squares)[:256]]
        W = process.weights[chosen]
        distances = np.square(W[:, None] - W).sum(axis=2)
        system = np.exp(-0.3 * distances) + 0.1 * np.eye(len(W))
        k = np.exp(-0.3 * np.square(W - q).sum(axis=1))
        shares = np.linalg.solve(system, k)
        expected = np.bincount(process.labels[chosen], shares, minlength=30)
        np.testing.assert_allclose(row, expected, atol=1e-6)


def test_scores_and_doubt_need_the_systems_once(process, monkeypatch):
    Q = process.weights[::97] + 0.1
    expected = process.scores(Q), process.doubt(Q)
    solved = []
    original = local.LocalProcess._solve
    monkeypatch.setattr(
        local.LocalProcess,
        "_solve",
        lambda self, Q: solved.append(1) or original(self, Q),
    )
    assert all(map(np.array_equal, process.scores_and_doubt(Q), expected))
    assert solved == [1]


def test_many_proxies_of_a_class_do_not_make_systems_larger(process):
    chosen, shares, doubt = process._solve(process.weights[:40])
    assert chosen.shape == shares.shape == (40, local.SYSTEM_PROXIES)
    assert (doubt < 0.5).all()


def test_contributions_name_the_proxies_of_the_class(process):
    Q = process.weights[80:83]
    contributions = process.contributions(Q, np.array([1, 1, 1]))
    assert not contributions[:, process.labels != 1].any()
    totals = contributions.sum(axis=1)
    np.testing.assert_allclose(totals, process.scores(Q)[:, 1], atol=1e-9)
