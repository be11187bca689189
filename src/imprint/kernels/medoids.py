"""Rows that represent others under the Euclidean distance: k-medoids (FasterPAM,
alternating) and farthest points.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from imprint.core.arrays import Array
from imprint.kernels import cpu
from imprint.kernels.rows import recompute_close, squared_distances, squared_norms

MAX_STORED_BYTES = 256 * 2**20  # of distances between all rows
BLOCK_ROWS = 256  # rows whose distances are computed together
# of the squared lengths; squared distances up to that are computed again, from
# differences
CLOSE_SHARE = 1e-3
# Relative to the cost: swaps that gain less are rounding. The cost of n rows in float64
# is exact to n 2^-53, 1e-10 for 900,000 rows.
MIN_GAIN = 1e-10
# squared lengths between which products of float32 neither overflow nor underflow
SQUARE_RANGE = 1e-30, 1e30


class Medoids(NamedTuple):
    """The rows chosen as medoids, and for every row its nearest medoid and the distance
    to it.
    """

    rows: Array  # (k',) indices
    labels: Array  # (n,) indices into `rows`
    distances: Array  # (n,) float64, as precise as float32


class Pairwise:
    """Euclidean distances between all rows in float32; use it with one thread of BLAS.

    They are stored if they fit into `memory` bytes, else computed again whenever they
    are needed.
    """

    def __init__(self, X: Array, memory: int = MAX_STORED_BYTES) -> None:
        # distances do not depend on the mean, their rounding does
        mean = X.mean(axis=0, dtype=np.float64)
        self.X = np.ascontiguousarray(X - mean.astype(X.dtype))
        self.norms = squared_norms(self.X)
        smallest, largest = SQUARE_RANGE
        if not smallest < self.norms.max() < largest:
            self.X = self.X.astype(np.float64)
        self.is_compiled = cpu.use_numba(self.X.size * len(X))
        self.stored = self._all() if 4 * len(X) ** 2 <= memory else None

    def _all(self) -> Array:
        n = len(self.X)
        stored = np.empty((n, n), dtype=np.float32)
        # blocks of one size, a multiple of the 16 numbers of a vector
        count = -(-n // BLOCK_ROWS)
        height = -(-n // (16 * count)) * 16

        def fill(start: int) -> None:
            stop = min(start + height, n)
            block = self._between(slice(start, stop), slice(start, n))
            stored[start:stop, start:] = block
            stored[stop:, start:stop] = block[:, stop - start :].T

        cpu.on_all_cores(fill, range(0, n, height))
        return stored

    def rows(self, rows: Array) -> Array:
        """Distances of some rows to all.  # (r, n)"""
        if self.stored is not None:
            return self.stored[rows]
        return np.concatenate([self._between(row[None], slice(None)) for row in rows])

    def within(self, rows: Array) -> Array:
        """Distances of some rows to one another.  # (r, r)"""
        if self.stored is None:
            return self._between(rows, rows)
        return self.stored[np.ix_(rows, rows)]

    def blocks(self) -> Iterator[tuple[int, Array]]:
        """The index of the first row of a block, and the distances of the block to all
        rows.
        """
        for rows in cpu.blocks(len(self.X), BLOCK_ROWS):
            if self.stored is None:
                yield rows.start, self._between(rows, slice(None))
            else:
                yield rows.start, self.stored[rows]

    def totals(self, weight: Array) -> Array:
        """Weighted sum of the distances of every row."""
        return np.concatenate([block @ weight for _, block in self.blocks()])

    def _between(self, rows: Array | slice, columns: Array | slice) -> Array:
        """Distances by one product in the data's type and float64 lengths; of close
        pairs by differences in float64.

        Two rows must be as far from each other in both directions: in a cluster of two
        the present medoid stays only because both cost the same.
        """
        left = self.X[rows]
        right = self.X[columns]
        squares = self.norms[rows, None] + self.norms[columns]
        close = CLOSE_SHARE * squares
        squares -= 2 * (left @ right.T)
        recompute_close(squares, close, left, right)
        return np.sqrt(squares, out=squares).astype(np.float32)


def fasterpam(
    pairs: Pairwise,
    k: int,
    rng: np.random.Generator,
    weight: Array,
) -> Medoids:
    """Medoids that no single swap improves, by eager swaps (Schubert and Rousseeuw,
    2021).

    Run it with BLAS limited to one thread.
    """
    n = len(weight)
    if k == 1:
        return _result(pairs, np.argmin(pairs.totals(weight), keepdims=True))
    medoids = rng.choice(n, size=min(k, n), replace=False)
    if len(medoids) == n:
        return _result(pairs, medoids)
    M = pairs.rows(medoids)
    labels = np.empty(n, dtype=np.int32)
    two_nearest = np.empty((2, n), dtype=np.float32)
    swap = _eager_swaps
    rank = _rank
    if pairs.is_compiled:
        from imprint.kernels.compiled import pam

        swap = pam.eager_swaps
        rank = pam.rank
    rank(M, labels, two_nearest)
    idle = 0
    while idle < n:  # until a whole round changes nothing
        blocks = pairs.blocks()
        if pairs.stored is not None:
            blocks = iter([(0, pairs.stored)])
        for start, block in blocks:
            idle = swap(block, start, weight, M, medoids, labels, two_nearest, idle)
            if idle >= n:
                break
    return _clusters(medoids, labels.astype(np.intp), two_nearest[0])


