"""k-means by the Gram matrix of the rows, which all clusterings of the same few rows share.

An iteration then costs rows x clusters, whatever the number of columns. Clustering 600 x 512 rows with k = 1..15 and
three seeds takes 18 ms of CPU time, by `compiled.kmeans` 84 ms; in `paper/all`, k-means takes a third of that time.
"""

from typing import NamedTuple

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled import jit, jit_sums
from imprint.kernels.compiled.kmeans import near_mean
from imprint.kernels.compiled.lloyd import ClusterSums, move_rows, nearest
from imprint.kernels.compiled.products import distances_to_own, squared_distance

EPS = 2.0**-53  # half a unit in the last place of float64
UNIT = 2.0**-24  # and of float32
LEAST = 1e-9  # share of all mass; problems with smaller clusters are solved by `compiled.kmeans`


class GramArrays(NamedTuple):
    """Rows with their weights, their products with each other and their lengths."""

    X: Array  # (n, d)
    weight: Array  # (n,)
    products: Array  # (n, n) float32
    lengths: Array  # (n,)


class GramMeans(NamedTuple):
    """Centres, and what their inner products with all rows follow from."""

    C: Array  # (k, d) float64
    S: Array  # (k, n) sums, over the rows of a cluster, of their inner products with every row
    halves: Array  # (k,) half the squared lengths of the centres
    scale: Array  # (k,) 1 / mass of the clusters


class GramRoom(NamedTuple):
    """Room for the two best scores of every row, the best centre, and the rows that moved."""

    scores: Array  # (2, n)
    best: Array  # (n,)
    moved: Array  # (2, n)


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
    """The row whose part of the cumulated potential contains the target; -1 where rounding might decide."""
    i = np.searchsorted(cumulated, target, side="right")
    if i == len(cumulated) or cumulated[i] - target <= doubt or (i > 0 and target - cumulated[i - 1] <= doubt):
        return -1
    return int(i)


