"""Lloyd's iteration with bounds; sums change only by the rows that move."""

from typing import NamedTuple

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled import jit, jit_sums
from imprint.kernels.compiled.products import CentreArrays, SketchArrays, dot, sketch_centres, squared_distance


class RowArrays(NamedTuple):
    """The rows of one data set."""

    X: Array  # (n, d)
    weight: Array  # (n,)
    norms: Array  # (n,) squared lengths


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
def candidates(
    products: Array, r: int, centres: CentreArrays, blur: float, tail: float, rounding: float, near: Array
) -> tuple[int, float, float]:
    """Fill `near` with the centres that may be nearest to a row, by the bounds that its sketch gives.

    Returns their number, an upper bound of the least squared distance and a lower bound of those to other centres.
    """
    squared, lengths, tails = centres.squared, centres.lengths, centres.tails
    limit, beyond, count = 1e300, 1e300, 0
    for j in range(len(squared)):
        half = lengths[j] * blur + tails[j] * tail
        limit = min(limit, squared[j] - 2 * np.float64(products[r, j]) + half)
    limit += rounding
    for j in range(len(squared)):
        low = squared[j] - 2 * np.float64(products[r, j]) - (lengths[j] * blur + tails[j] * tail)
        near[count] = j
        count += low <= limit
        beyond = min(beyond, 1e300 if low <= limit else low)
    return count, limit, beyond


@jit
def nearest(X: Array, i: int, C: Array, halves: Array, near: Array, count: int) -> tuple[int, float, float]:
    """The nearest of the first `count` centres in `near` by whole products, its score and the second score."""
    best, first, second = 0, np.inf, np.inf
    for j in near[:count]:
        score = halves[j] - dot(X, i, C, j)
        if score < first:
            best, first, second = j, score, first
        else:
            second = min(second, score)
    return best, first, second


@jit
def assign(
    data: RowArrays, C: Array, centres: CentreArrays, rows: Array, products: Array, sketch: SketchArrays,
    bounds: RowBounds,
) -> int:  # fmt: skip
    """Assign uncertain rows to their nearest centres; fill `moved` with those that changed and return their number.

    Where the `products` of sketches leave several candidates, these are compared by whole products.
    """
    X, norms, labels, rounding, count = data.X, data.norms, bounds.labels, bounds.rounding, 0
    near = np.empty(len(C), dtype=np.int32)
    for r in range(len(rows)):
        i = rows[r]
        blur, tail = 2 * sketch.blurs[i], 2 * sketch.tails[i]
        inside, limit, beyond = candidates(products, r, centres, blur, tail, rounding, near)
        best, reach, others = near[0], limit + sketch.about[i], beyond + sketch.about[i]
        if inside > 1:
            best, score, second = nearest(X, i, C, centres.halves, near, inside)
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
def advance(
    data: RowArrays, old: Array, C: Array, sketch: SketchArrays, bounds: RowBounds, clusters: ClusterSums
) -> tuple[int, float]:
    """Move from the old centres to `C`: labels, bounds and sums follow; rows that changed, squared shift of centres."""
    shift, step = 0.0, 0.0
    for j in range(len(C)):
        moved_by = squared_distance(C, j, old, j)
        if moved_by > 0:
            shift += moved_by
            by = np.sqrt(moved_by) * (1 + 1e-12) + 1e-6 * bounds.slack
            bounds.drift[j] += by
            step = max(step, by)
    rows = uncertain_rows(bounds, step)
    short, centres = sketch_centres(C, sketch)
    products = np.dot(sketch.images[rows], short.T)
    count = assign(data, C, centres, rows, products, sketch, bounds)
    move_rows(data.X, data.weight, bounds.labels, bounds.moved[:, :count], clusters)
    return count, shift


@jit
def move_rows(X: Array, weight: Array, labels: Array, moved: Array, clusters: ClusterSums) -> None:
    """Subtract each moved row from its old cluster, unless that is -1, and add it to the new one."""
    sums, total, members = clusters.sums, clusters.total, clusters.members
    for m in range(moved.shape[1]):
        i, old = moved[0, m], moved[1, m]
        for j, w in ((labels[i], weight[i]), (old, -weight[i])):
            if j >= 0:
                total[j] += w
                members[j] += (w > 0) - (w < 0)
                for t in range(X.shape[1]):
                    sums[j, t] += w * np.float64(X[i, t])
