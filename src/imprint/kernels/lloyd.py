"""Greedy k-means++ and Lloyd's iteration, for any implementation of `ClusterRows`; `PlainRows` is that of NumPy."""

from functools import cached_property
from typing import Protocol

import numpy as np

from imprint.core.types import Array
from imprint.kernels.rows import squared_norms


class ClusterRows(Protocol):
    """The rows of one data set, with what every clustering of them shares."""

    X: Array  # (n, d)
    weight: Array  # (n,) float64

    @property
    def spread(self) -> float:
        """Mean squared distance to the mean."""

    def nearer(self, candidates: Array, closest: Array) -> Array:
        """The minimum of `closest` and the squared distances of all rows to each candidate row.  # (t, n) float64"""

    def clustering(self, centres: Array) -> "Clustering":
        """Every row with its nearest centre."""

    def distances(self, centres: Array, labels: Array) -> Array:
        """Squared distance of every row to its centre.  # (n,) float64"""


class Clustering(Protocol):
    """Labels under moving centres, and the sums of the clusters."""

    labels: Array  # (n,)
    sums: Array  # (k, d) float64
    total: Array  # (k,) float64
    members: Array  # (k,) rows of positive mass

    def assign(self, centres: Array) -> tuple[int, float]:
        """Assign every row to its nearest centre, the first on a tie: rows that changed, squared shift of centres."""


def trials(k: int) -> int:
    """Candidates that are drawn for each new centre."""
    return 2 + int(np.log(k))


def seed_rows(rows: ClusterRows, k: int, draws: int, rng: np.random.Generator) -> Array:
    """Greedy k-means++ (Arthur and Vassilvitskii, 2007): the best of a few rows, drawn by squared distance.  # (k',)

    There are fewer than `k` if every row coincides with a chosen one. For the same number of draws the rows for a
    smaller `k` are a prefix.
    """
    weight = rows.weight
    chosen = rng.choice(len(weight), size=1, p=weight / weight.sum())
    closest = rows.nearer(chosen, np.full(len(weight), np.inf))[0]
    while len(chosen) < k:
        cumulated = np.cumsum(weight * closest)
        if not cumulated[-1] > 0:
            break
        drawn = np.searchsorted(cumulated, rng.uniform(size=draws) * cumulated[-1], side="right")
        candidates = np.minimum(drawn, np.searchsorted(cumulated, cumulated[-1]))
        nearer = rows.nearer(candidates, closest)
        best = int(np.argmin((nearer * weight).sum(axis=1)))
        chosen, closest = np.append(chosen, candidates[best]), nearer[best]
    return chosen


def lloyd(rows: ClusterRows, centres: Array, limit: float, max_iter: int) -> tuple[Array, Array, int]:
    """Iterate until no row moves or the centres' squared shift is within the limit: centres, labels, iterations."""
    state = rows.clustering(centres)
    for iteration in range(1, max_iter + 1):
        centres = _means(rows, state, centres)
        changed, shift = state.assign(centres)
        if shift <= limit or iteration == max_iter:
            return centres, state.labels, iteration
        if not changed:
            return centres, state.labels, iteration + 1
    raise AssertionError("max_iter is at least one")


def _means(rows: ClusterRows, state: Clustering, centres: Array) -> Array:
    """Centre of every cluster, rounded to the data's type; a centre without rows stays where it was."""
    sums, total = state.sums, state.total
    if state.members.all():
        return (sums / total[:, None]).astype(centres.dtype)
    sums, total = _relocated(rows, state, centres, np.flatnonzero(state.members == 0))
    full = np.flatnonzero(total > 0)
    means = centres.copy()
    means[full] = sums[full] / total[full, None]
    return means


def _relocated(rows: ClusterRows, state: Clustering, centres: Array, empty: Array) -> tuple[Array, Array]:
    """Sums and masses after each empty cluster was given one of the rows that are farthest from their centres."""
    sums, total, members = state.sums.copy(), state.total.copy(), state.members.copy()
    sums[empty], total[empty] = 0, 0
    distances = rows.distances(centres, state.labels) * (rows.weight > 0)
    farthest = np.argsort(-distances, kind="stable")[: len(empty)]
    for j, i in zip(empty, farthest[distances[farthest] > 0]):
        old, part = state.labels[i], rows.weight[i] * rows.X[i].astype(np.float64)
        members[old] -= 1
        sums[old] -= part
        total[old] = total[old] - rows.weight[i] if members[old] else 0
        sums[j], total[j] = part, rows.weight[i]
    return sums, total


class PlainRows:
    """Rows clustered by whole matrix products in float64, in every iteration."""

    def __init__(self, X: Array, weight: Array) -> None:
        self.X, self.weight = X, weight
        self.wide = X.astype(np.float64)

    @cached_property
    def spread(self) -> float:
        return float(self.wide.var(axis=0).sum())

    def nearer(self, candidates: Array, closest: Array) -> Array:
        from scipy.spatial.distance import cdist

        return np.minimum(closest, cdist(self.wide[candidates], self.wide, "sqeuclidean"))

    def clustering(self, centres: Array) -> "PlainClustering":
        return PlainClustering(self, centres)

    def distances(self, centres: Array, labels: Array) -> Array:
        return squared_norms(self.wide - centres[labels])


class PlainClustering:
    def __init__(self, rows: PlainRows, centres: Array) -> None:
        self.rows = rows
        self.labels = np.full(len(rows.X), -1, dtype=np.int32)
        self.centres = centres.astype(np.float64)
        self.assign(centres)

    def assign(self, centres: Array) -> tuple[int, float]:
        rows, clusters, C = self.rows, np.arange(len(centres)), centres.astype(np.float64)
        shift = float(squared_norms(C - self.centres).sum())
        self.centres = C
        labels = np.argmin(squared_norms(C) / 2 - rows.wide @ C.T, axis=1).astype(np.int32)
        changed = int(np.count_nonzero(labels != self.labels))
        self.labels = labels
        weights = (labels == clusters[:, None]) * rows.weight  # (k, n)
        self.sums, self.total, self.members = weights @ rows.wide, weights.sum(axis=1), (weights > 0).sum(axis=1)
        return changed, shift
