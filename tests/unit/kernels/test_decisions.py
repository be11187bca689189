"""Counting correct predictions: both engines, ties, one class; votes of neighbours."""

import numpy as np
import pytest

from imprint.kernels import cpu
from imprint.kernels.scores import (
    Counts,
    Vote,
    count_decisions,
    count_many,
    count_votes,
    distance_votes,
    uniform_votes,
)


@pytest.fixture(params=[False, True], ids=["numpy", "compiled"], autouse=True)
def each_engine(request, monkeypatch):
    limit = 0 if request.param else float("inf")
    monkeypatch.setattr(cpu, "MIN_COMPILED_WORK", limit)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("classes", [1, 2, 5])
def test_counts_what_a_loop_counts(classes, dtype):
    rng = np.random.default_rng(classes)
    scores = rng.integers(-3, 4, size=(classes, 80)).astype(dtype)  # many ties
    scores[:, ::3] += rng.normal(scale=1e-7, size=scores[:, ::3].shape).astype(dtype)
    truth = rng.integers(classes, size=80)
    right, claimed, close = (
        np.zeros(classes, dtype=int),
        np.zeros(classes, dtype=int),
        0,
    )
    for column, true in zip(scores.T, truth):
        winner = list(column).index(max(column))
        claimed[winner] += 1
        right[winner] += winner == true
        best, second = sorted([-np.inf, *column], reverse=True)[:2]
        close += bool(dtype(best) - dtype(second) <= dtype(1e-6) * abs(dtype(best)))
    counts = Counts.of(1, classes)
    count_decisions(scores[:, :30], truth[:30], 1e-6, counts)
    count_decisions(scores[:, 30:], truth[30:], 1e-6, counts)
    assert np.array_equal(counts.correct, [right])
    assert np.array_equal(counts.predicted, [claimed])
    assert counts.near_ties.tolist() == [close]


def test_many_decisions_are_those_of_their_scores():
    rng = np.random.default_rng(0)
    scores, truth = (
        rng.integers(5, size=(30, 40)).astype(np.float32),
        rng.integers(3, size=40),
    )
    rows, counts = rng.integers(0, 30, size=(9, 3)), Counts.of(9, 3)
    count_many(scores, rows, truth, 1e-6, counts)
    for t, own in enumerate(rows):
        alone = Counts.of(1, 3)
        count_decisions(scores[own], truth, 1e-6, alone)
        assert all(np.array_equal(many[t], one[0]) for many, one in zip(counts, alone))


@pytest.mark.parametrize("sizes", [(4, 1, 6), (2, 2, 2), (9,)])
def test_votes_are_those_of_all_neighbours_sorted(sizes):
    rng = np.random.default_rng(0)
    lists = [np.sort(rng.integers(1, 9, size=(50, n)) / 4, axis=1) for n in (*sizes, 5)]
    starts = np.cumsum([0, *map(lambda part: part.shape[1], lists)])
    rows = np.array([range(len(sizes)), [len(sizes), *range(1, len(sizes))]])
    truth, votes = (
        rng.integers(len(sizes), size=50),
        [Vote(3, True), Vote(1, False), Vote(5, False), Vote(40, True)],
    )
    counts = Counts.of(len(rows) * len(votes), len(sizes))
    count_votes(np.concatenate(lists, axis=1), starts, rows, truth, votes, 1e-6, counts)
    for t, own in enumerate(rows):
        together = np.concatenate([lists[s] for s in own], axis=1).T
        order = np.argsort(together, axis=0, kind="stable")
        labels = np.repeat(np.arange(len(own)), [lists[s].shape[1] for s in own])[order]
        distances = np.take_along_axis(together, order, axis=0)
        for v, (m, is_uniform) in enumerate(votes):
            alone = Counts.of(1, len(sizes))
            if m <= len(labels):
                n = len(sizes)
                shares = (
                    uniform_votes(labels[:m], n)
                    if is_uniform
                    else distance_votes(distances[:m], labels[:m], n)
                )
                count_decisions(shares, truth, 1e-6, alone)
            assert all(
                np.array_equal(many[t * len(votes) + v], one[0])
                for many, one in zip(counts, alone)
            )
