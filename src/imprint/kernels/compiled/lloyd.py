"""Lloyd's iteration with bounds; sums change only by the rows that move."""

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled.jit import jit, jit_sums
from imprint.kernels.compiled.products import dot_two


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
    products: Array, m: int, squared: Array, lengths: Array, tails: Array, blur: float, tail: float, low: Array
) -> float:
    """Fill `low` with the least squared distance that each centre may have; the least of the largest ones."""
    reach = np.inf
    for j in range(len(low)):
        middle = squared[j] - 2 * np.float64(products[m, j])
        half = lengths[j] * blur + tails[j] * tail
        low[j] = middle - half
        reach = min(reach, middle + half)
    return reach


@jit_sums
def _rivals(low: Array, limit: float) -> tuple[int, float]:
    """How many bounds lie within the limit, and the least of those beyond."""
    count = 0
    beyond = 1e300
    for j in range(len(low)):
        within = low[j] <= limit
        count += within
        beyond = min(beyond, 1e300 if within else low[j])
    return count, beyond


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
    k = C.shape[0]
    low = np.empty(k)
    near = np.empty(k + 1, dtype=np.int32)
    for m in range(len(rows)):
        i = rows[m]
        reach = _bounds(products, m, squared, lengths, centre_tails, 2 * blurs[i], 2 * tails[i], low)
        limit = reach + rounding
        doubtful, others = _rivals(low, limit)
        best = labels[i]
        if doubtful > 1 or low[best] > limit:
            doubtful = 0
            for j in range(k):
                near[doubtful] = j
                doubtful += low[j] <= limit
            best = near[0]
        reach += about[i]
        others += about[i]
        if doubtful > 1:
            best, score, second = _nearest(X, i, C, halves, near, doubtful)
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
def _nearest(X: Array, i: int, C: Array, halves: Array, near: Array, count: int) -> tuple[int, float, float]:
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
def add_rows(X: Array, weight: Array, labels: Array, sums: Array, total: Array) -> None:
    """Sum of every cluster, in the order of the rows."""
    for i in range(X.shape[0]):
        j, w = labels[i], weight[i]
        total[j] += w
        for t in range(X.shape[1]):
            sums[j, t] += w * np.float64(X[i, t])


@jit
def move_rows(X: Array, weight: Array, labels: Array, moved: Array, sums: Array, total: Array) -> None:
    """Take each moved row out of its old cluster and add it to the new one."""
    for m in range(moved.shape[1]):
        i, old = moved[0, m], moved[1, m]
        new, w = labels[i], weight[i]
        total[old] -= w
        total[new] += w
        for t in range(X.shape[1]):
            part = w * np.float64(X[i, t])
            sums[old, t] -= part
            sums[new, t] += part
