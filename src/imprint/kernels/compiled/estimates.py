"""The loops of `kernels.estimates`."""

from typing import Any

import numpy as np

from imprint.core.types import Array
from imprint.kernels import estimates
from imprint.kernels.compiled.jit import jit, jit_sums

TILE = 256
"""Queries at a time, so that what is noted of them stays in the cache."""
DRIFT = np.float32(estimates.DRIFT)


@jit_sums
def relate(P: Array, W: Array, lines: Array) -> None:
    """For every row of `W` the line through the row of `P`, with what bounds its distance from it."""
    d = P.shape[1]
    for r in range(P.shape[0]):
        p = w = pp = ww = pw = np.float32(0)
        for t in range(d):
            p += P[r, t]
            w += W[r, t]
            pp += P[r, t] * P[r, t]
            ww += W[r, t] * W[r, t]
            pw += P[r, t] * W[r, t]
        about, both = pp - p * p / d, pw - p * w / d
        is_flat = about <= DRIFT * pp
        slope = np.float32(0) if is_flat else both / about
        left = ww - w * w / d - 2 * slope * both + slope * slope * about
        lines[0, r] = slope
        lines[1, r] = w - slope * p
        lines[2, r] = np.sqrt(max(left, np.float32(0)) + DRIFT * (ww + slope * slope * pp))
        lines[3, r] = p
        lines[4, r] = np.float32(0) if is_flat else 1 / about
        lines[5, r] = np.sqrt(ww) + abs(slope) * np.sqrt(pp)


@jit_sums
def _products(W: Array, r: int, Q: Array, a: int, b: int, c: int, e: int) -> Any:
    """Of one row with four queries: the row is read once."""
    one = two = three = four = np.float32(0)
    for t in range(W.shape[1]):
        one += W[r, t] * Q[a, t]
        two += W[r, t] * Q[b, t]
        three += W[r, t] * Q[c, t]
        four += W[r, t] * Q[e, t]
    return one, two, three, four


@jit_sums
def _product(W: Array, r: int, Q: Array, a: int) -> Any:
    """Of one row with one query."""
    total = np.float32(0)
    for t in range(W.shape[1]):
        total += W[r, t] * Q[a, t]
    return total


@jit_sums
def _bound(
    products: Array, lines: Array, r: int, shape: Array, c: int, m: int, least: Array, highs: Array, tops: Array
) -> None:
    """Between which bounds the products of queries with a row lie, given those with the row it is like.

    `highs` become the upper ones; `least` and `tops` rise to the lower and the upper.
    """
    slope, level, blur = lines[0, r], lines[1, r], lines[2, r]
    total, inverse, length = lines[3, r], lines[4, r], lines[5, r]
    for i in range(m):
        product = products[i]
        own = product - shape[0, i] * total
        middle = slope * product + level * shape[0, i]
        doubt = blur * (shape[1, i] - own * own * inverse * shape[2, i]) + length * shape[3, i]
        least[i] = max(least[i], middle - doubt)
        high = middle + doubt
        highs[r, i] = high
        tops[c, i] = max(tops[c, i], high)


@jit
def _multiply(
    highs: Array, r: int, length: Any, shape: Array, m: int, own: Array, W: Array, Q: Array, some: Array, bar: Array,
    found: Array,
) -> None:  # fmt: skip
    """Multiply a row with the queries whose bounds reach the bar; `found` and the bar rise to the products."""
    count = 0
    for i in range(m):
        some[count] = i
        count += highs[r, i] >= bar[i]
    for k in range(count, count + 3):
        some[k] = some[count - 1]
    for k in range(0, count, 4):
        four = some[k : k + 4]
        scores = _products(W, r, Q, own[four[0]], own[four[1]], own[four[2]], own[four[3]])
        for i, score in zip(four, scores):
            found[i] = max(found[i], score)
            bar[i] = max(bar[i], score - length * shape[3, i])


@jit
def _settle(
    products: Array, columns: Array, at: Array, ends: Array, lines: Array, W: Array, Q: Array, shapes: Array,
    best: Array, highs: Array, scores: Array, begin: int, width: int,
) -> None:  # fmt: skip
    """One decision of `settle`.

    The likeliest row of the likeliest class is looked at first, so that its product rules out others.
    """
    n_classes, n = len(ends), len(columns)
    picked, shape, some = np.empty(TILE, np.float32), np.empty((4, TILE), np.float32), np.empty(TILE + 4, np.int64)
    tops, found = np.empty((n_classes, TILE), np.float32), np.empty((n_classes, TILE), np.float32)
    least, bar = np.empty(TILE, np.float32), np.empty(TILE, np.float32)
    rivals, likeliest = np.empty(TILE, np.int32), np.empty(TILE, np.int32)
    is_whole = n == products.shape[1]
    for start in range(0, n, TILE):
        own = columns[start : start + TILE]
        m = len(own)
        for i in range(m):
            least[i] = tops[0, i] = found[0, i] = best[own[i]]
            for s in range(4):
                shape[s, i] = shapes[s, own[i]]
        for c in range(1, n_classes):
            tops[c] = -np.inf
            for r in range(ends[c - 1], ends[c]):
                row = products[at[r]]
                if is_whole:
                    _bound(row[start : start + m], lines, r, shape, c, m, least, highs, tops)
                else:
                    for i in range(m):
                        picked[i] = row[own[i]]
                    _bound(picked[:m], lines, r, shape, c, m, least, highs, tops)
        rivals[:], likeliest[:] = 0, 0
        for c in range(n_classes):
            for i in range(m):
                rivals[i] += tops[c, i] >= least[i]
                likeliest[i] = c if tops[c, i] > tops[likeliest[i], i] else likeliest[i]
        for c in range(1, n_classes):
            for i in range(m):
                found[c, i] = tops[c, i] if rivals[i] < 2 else np.float32(-np.inf)
        for i in range(m):
            bar[i] = least[i] if rivals[i] > 1 else np.float32(np.inf)
            c = likeliest[i]
            if rivals[i] > 1 and c > 0:
                r = ends[c - 1] + np.argmax(highs[ends[c - 1] : ends[c], i])
                found[c, i] = _product(W, r, Q, own[i])
                bar[i] = max(bar[i], found[c, i] - lines[5, r] * shape[3, i])
                highs[r, i] = -np.inf
        for c in range(1, n_classes):
            for r in range(ends[c - 1], ends[c]):
                reached = 0
                for i in range(m):
                    reached += highs[r, i] >= bar[i]
                if reached:
                    _multiply(highs, r, lines[5, r], shape, m, own, W, Q, some, bar, found[c])
        for c in range(n_classes):
            for i in range(m):
                scores[begin + c * width + start + i] = found[c, i]


@jit
def settle(
    products: Array, columns: Array, edges: Array, rows: Array, at: Array, lines: Array, Q: Array, shapes: Array,
    bests: Array, highs: Array, scores: Array, starts: Array, width: int,
) -> None:  # fmt: skip
    """See `kernels.estimates.settle`."""
    first = 0
    for e in range(len(edges)):
        begin, end = edges[e, 0], edges[e, -1]
        last = first + end - begin
        best = scores[bests[e] : bests[e] + len(Q)].copy()
        _settle(
            products, columns, at[first:last], edges[e] - begin, lines[:, first:last], rows[begin:end], Q, shapes,
            best, highs, scores, starts[e], width,
        )  # fmt: skip
        first = last