@jit
def seed(G: Array, norms: Array, weight: Array, uniform: Array, doubt: float, chosen: Array) -> bool:
    """Choose rows as `kernels.lloyd.seed_rows` does, the first one being given.

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
def _assign(rows: GramArrays, means: GramMeans, room: GramRoom, labels: Array, blur: float, rounding: float) -> int:
    """Give every row its nearest centre; fill `moved` with those that changed and their old labels.

    A score is wrong by less than `blur` times the length of the row, and `rounding`; centres nearer to each other than
    that are compared by whole products.
    """
    X, lengths, (C, S, halves, scale), (scores, best, moved) = rows.X, rows.lengths, means, room
    _scores(S, scale, halves, scores[0], scores[1], best)
    some, count = 0, 0
    for i in range(len(labels)):
        scores[0, i] += 2 * (blur * lengths[i] + rounding)
        moved[0, some] = i
        some += (scores[1, i] <= scores[0, i]) | (best[i] != labels[i])
    near = np.empty(len(halves), dtype=np.int32)
    for i in moved[0, :some]:
        label = best[i]
        if scores[1, i] <= scores[0, i]:
            doubtful = 0
            for j in range(len(halves)):
                near[doubtful] = j
                doubtful += halves[j] - scale[j] * S[j, i] <= scores[0, i] + rounding
            label = nearest(X, i, C, halves, near, doubtful)[0]
        if label != labels[i]:
            moved[0, count] = i
            moved[1, count] = labels[i]
            labels[i] = label
            count += 1
    return count


@jit
def _update(clusters: ClusterSums, stale: Array, centres: Array, means: GramMeans) -> float:
    """Bring the centres whose rows have changed up to date, also in float64; their squared shift."""
    sums, total, (C, _, halves, scale) = clusters.sums, clusters.total, means
    d, shift = sums.shape[1], 0.0
    old, origin = np.empty((1, d)), np.zeros((1, d))
    for j in range(len(stale)):
        if not stale[j]:
            continue
        for t in range(d):
            old[0, t] = C[j, t]
            centres[j, t] = sums[j, t] / total[j]
            C[j, t] = centres[j, t]
        shift += squared_distance(C, j, old, 0)
        halves[j] = squared_distance(C, j, origin, 0) / 2
        scale[j] = 1 / total[j]
    stale[:] = False
    return shift


@jit
def iterate(rows: GramArrays, limit: float, max_iter: int, chosen: Array, centres: Array, labels: Array) -> int:
    """Lloyd's iteration from chosen rows, as `kernels.lloyd.lloyd` does it; fills centres and labels.

    Products of a row and a centre are its mean products with the centre's rows, `S / total`; they miss by the rounding
    of `G` and of centres to float32, and by that of the sums. Returns the iterations; 0 where a cluster is left with
    next to no mass.
    """
    X, weight, G, lengths = rows
    (n, d), k = X.shape, len(chosen)
    peak, mass = lengths.max(), weight.sum()
    rounding, steps = 8 * EPS * peak * peak, n + d + 16
    clusters = ClusterSums(np.empty((k, d)), np.empty(k), np.zeros(k, dtype=np.int64))
    sums, total, members = clusters
    means = GramMeans(np.zeros((k, d)), np.empty((k, n)), np.empty(k), np.empty(k))
    S, halves, scale = means.S, means.halves, means.scale
    room = GramRoom(np.empty((2, n)), np.zeros(n, dtype=np.int64), np.empty((2, n), dtype=np.int32))
    moved, of_products = room.moved, ClusterSums(S, np.zeros(k), np.zeros(k, dtype=np.int64))
    stale = np.ones(k, dtype=np.bool_)
    sums[:], S[:], total[:], labels[:] = X[chosen], G[chosen], 1, -1
    _update(clusters, stale, centres, means)
    _assign(rows, means, room, labels, 1.001 * UNIT * peak, rounding)
    sums[:], S[:], total[:], stale[:] = 0, 0, 0, True
    move_rows(X, weight, labels, moved, clusters)
    move_rows(G, weight, labels, moved, of_products)
    for iteration in range(1, max_iter + 1):
        if members.min() == 0 or not total.min() > LEAST * mass:
            return 0
        shift = _update(clusters, stale, centres, means)
        blur = 1.001 * UNIT * (np.sqrt(2 * halves.max()) + peak) + 4 * steps * EPS * peak * mass * scale.max()
        count = _assign(rows, means, room, labels, blur, rounding)
        if shift <= limit or iteration == max_iter:
            return iteration
        if count == 0:
            return iteration + 1
        move_rows(X, weight, labels, moved[:, :count], clusters)
        move_rows(G, weight, labels, moved[:, :count], of_products)
        steps += count
        for m in range(count):
            stale[moved[1, m]] = stale[labels[moved[0, m]]] = True
    return 0


class GramRows:
    """Rows and their Gram matrix. Clusterings equal those of `CompiledRows`, bit for bit."""

    def __init__(self, X: Array, weight: Array) -> None:
        self.X, self.weight, self.share = X, weight, weight / weight.sum()
        whole = X.astype(np.float64, copy=False)
        self.products = whole @ whole.T
        self.norms = self.products.diagonal().copy()
        self.lengths = np.sqrt(self.norms)
        self.short = self.products.astype(np.float32)
        self.spread = float(distances_to_own(X, near_mean(X)[None], np.zeros(len(X), dtype=np.int32)).mean())
        n, d = X.shape
        self.doubt = float(32 * (n + d + 8) * EPS * weight.sum() * self.norms.max())

    def seed(self, k: int, draws: int, rng: np.random.Generator) -> Array | None:
        """The rows that `seed_rows` chooses; None where rounding might decide.  # (k,)"""
        chosen = np.empty(k, dtype=np.int64)
        chosen[0] = rng.choice(len(self.share), size=1, p=self.share)[0]
        uniform = rng.uniform(size=(k - 1, draws))
        sure = seed(self.products, self.norms, self.weight, uniform, self.doubt, chosen)
        return chosen if sure else None

    def lloyd(self, chosen: Array, limit: float, max_iter: int) -> tuple[Array, Array, int] | None:
        """Centres, labels and iterations of `lloyd` from the chosen rows; None where a cluster loses its rows."""
        n, d = self.X.shape
        centres, labels = np.empty((len(chosen), d), dtype=self.X.dtype), np.empty(n, dtype=np.int32)
        rows = GramArrays(self.X, self.weight, self.short, self.lengths)
        iterations = iterate(rows, limit, max_iter, chosen, centres, labels)
        return (centres, labels, iterations) if iterations else None

    def distances(self, centres: Array, labels: Array) -> Array:
        return distances_to_own(self.X, centres, labels.astype(np.int32, copy=False))
