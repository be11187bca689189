"""Lloyd's iteration with bounds; sums change only by the rows that move."""

from typing import NamedTuple

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled import jit, jit_sums
from imprint.kernels.compiled.products import SketchArrays, dot_two, squared_distance

BLOCK = 256


class RowArrays(NamedTuple):
    """The rows of one data set."""

    X: Array  # (n, d)
    weight: Array  # (n,)
    norms: Array  # (n,) squared lengths


class CentreArrays(NamedTuple):
    """Centres about the mean of the rows, by their lengths; `halves` are half the squared lengths about zero."""

    halves: Array  # (k,)
    squared: Array
    lengths: Array
    tails: Array  # lengths of what sketches leave out


class RowBounds(NamedTuple):
    """Labels of the rows, and bounds that prove most of them unchanged when centres move.

    `upper + drift` bounds the distance to the assigned centre from above, `gate` that to every other from below.
    """

    labels: Array  # (n,)
    upper: Array  # (n,)
    gate: Array  # (n,)
    drift: Array  # (k,)
    uncertain: Array  # (n,) room for rows that the bounds do not prove unchanged
    moved: Array  # (2, n) room for rows that changed, and their old labels
    rounding: float
    slack: float


class ClusterSums(NamedTuple):
    """Sum, mass and number of the rows of every cluster."""

    sums: Array  # (k, d)
    total: Array  # (k,)
    members: Array  # (k,)


class Intervals(NamedTuple):
    """Of some rows: the limit within which squared distances may be the least, the least possible one beyond it, how
    many centres lie inside and the last of them."""

    limit: Array
    beyond: Array
    inside: Array
    last: Array


@jit
def uncertain_rows(bounds: RowBounds, step: float) -> Array:
    """Rows whose bounds do not prove that they keep their label; no centre moved farther than `step`."""
    count = 0
    for i in range(len(bounds.labels)):
        bounds.gate[i] -= step
        bounds.uncertain[count] = i
        count += bounds.upper[i] + bounds.drift[bounds.labels[i]] + bounds.slack >= bounds.gate[i]
    return bounds.uncertain[:count]


@jit_sums
def _intervals(
    products: Array, start: int, size: int, centres: CentreArrays, blurs: Array, tails: Array, rounding: float,
    out: Intervals,
) -> None:  # fmt: skip
    """Fill `out` for `size` rows from `start` on."""
    squared, lengths, centre_tails = centres.squared, centres.lengths, centres.tails
    limit, others, inside, best = out.limit[:size], out.beyond[:size], out.inside, out.last
    k = products.shape[0]
    limit[:] = 1e300
    others[:] = 1e300
    inside[:] = 0
    for j in range(k):
        for r in range(size):
            half = lengths[j] * blurs[r] + centre_tails[j] * tails[r]
            limit[r] = min(limit[r], squared[j] - 2 * np.float64(products[j, start + r]) + half)
    for r in range(size):
        limit[r] += rounding
    for j in range(k):
        for r in range(size):
            half = lengths[j] * blurs[r] + centre_tails[j] * tails[r]
            low = squared[j] - 2 * np.float64(products[j, start + r]) - half
            within = low <= limit[r]
            inside[r] += within
            best[r] = j if within else best[r]
            others[r] = min(others[r], 1e300 if within else low)


@jit
def assign(
    data: RowArrays, C: Array, centres: CentreArrays, rows: Array, products: Array, sketch: SketchArrays,
    bounds: RowBounds,
) -> int:  # fmt: skip
    """Give uncertain rows their nearest centre; fill `moved` with those that changed and return their number.

    The `products` of sketches say between which bounds each squared distance lies; centres whose bounds overlap with
    the nearest one's are compared by whole products.
    """
    X, norms, labels, rounding, count = data.X, data.norms, bounds.labels, bounds.rounding, 0
    near = np.empty(C.shape[0] + 1, dtype=np.int32)
    blur, tail = np.empty(BLOCK), np.empty(BLOCK)
    intervals = Intervals(
        np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK, dtype=np.int32), np.empty(BLOCK, dtype=np.int32)
    )
    for start in range(0, len(rows), BLOCK):
        size = min(BLOCK, len(rows) - start)
        for r in range(size):
            blur[r], tail[r] = 2 * sketch.blurs[rows[start + r]], 2 * sketch.tails[rows[start + r]]
        _intervals(products, start, size, centres, blur, tail, rounding, intervals)
        for r in range(size):
            i, best = rows[start + r], intervals.last[r]
            reach, others = intervals.limit[r] + sketch.about[i], intervals.beyond[r] + sketch.about[i]
            if intervals.inside[r] > 1:
                candidates = 0
                for j in range(C.shape[0]):
                    half = centres.lengths[j] * blur[r] + centres.tails[j] * tail[r]
                    near[candidates] = j
                    low = centres.squared[j] - 2 * np.float64(products[j, start + r]) - half
                    candidates += low <= intervals.limit[r] + rounding
                best, score, second = nearest(X, i, C, centres.halves, near, candidates)
                reach = norms[i] + 2 * score
                others = min(others, norms[i] + 2 * second)
            bounds.gate[i] = np.sqrt(max(others - rounding, 0.0))
            bounds.upper[i] = np.sqrt(max(reach, 0.0) + rounding) - bounds.drift[best]
            if best != labels[i]:
                bounds.moved[0, count] = i
                bounds.moved[1, count] = labels[i]
                labels[i] = best
                count += 1
    return count


