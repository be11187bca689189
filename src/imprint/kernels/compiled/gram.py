"""k-means of a few rows by their inner products with each other: the loops."""

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled.jit import jit, jit_sums
from imprint.kernels.compiled.lloyd import add_rows, move_rows, nearest
from imprint.kernels.compiled.products import squared_distance

EPS = 2.0**-53  # half a unit in the last place of float64


@jit_sums
def _closer(G: Array, norms: Array, weight: Array, c: int, closest: Array, t: int, out: Array) -> float:
    """Fill `out[t]` with squared distances to row `c`, or `closest` where that is less; their weighted sum."""
    total = 0.0
    for i in range(len(closest)):
        distance = norms[i] + norms[c] - 2 * G[c, i]
        out[t, i] = min(closest[i], max(distance, 0.0))
        total += weight[i] * out[t, i]
    return total


@jit
def _drawn(cumulated: Array, target: float, doubt: float) -> int:
    """The row whose part of the cumulated potential holds the target; -1 where rounding may tell."""
    i = np.searchsorted(cumulated, target, side="right")
    if i == len(cumulated) or cumulated[i] - target <= doubt or (i > 0 and target - cumulated[i - 1] <= doubt):
        return -1
    return int(i)


@jit
def seed(G: Array, norms: Array, weight: Array, uniform: Array, doubt: float, chosen: Array) -> bool:
    """Choose rows as `kernels.seeding.seed_rows` does, the first one being given.

    False where potentials nearer than `doubt` to each other would decide.
    """
    n, draws = len(norms), uniform.shape[1]
    closest, cumulated, nearer = np.empty(n), np.empty(n), np.empty((draws, n))
    _closer(G, norms, weight, chosen[0], np.full(n, np.inf), 0, nearer)
    closest[:] = nearer[0]
    for step in range(uniform.shape[0]):
        total = 0.0
        for i in range(n):
            total += weight[i] * closest[i]
            cumulated[i] = total
        best, row, least, second = 0, -1, np.inf, np.inf
        for t in range(draws):
            c = _drawn(cumulated, uniform[step, t] * total, doubt)
            if c < 0:
                return False
            if c == row:
                continue
            potential = _closer(G, norms, weight, c, closest, t, nearer)
            if potential < least:
                best, row, least, second = t, c, potential, least
            else:
                second = min(second, potential)
        if second - least <= doubt:
            return False
        chosen[step + 1] = row
        closest[:] = nearer[best]
    return True


@jit_sums
def _scores(S: Array, scale: Array, halves: Array, first: Array, second: Array, best: Array) -> None:
    """For every row the least of `halves - scale * S`, whose it is, and the second least."""
    first[:] = 1e300
    second[:] = 1e300
    for j in range(S.shape[0]):
        for i in range(S.shape[1]):
            score = halves[j] - scale[j] * S[j, i]
            second[i] = min(second[i], max(first[i], score))
            best[i] = j if score < first[i] else best[i]
            first[i] = min(first[i], score)


@jit
def _assign(
    X: Array, C: Array, S: Array, scale: Array, halves: Array, lengths: Array, blur: float, rounding: float,
    labels: Array, scores: Array, best: Array, moved: Array,
) -> int:  # fmt: skip
    """Give every row its nearest centre; fill `moved` with those that changed and their old labels.

    A score is wrong by less than `blur` times the length of the row, and `rounding`; centres nearer to each other than
    that are compared by whole products.
    """
    k, count = len(halves), 0
    near = np.empty(k + 1, dtype=np.int32)
    _scores(S, scale, halves, scores[0], scores[1], best)
    for i in range(len(labels)):
        label, limit = best[i], scores[0, i] + 2 * (blur * lengths[i] + rounding)
        if scores[1, i] <= limit:
            doubtful = 0
            for j in range(k):
                near[doubtful] = j
                doubtful += halves[j] - scale[j] * S[j, i] <= limit + rounding
            label = nearest(X, i, C, halves, near, doubtful)[0]
        if label != labels[i]:
            moved[0, count] = i
            moved[1, count] = labels[i]
            labels[i] = label
            count += 1
    return count


@jit
def _add_products(G: Array, weight: Array, labels: Array, S: Array) -> None:
    for i in range(len(labels)):
        j, w = labels[i], weight[i]
        for t in range(G.shape[1]):
            S[j, t] += w * G[i, t]


@jit
def _move_products(G: Array, weight: Array, labels: Array, moved: Array, S: Array) -> None:
    for m in range(moved.shape[1]):
        i, old = moved[0, m], moved[1, m]
        new, w = labels[i], weight[i]
        for t in range(G.shape[1]):
            part = w * G[i, t]
            S[old, t] -= part
            S[new, t] += part


@jit
def iterate(
    X: Array, weight: Array, G: Array, lengths: Array, unit: float, limit: float, max_iter: int,
    chosen: Array, centres: Array, labels: Array,
) -> int:  # fmt: skip
    """Lloyd's iteration from chosen rows, as `kernels.lloyd.lloyd` does it; fills centres and labels.

    The products of the rows with a centre are the mean `S / total` of their products with its rows, wrong by the
    rounding of the centre to the data's type, of which `unit` is half a unit in the last place. Returns the iterations;
    0 where a cluster has lost its rows.
    """
    (n, d), k = X.shape, len(chosen)
    peak, mass = lengths.max(), weight.sum()
    rounding = 8 * EPS * peak * peak
    origin = np.zeros((1, d))
    C, old, S = np.empty((k, d)), np.empty(d).reshape(1, d), np.empty((k, n))
    halves, scale = np.empty(k), np.ones(k)
    sums, total, members = np.zeros((k, d)), np.zeros(k), np.zeros(k, dtype=np.int64)
    scores, best, moved = np.empty((2, n)), np.zeros(n, dtype=np.int64), np.empty((2, n), dtype=np.int32)
    for j in range(k):
        for t in range(d):
            C[j, t] = X[chosen[j], t]
        S[j] = G[chosen[j]]
        halves[j] = squared_distance(C, j, origin, 0) / 2
    labels[:] = -1
    _assign(X, C, S, scale, halves, lengths, 4 * (d + 8) * EPS * peak, rounding, labels, scores, best, moved)
    add_rows(X, weight, labels, sums, total, members)
    S[:] = 0
    _add_products(G, weight, labels, S)
    stale = np.ones(k, dtype=np.bool_)
    steps = n + d + 16
    for iteration in range(1, max_iter + 1):
        shift, blur = 0.0, 0.0
        for j in range(k):
            if members[j] == 0 or not total[j] > 0:
                return 0
            if stale[j]:
                old[0] = C[j]
                for t in range(d):
                    centres[j, t] = sums[j, t] / total[j]
                    C[j, t] = centres[j, t]
                shift += squared_distance(C, j, old, 0)
                halves[j] = squared_distance(C, j, origin, 0) / 2
                scale[j] = 1 / total[j]
                stale[j] = False
            blur = max(blur, 1.001 * unit * np.sqrt(2 * halves[j]) + 4 * steps * EPS * peak * mass * scale[j])
        count = _assign(X, C, S, scale, halves, lengths, blur, rounding, labels, scores, best, moved)
        move_rows(X, weight, labels, moved[:, :count], sums, total, members)
        if shift <= limit or iteration == max_iter:
            return iteration
        if count == 0:
            return iteration + 1
        _move_products(G, weight, labels, moved[:, :count], S)
        steps += count
        for m in range(count):
            stale[moved[1, m]] = stale[labels[moved[0, m]]] = True
    return 0
