"""Greedy k-means++ and Lloyd's iteration in NumPy; `kernels.compiled.kmeans` computes
the same in compiled loops.
"""

from functools import cached_property
from typing import Any

import numpy as np

from imprint.core.arrays import (
    Array,
    is_torch,
    like,
    namespace,
    rows_at,
    to_numpy,
)
from imprint.kernels.rows import double, squared_norms


def trials(k: int) -> int:
    """The number of candidates drawn for each new centre, as in scikit-learn."""
    return 2 + int(np.log(k))


class ClusterRows:
    """The rows of one data set, clustered by whole matrix products in float64.

    Rows may be a torch tensor; what grows with their width is then computed on its
    device. Results are NumPy arrays.
    """

    def __init__(self, X: Any, weight: Array) -> None:
        self.X = X
        self.weight = weight

    @cached_property
    def _float64(self) -> Any:
        return double(self.X)

    @cached_property
    def spread(self) -> float:
        """Mean squared distance to the mean."""
        xp = namespace(self._float64)
        variances = xp.var(self._float64, axis=0, correction=0)
        return float(variances.sum())

    def seed(self, k: int, rng: np.random.Generator) -> Array:
        """Initial centres by greedy k-means++ (Arthur and Vassilvitskii, 2007).  #
        (k',) indices of rows

        Each is the best of a few rows, drawn by squared distance. There are fewer than
        `k` if every row coincides with a chosen one. For the same number of trials the
        rows for a smaller `k` are a prefix.
        """
        probability = self.weight / self.weight.sum()
        first = rng.choice(len(self.weight), size=1, p=probability)
        uniform = rng.uniform(size=(k - 1, trials(k)))
        return self.choose(first, uniform)

    def choose(self, first: Array, uniform: Array) -> Array:
        """Seeds from the first one and the random numbers for the others."""
        chosen = first
        # The squared distance of every row to its nearest seed.
        infinite = np.full(len(self.weight), np.inf)
        closest = self.nearer(first, infinite)[0]
        for numbers in uniform:
            cumulated = np.cumsum(self.weight * closest)
            total = cumulated[-1]
            if not total > 0:
                break
            # A row is drawn with a probability in proportion to its weighted distance.
            drawn = np.searchsorted(cumulated, numbers * total, side="right")
            # Rounding may draw beyond the last row that has a distance.
            last = np.searchsorted(cumulated, total)
            candidates = np.minimum(drawn, last)
            nearer = self.nearer(candidates, closest)
            potentials = (nearer * self.weight).sum(axis=1)
            best = int(np.argmin(potentials))
            chosen = np.append(chosen, candidates[best])
            closest = nearer[best]
        return chosen

    def nearer(self, candidates: Array, closest: Array) -> Array:
        """The minimum of `closest` and the squared distances of all rows to each
        candidate row.  # (t, n) float64
        """
        rows = rows_at(self._float64, candidates)
        distances = _squared_distances(rows, self._float64)
        return np.minimum(closest, to_numpy(distances))

    def nearest(self, centres: Array) -> Array:
        """The nearest centre of every row, the first on a tie.  # (n,)"""
        C = like(centres.astype(np.float64), self._float64)
        # |x - c|^2 / 2 without |x|^2 / 2, which is the same for every centre
        costs = squared_norms(C) / 2 - self._float64 @ C.T
        labels = to_numpy(costs.argmin(axis=1))
        return np.asarray(labels.astype(np.int32))

    def distances(self, centres: Array, labels: Array) -> Array:
        """Squared distance of every row to its centre.  # (n,) float64"""
        own_centres = rows_at(like(centres, self._float64), labels)
        squares = squared_norms(self._float64 - own_centres)
        return np.asarray(to_numpy(squares))

    def lloyd(
        self,
        chosen: Array,
        limit: float,
        max_iter: int,
    ) -> tuple[Array, Array, int]:
        """Centres, labels and the number of iterations from the chosen rows on.

        The iteration ends when no row moves or when the squared shift of the centres is
        within the limit.
        """
        centres = to_numpy(rows_at(self.X, chosen))
        labels = self.nearest(centres)
        iteration = 0
        clusters = like(np.arange(len(centres))[:, None], self.X)
        weight = like(self.weight, self.X)
        while True:
            iteration += 1
            masses = (like(labels, self.X) == clusters) * weight  # (k, n)
            sums = to_numpy(masses @ self._float64)
            total = to_numpy(masses.sum(axis=1))
            members = to_numpy((masses > 0).sum(axis=1))
            means = self.means(sums, total, members, centres, labels)
            previous = labels
            labels = self.nearest(means)
            shift = squared_norms(means.astype(np.float64) - centres).sum()
            centres = means
            if shift <= limit or iteration == max_iter:
                return centres, labels, iteration
            if np.array_equal(labels, previous):
                return centres, labels, iteration + 1

    def means(
        self,
        sums: Array,
        total: Array,
        members: Array,
        centres: Array,
        labels: Array,
    ) -> Array:
        """The mean of every cluster, in the type of the data, from the sum, mass and
        number of its rows.

        Rows without mass do not count as members. Each empty cluster takes one of the
        rows that are farthest from their centres; if no row is away from its centre,
        the empty cluster's centre stays as it was.
        """
        empty = np.flatnonzero(members == 0)
        if len(empty):
            sums = sums.copy()
            total = total.copy()
            members = members.copy()
            sums[empty] = 0
            total[empty] = 0
            distances = self.distances(centres, labels) * (self.weight > 0)
            farthest = np.argsort(-distances, kind="stable")[: len(empty)]
            away = farthest[distances[farthest] > 0]
            for j, i in zip(empty, away):
                # Row i moves from its cluster to the empty cluster j.
                old = labels[i]
                part = self.weight[i] * to_numpy(double(self.X[i]))
                members[old] -= 1
                sums[old] -= part
                # Exactly zero if no row is left, whatever the rounding.
                total[old] = total[old] - self.weight[i] if members[old] else 0
                sums[j] = part
                total[j] = self.weight[i]
        filled = total[:, None] > 0
        means = centres.astype(np.float64)
        np.divide(sums, total[:, None], out=means, where=filled)
        return means.astype(centres.dtype)


def _squared_distances(A: Any, B: Any) -> Any:
    """Squared distances of rows, by differences.  # (a, b)"""
    if is_torch(B):
        # The default of torch computes products, which cancel for close rows.
        by_differences = "donot_use_mm_for_euclid_dist"
        distances = namespace(B).cdist(A, B, compute_mode=by_differences)
        return distances**2
    from scipy.spatial.distance import cdist

    return cdist(A, B, "sqeuclidean")