@jit
def nearest(X: Array, i: int, C: Array, halves: Array, near: Array, count: int) -> tuple[int, float, float]:
    """The best of some centres by whole products, its score and the second score."""
    best = 0
    first = second = np.inf
    near[count] = near[0]
    for j in range(0, count, 2):
        a, b = near[j], near[j + 1]
        p, q = dot_two(X, i, C, a, b)
        score = halves[a] - p
        if score < first:
            best, first, second = a, score, first
        else:
            second = min(second, score)
        score = halves[b] - q
        if j + 1 == count:
            continue
        if score < first:
            best, first, second = b, score, first
        else:
            second = min(second, score)
    return best, first, second


@jit
def advance(
    data: RowArrays, old: Array, C: Array, sketch: SketchArrays, bounds: RowBounds, clusters: ClusterSums
) -> tuple[int, float]:
    """Move from the old centres to `C`: labels, bounds and sums follow; rows that changed, squared shift of centres."""
    k = C.shape[0]
    shift, step = 0.0, 0.0
    centres = CentreArrays(np.empty(k), np.empty(k), np.empty(k), np.empty(k))
    offset = C - sketch.mean
    short = np.dot(offset, sketch.directions)
    origin = np.zeros((1, C.shape[1]))
    none = np.zeros((1, short.shape[1]))
    for j in range(k):
        moved_by = squared_distance(C, j, old, j)
        if moved_by > 0:
            shift += moved_by
            by = np.sqrt(moved_by) * (1 + 1e-12) + 1e-6 * bounds.slack
            bounds.drift[j] += by
            step = max(step, by)
        squared = squared_distance(offset, j, origin, 0)
        centres.halves[j] = squared_distance(C, j, origin, 0) / 2
        centres.squared[j] = squared
        centres.lengths[j] = np.sqrt(squared)
        left = squared * (1 + 1e-12) - squared_distance(short, j, none, 0)
        centres.tails[j] = np.sqrt(max(left, 0.0)) + 1e-7 * centres.lengths[j]
    rows = uncertain_rows(bounds, step)
    products = np.dot(short.astype(np.float32), _gathered(sketch.images, rows).T)
    count = assign(data, C, centres, rows, products, sketch, bounds)
    move_rows(data.X, data.weight, bounds.labels, bounds.moved[:, :count], clusters)
    return count, shift


@jit
def _gathered(images: Array, rows: Array) -> Array:
    out = np.empty((len(rows), images.shape[1]), dtype=images.dtype)
    for r in range(len(rows)):
        for t in range(images.shape[1]):
            out[r, t] = images[rows[r], t]
    return out


@jit
def add_rows(X: Array, weight: Array, labels: Array, clusters: ClusterSums) -> None:
    """Sum of every cluster, in the order of the rows."""
    sums, total, members = clusters.sums, clusters.total, clusters.members
    for i in range(X.shape[0]):
        j, w = labels[i], weight[i]
        total[j] += w
        members[j] += w > 0
        for t in range(X.shape[1]):
            sums[j, t] += w * np.float64(X[i, t])


@jit
def move_rows(X: Array, weight: Array, labels: Array, moved: Array, clusters: ClusterSums) -> None:
    """Take each moved row out of its old cluster and add it to the new one."""
    sums, total, members = clusters.sums, clusters.total, clusters.members
    for m in range(moved.shape[1]):
        i, old = moved[0, m], moved[1, m]
        new, w = labels[i], weight[i]
        total[old] -= w
        total[new] += w
        members[old] -= w > 0
        members[new] += w > 0
        for t in range(X.shape[1]):
            part = w * np.float64(X[i, t])
            sums[old, t] -= part
            sums[new, t] += part
