"""Lloyd's iteration with bounds; sums change only by the rows that move."""

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled import jit, jit_sums
from imprint.kernels.compiled.products import dot_two, squared_distance

BLOCK = 256


@jit
def in_doubt(labels: Array, upper: Array, gate: Array, drift: Array, step: float, slack: float, rows: Array) -> int:
    """Fill `rows` with those whose bounds do not prove that they stay.

    `upper + drift` of the own centre bounds its distance from above, `gate` that of every other one from below; it
    sinks by the largest `step` of a centre.
    """
    count = 0
    for i in range(len(labels)):
        gate[i] -= step
        rows[count] = i
        count += upper[i] + drift[labels[i]] + slack >= gate[i]
    return count


@jit_sums
def _bounds(
    products: Array, start: int, squared: Array, lengths: Array, centre_tails: Array, blurs: Array, tails: Array,
    rounding: float, limit: Array, others: Array, inside: Array, best: Array,
) -> None:  # fmt: skip
    """For some rows from `start` on: the limit within which squared distances may be the least, the least possible
    one beyond it, how many centres lie inside and the last of them."""
    k, count = products.shape[0], len(limit)
    limit[:] = 1e300
    others[:] = 1e300
    inside[:] = 0
    for j in range(k):
        for r in range(count):
            half = lengths[j] * blurs[r] + centre_tails[j] * tails[r]
            limit[r] = min(limit[r], squared[j] - 2 * np.float64(products[j, start + r]) + half)
    for r in range(count):
        limit[r] += rounding
    for j in range(k):
        for r in range(count):
            half = lengths[j] * blurs[r] + centre_tails[j] * tails[r]
            low = squared[j] - 2 * np.float64(products[j, start + r]) - half
            within = low <= limit[r]
            inside[r] += within
            best[r] = j if within else best[r]
            others[r] = min(others[r], 1e300 if within else low)


@jit
def assign(
    X: Array,
    norms: Array,
    C: Array,
    halves: Array,
    rows: Array,
    products: Array,
    about: Array,
    blurs: Array,
    tails: Array,
    squared: Array,
    lengths: Array,
    centre_tails: Array,
    drift: Array,
    rounding: float,
    labels: Array,
    upper: Array,
    gate: Array,
    moved: Array,
) -> int:
    """Give the rows in doubt their nearest centre; fill `moved` with those that changed and their old labels.

    The `products` of sketches say between which bounds each squared distance lies; centres whose bounds overlap with
    the nearest one's are compared by whole products.
    """
    count = 0
    near = np.empty(C.shape[0] + 1, dtype=np.int32)
    limits, beyond = np.empty(BLOCK), np.empty(BLOCK)
    blur, tail = np.empty(BLOCK), np.empty(BLOCK)
    inside, candidates = np.empty(BLOCK, dtype=np.int32), np.empty(BLOCK, dtype=np.int32)
    for start in range(0, len(rows), BLOCK):
        size = min(BLOCK, len(rows) - start)
        for r in range(size):
            blur[r], tail[r] = 2 * blurs[rows[start + r]], 2 * tails[rows[start + r]]
        _bounds(
            products, start, squared, lengths, centre_tails, blur, tail,
            rounding, limits[:size], beyond[:size], inside, candidates,
        )  # fmt: skip
        for r in range(size):
            i, best = rows[start + r], candidates[r]
            reach, others = limits[r] + about[i], beyond[r] + about[i]
            if inside[r] > 1:
                doubtful = 0
                for j in range(C.shape[0]):
                    half = lengths[j] * blur[r] + centre_tails[j] * tail[r]
                    near[doubtful] = j
                    doubtful += squared[j] - 2 * np.float64(products[j, start + r]) - half <= limits[r] + rounding
                best, score, second = nearest(X, i, C, halves, near, doubtful)
                reach = norms[i] + 2 * score
                others = min(others, norms[i] + 2 * second)
            gate[i] = np.sqrt(max(others - rounding, 0.0))
            upper[i] = np.sqrt(max(reach, 0.0) + rounding) - drift[best]
            if best != labels[i]:
                moved[0, count] = i
                moved[1, count] = labels[i]
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
    X: Array,
    weight: Array,
    norms: Array,
    old: Array,
    C: Array,
    mean: Array,
    directions: Array,
    images: Array,
    about: Array,
    blurs: Array,
    tails: Array,
    drift: Array,
    rounding: float,
    slack: float,
    labels: Array,
    upper: Array,
    gate: Array,
    doubtful: Array,
    moved: Array,
    sums: Array,
    total: Array,
    members: Array,
) -> tuple[int, float]:
    """Move from the old centres to `C`: labels, bounds and sums follow; rows that changed, squared shift of centres."""
    k = C.shape[0]
    halves, shift, step = np.empty(k), 0.0, 0.0
    squared, lengths, centre_tails = np.empty(k), np.empty(k), np.empty(k)
    offset = C - mean
    short = np.dot(offset, directions)
    origin = np.zeros((1, X.shape[1]))
    none = np.zeros((1, short.shape[1]))
    for j in range(k):
        moved_by = squared_distance(C, j, old, j)
        if moved_by > 0:
            shift += moved_by
            by = np.sqrt(moved_by) * (1 + 1e-12) + 1e-6 * slack
            drift[j] += by
            step = max(step, by)
        halves[j] = squared_distance(C, j, origin, 0) / 2
        squared[j] = squared_distance(offset, j, origin, 0)
        lengths[j] = np.sqrt(squared[j])
        left = squared[j] * (1 + 1e-12) - squared_distance(short, j, none, 0)
        centre_tails[j] = np.sqrt(max(left, 0.0)) + 1e-7 * lengths[j]
    rows = doubtful[: in_doubt(labels, upper, gate, drift, step, slack, doubtful)]
    products = np.dot(short.astype(np.float32), _gathered(images, rows).T)
    count = assign(
        X, norms, C, halves, rows, products, about, blurs, tails, squared, lengths, centre_tails,
        drift, rounding, labels, upper, gate, moved,
    )  # fmt: skip
    move_rows(X, weight, labels, moved[:, :count], sums, total, members)
    return count, shift


@jit
def _gathered(images: Array, rows: Array) -> Array:
    out = np.empty((len(rows), images.shape[1]), dtype=images.dtype)
    for r in range(len(rows)):
        for t in range(images.shape[1]):
            out[r, t] = images[rows[r], t]
    return out


@jit
def add_rows(X: Array, weight: Array, labels: Array, sums: Array, total: Array, members: Array) -> None:
    """Sum of every cluster, in the order of the rows."""
    for i in range(X.shape[0]):
        j, w = labels[i], weight[i]
        total[j] += w
        members[j] += w > 0
        for t in range(X.shape[1]):
            sums[j, t] += w * np.float64(X[i, t])


@jit
def move_rows(X: Array, weight: Array, labels: Array, moved: Array, sums: Array, total: Array, members: Array) -> None:
    """Take each moved row out of its old cluster and add it to the new one."""
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
