"""Greedy selection of the rows that most reduce the posterior variance of a Gaussian process over a pool.

With V the posterior covariance of the pool given the labelled rows, and weights w of the pool's rows, each step chooses
the candidate i with the largest sum_j w_j V_ji^2 / (V_ii + noise) and conditions V on it. V is never rewritten: a step
adds one column u to a factor U, V becomes V - U U', and the sums are corrected by one product with V.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from imprint.core.types import Array
from imprint.gaussian_process.gaussian import centre_of, kernel_rows, lift_proxies, lift_queries
from imprint.kernels.rows import column_means, squared_distances, squared_norms

NOISE = 0.1
"""Variance of the noise of one label."""
SPREAD = 0.2
"""How much the spread of a proxy's rows adds to its noise, as in the aggregator `kernel`."""
BLOCK = 1024
SAME = 1e-3
"""Unit rows closer than this differ by rounding only."""
NEAR = 0.3
"""Rows are near-duplicates below this share of the median distance to the nearest row, as in `imprint check`."""


class Observations(NamedTuple):
    """Labelled rows, or proxies that represent several of them: positions, and the variance of the noise of each."""

    rows: Array  # (p, d)
    noise: Array  # (p,)


@dataclass(frozen=True, eq=False)
class CandidatePool:
    """Candidates, the first `targets` of which represent the pool, and the Gaussian kernel between the two."""

    rows: Array  # (c, d)
    targets: int
    rate: float
    kernel: Array  # (c, targets)
    duplicate: float
    """Largest squared distance between near-duplicates."""

    @classmethod
    def of(cls, rows: Array, targets: int) -> "CandidatePool":
        """The pool of candidates `rows`; the scale of the kernel is twice the variance of the targets."""
        represented = rows[:targets]
        scale = 2 * float(squared_distances(represented, column_means(represented)).mean())
        rate = 1 / scale if scale > 1e-12 else 1.0
        kernel = _kernel(rows, represented, rate)
        return cls(rows, targets, rate, kernel, _duplicate_distance(kernel, rate))

    def condition(self, observed: Observations | None) -> "Conditioned":
        """The pool given labelled rows."""
        if observed is None:
            return Conditioned(self, self.kernel, np.empty((len(self.rows), 0), self.rows.dtype))
        K = _kernel(observed.rows, observed.rows, self.rate).astype(np.float64)
        factor = np.linalg.cholesky(K + np.diag(observed.noise))
        across = _kernel(self.rows, observed.rows, self.rate)
        B = np.linalg.solve(factor, across.T).T.astype(self.rows.dtype)  # (c, p)
        covariance = np.empty_like(self.kernel)
        for rows in _blocks(len(B)):
            np.subtract(self.kernel[rows], B[rows] @ B[: self.targets].T, out=covariance[rows])
        return Conditioned(self, covariance, B)


@dataclass(frozen=True, eq=False)
class Conditioned:
    """A pool given labelled rows: the covariance of candidates and targets, and the factor B of what they explain."""

    pool: CandidatePool
    covariance: Array  # (c, targets)
    explained: Array  # (c, p)

    @property
    def variance(self) -> Array:
        """The posterior variance of every candidate, 1 far from all labelled rows.  # (c,) float64"""
        return np.asarray(np.maximum(1 - squared_norms(self.explained), 0))

    def select(self, n: int, weights: Array, excluded: Array) -> list[int]:
        """At most n candidates, best first, without near-duplicates; `excluded` marks candidates never to choose."""
        pool, V, t = self.pool, self.covariance, self.pool.targets
        w = weights.astype(V.dtype)
        gain = np.concatenate([np.square(V[rows]) @ w for rows in _blocks(len(V))]).astype(np.float64)
        variance = self.variance
        U = np.empty((len(V), n), V.dtype)
        open_, chosen = ~excluded, list[int]()
        while len(chosen) < n and open_.any():
            step = len(chosen)
            best = int(np.where(open_, gain / (variance + NOISE), -np.inf).argmax())
            chosen.append(best)
            distances = squared_distances(pool.rows, pool.rows[best].astype(np.float64))
            open_ &= distances > pool.duplicate
            open_[best] = False
            column = np.exp(-pool.rate * distances) - self.explained @ self.explained[best]
            column -= U[:, :step] @ U[best, :step]
            u = (column / np.sqrt(max(column[best], 0.0) + NOISE)).astype(V.dtype)
            seen = w * u[:t]
            covered = V @ seen - U[:, :step] @ (U[:t, :step].T @ seen)
            gain += u * (u * float(seen @ u[:t]) - 2 * covered)
            variance = np.maximum(variance - u.astype(np.float64) ** 2, 0)
            U[:, step] = u
        return chosen


def near_any(pool: CandidatePool, rows: Array) -> Array:
    """Which candidates are near-duplicates of one of some rows.  # (c,) bool"""
    if not len(rows):
        return np.zeros(len(pool.rows), bool)
    closest = _kernel(pool.rows, rows, pool.rate).max(axis=1)
    return np.asarray(closest >= np.exp(-pool.rate * pool.duplicate))


def _blocks(n: int) -> list[slice]:
    """Rows that are worked on at once, so that temporary arrays stay small."""
    return [slice(start, start + BLOCK) for start in range(0, n, BLOCK)]


def _kernel(left: Array, right: Array, rate: float) -> Array:
    """exp(-rate |a - b|^2) in the type of `left`.  # (n, m)"""
    centre, dtype = centre_of(right), left.dtype.type
    K = kernel_rows(lift_queries(left, centre, dtype), lift_proxies(right, centre, rate, dtype))
    return np.minimum(K, 1, out=K)


def _duplicate_distance(kernel: Array, rate: float) -> float:
    """The squared distance below which rows are near-duplicates, from the distances to nearest other targets."""
    others = kernel[: kernel.shape[1]].copy()
    np.fill_diagonal(others, 0)
    nearest = -np.log(np.maximum(others.max(axis=1, initial=0), 1e-30), dtype=np.float64) / rate
    apart = nearest[nearest > SAME**2]
    return max(SAME**2, NEAR**2 * float(np.median(apart))) if len(apart) else SAME**2
