"""Decisions from products with rows that are like those in question: the same as from their own products."""

from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("numba")
from imprint.kernels import estimates
from imprint.kernels.compiled.estimates import TILE


def rows(rng, n, width, away):
    """Rows, and others that are lines through them but for something `away`."""
    P = rng.normal(size=(n, width)) + 0.5
    W = rng.uniform(0.5, 2, size=(n, 1)) * P + rng.normal(size=(n, 1)) + away * rng.normal(size=(n, width))
    return P.astype(np.float32), W.astype(np.float32)


def test_lines_leave_out_no_more_than_they_say():
    P, W = rows(np.random.default_rng(0), 40, 30, 0.3)
    P[3], W[5], P[7] = 2.0, 0.0, 0.0  # a flat row, a zero row of each
    slope, level, blur, _, _, lengths = estimates.lines(P, W, 1e9)
    rest = W - slope[:, None] * P - level[:, None] / 30
    np.testing.assert_allclose(rest.sum(axis=1), 0, atol=1e-3)
    np.testing.assert_allclose(np.einsum("ij,ij->i", rest, P), 0, atol=2e-3)
    length = np.linalg.norm(rest, axis=1)
    assert (length <= blur).all()
    assert (blur <= 1.02 * length + 0.007 * np.linalg.norm(W, axis=1) + 0.02).all()
    share = blur.mean() / lengths.mean()
    assert estimates.lines(P, W, 1.01 * share) is not None
    assert estimates.lines(P, W, 0.99 * share) is None


@pytest.mark.parametrize("scale", [1e-20, 1e-9, 1e9, 1e20, np.inf, np.nan])
def test_what_float32_cannot_square_is_not_estimated(scale):
    P, W = rows(np.random.default_rng(0), 12, 30, 0.3)
    Q = P.copy()
    P[2], W[3], Q[4] = P[2] * np.float32(scale), W[3] * np.float32(scale), Q[4] * np.float32(scale)
    assert estimates.shapes(Q) is None
    assert estimates.lines(Q, W, 1e9) is None
    assert estimates.lines(W, P, 1e9) is None


@pytest.mark.parametrize("away", [0.0, 0.05, 0.3, 3.0])
@pytest.mark.parametrize("kind", ["all", "some"])
def test_settled_scores_decide_as_true_ones(away, kind):
    """Two decisions at once, the rows of the second before those of the first."""
    rng = np.random.default_rng(int(away * 100))
    edges, width, n = np.array([[30, 39, 40, 70], [5, 6, 15, 25]]), 24, TILE + 70
    order = np.r_[30:70, 5:25]
    P, W = rows(rng, 80, width, away)
    for one, other in ((slice(50, 54), slice(35, 39)), (slice(18, 23), slice(8, 13))):
        W[one], P[one] = W[other], P[other]  # doubles in two classes: exact ties
    Q = (rng.normal(size=(n, width)) + 0.5).astype(np.float32)
    Q[4] = 0
    Q[9] = 1
    columns = np.arange(n) if kind == "all" else np.flatnonzero(rng.random(n) < 0.6)
    m = len(columns)
    products, at = np.empty((len(P), n), dtype=np.float32), rng.permutation(len(P))
    products[at] = P @ Q.T
    scores = np.full(2 * n + 3 + 8 * (m + 5), 7, dtype=np.float32)
    firsts = scores[3 : 2 * n + 3].reshape(2, n)
    firsts[:] = rng.normal(size=(2, n)) * 30
    found = scores[2 * n + 3 :].reshape(2, 4, m + 5)
    likes = estimates.Likes(edges, W, at[order], np.ascontiguousarray(estimates.lines(P, W, 1e9)[:, order]))
    bests, starts = np.array([3, n + 3]), np.array([2 * n + 5, 2 * n + 5 + 4 * (m + 5)])
    room = estimates.room_for(40)
    columns = columns.astype(np.uint32)
    estimates.settle(products, columns, likes, Q, estimates.shapes(Q), bests, room, scores, starts, m + 5)
    assert (found[:, :, [0, 1, -3, -2, -1]] == 7).all()
    every = Q[columns] @ W.T
    for first, own, e in zip(firsts, found[:, :, 2:-3], edges):
        assert np.array_equal(own[0], first[columns])
        check(own, np.array([own[0], *(every[:, a:b].max(axis=1) for a, b in pairwise(e))]))


def check(scores, true):
    best, second = np.sort(true, axis=0)[::-1][:2]
    clear = best - second > 1e-5 * np.abs(best)
    assert 0.5 < clear.mean() < 1
    assert np.array_equal(scores.argmax(axis=0)[clear], true.argmax(axis=0)[clear])
    found = np.sort(scores, axis=0)[::-1][:2]  # near ties must show
    np.testing.assert_allclose(found[0][~clear], best[~clear], rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(found[1][~clear], second[~clear], rtol=1e-5, atol=1e-4)


def test_bounds_hold_for_every_query():
    Q = (np.random.default_rng(0).normal(size=(50, 20)) + 2).astype(np.float32)
    Q[0], Q[1] = 0, 3
    mean, a, b, slack = estimates.shapes(Q)
    squared = ((Q - Q.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    for share in (0, 0.3, 0.75, 1):
        assert (a - b * share * squared >= np.sqrt((1 - share) * squared) - 1e-5).all()
    np.testing.assert_allclose(mean, Q.mean(axis=1), rtol=1e-5)
    assert (slack > 1e-6 * np.linalg.norm(Q, axis=1)).tolist() == [False] + [True] * 49