def _rank(
    M: Array,
    labels: Array,
    two_nearest: Array,
) -> None:
    """The nearest medoid of every row, the first on a tie, and the distances to it and
    to the second.  # M: (k, n)
    """
    labels[:] = np.argmin(M, axis=0)
    two_nearest[:] = np.partition(M, 1, axis=0)[:2]


def _eager_swaps(
    distances: Array,
    start: int,
    weight: Array,
    M: Array,
    medoids: Array,
    labels: Array,
    two_nearest: Array,
    idle: int,
) -> int:
    """Make each row from `start` on a medoid if that lowers the cost; returns the rows
    tried since the last swap.
    """
    for row, new in enumerate(distances.astype(np.float64), start):
        if idle >= len(weight):
            break
        if idle == 0 or row == start:
            first, second = two_nearest.astype(np.float64)
            cost = weight @ first
        idle += 1
        loss = np.maximum(np.minimum(new, second), first) - first
        change = np.bincount(labels, weight * loss, minlength=len(medoids))
        slot = int(np.argmin(change))
        shared = weight @ np.minimum(new - first, 0)
        if change[slot] + shared < -MIN_GAIN * cost:
            medoids[slot] = row
            M[slot] = new
            idle = 0
            _rank(M, labels, two_nearest)
    return idle


def alternate(
    pairs: Pairwise,
    k: int,
    weight: Array,
    max_iter: int = 300,
) -> Medoids:
    """Assign rows to medoids and medoids to clusters in turn, from the `k` most central
    rows.
    """
    medoids = np.argsort(pairs.totals(weight), kind="stable")[:k]
    for _ in range(max_iter):
        labels = np.argmin(pairs.rows(medoids), axis=0)
        centres = []
        for j, medoid in enumerate(medoids):
            centres.append(_centre(pairs, weight, labels == j, medoid))
        best = np.array(centres)
        if np.array_equal(best, medoids):
            break
        medoids = best
    return _result(pairs, medoids)


def _centre(
    pairs: Pairwise,
    weight: Array,
    members: Array,
    medoid: int,
) -> int:
    """The member with the smallest total distance to the others; on a tie the present
    medoid.
    """
    rows = np.flatnonzero(members)
    if not len(rows):
        return medoid
    costs = pairs.within(rows) @ weight[rows]
    best = int(np.argmin(costs))
    present_cost = costs[rows == medoid].min(initial=np.inf)
    return int(rows[best]) if costs[best] < present_cost else medoid


def _result(pairs: Pairwise, medoids: Array) -> Medoids:
    """Every row with its nearest medoid, the first on a tie."""
    distances = pairs.rows(medoids)
    return _clusters(medoids, np.argmin(distances, axis=0), distances.min(axis=0))


def _clusters(
    medoids: Array,
    labels: Array,
    distances: Array,
) -> Medoids:
    """The result without medoids that equal another one and therefore have no rows."""
    used = np.bincount(labels, minlength=len(medoids)) > 0
    if not used.all():
        medoids = medoids[used]
        labels = (np.cumsum(used) - 1)[labels]
    return Medoids(medoids, labels, distances.astype(np.float64))


def farthest_points(
    X: Array,
    k: int,
    first: int,
) -> Array:
    """Start with row `first` and repeatedly choose the row that is farthest from all
    chosen ones.  # (min(k, n),)

    No row is chosen twice; on a tie the first row is. The rows for a smaller `k` are a
    prefix.
    """
    chosen = np.empty(min(k, len(X)), dtype=np.intp)
    nearest = np.full(len(X), np.inf)
    chosen[0] = first
    distances_to: Callable[[Array, Array], Array] = squared_distances
    if cpu.use_numba(X.size * len(chosen)):
        from imprint.kernels.compiled import pam

        distances_to = pam.squared_distances
    for i, row in enumerate(chosen):
        distances = distances_to(X, X[row].astype(np.float64))
        np.minimum(nearest, distances, out=nearest)
        # less than any distance: copies of chosen rows come before it
        nearest[row] = -1
        chosen[i + 1 : i + 2] = np.argmax(nearest)
    return chosen
