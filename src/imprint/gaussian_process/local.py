"""A local Gaussian process for very many classes: each query solves the system of the
classes with the nearest means.

C classes and m centres would need C m coefficients, and few centres do not separate
many classes. The local approximation (Gramacy and Apley 2015) solves nothing in
advance, so adding and removing classes is free. A query takes one product with all
class means and one small system.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from imprint.core.arrays import (
    AnyArray,
    Array,
    cast_like,
    dtype_name,
    is_torch,
    like,
    namespace,
    to_numpy,
)
from imprint.gaussian_process.gaussian import (
    cast,
    centre_of,
    lift_proxies,
    lift_queries,
)
from imprint.kernels.cpu import blocks, on_all_cores, one_blas_thread
from imprint.kernels.rows import exact_products

SYSTEM_PROXIES = 256  # in the system of a query
# of a class that count when the number of classes of a query is chosen: five classes
# take part if they have more. A matter of taste; it was not tuned
CLASS_PROXIES = 50
# Of the padding of classes that have fewer proxies than others: its weight in a
# solution is at most the inverse, which float32 scores cannot show.
PADDING_NOISE = 1e12
# For less noise, kernels of float32 proxies are computed in float64: an error of 1e-7
# in a kernel changes a solution by up to this divided by the noise, 1e-4.
MIN_FLOAT32_NOISE = 1e-3
MAX_KERNELS = 2**24  # in memory at a time
BLOCK_SYSTEMS = 16  # solved at a time


@dataclass(frozen=True, eq=False)
class LocalProcess:
    """Proxies with their classes and noise, built by `solve_locally`. Arrays are
    NumPy's or torch's.
    """

    weights: AnyArray  # (p, d)
    labels: Array  # (p,)
    noise: Any  # (p,) float64
    rate: float
    n_classes: int
    centre: AnyArray  # (d,)

    @cached_property
    def _means(self) -> Any:
        """Lifted class means.  # (classes, d + 2) float32"""
        weights = to_numpy(self.weights)
        starts = self._members[:, 0]
        sums = np.add.reduceat(weights, starts, axis=0, dtype=np.float64)
        means = sums / np.bincount(self.labels)[:, None]
        rows = like(means, self.weights)
        return lift_proxies(rows, self.centre, self.rate, "float32")

    @cached_property
    def _members(self) -> Array:
        """The proxies of every class; a class with fewer than others is padded with -1.
        # (classes, largest)
        """
        sizes = np.bincount(self.labels)
        steps = np.arange(sizes.max())
        starts = np.cumsum(sizes) - sizes
        is_member = steps < sizes[:, None]
        return np.where(is_member, starts[:, None] + steps, -1)

    def scores(self, Q: AnyArray) -> Any:
        """The expected value of every class at every query, 1 for certain.  # (q,
        classes) in the type of Q
        """
        return self.scores_and_doubt(Q)[0]

    def scores_and_doubt(self, Q: AnyArray) -> tuple[Any, Any]:
        """`scores` and `doubt` of the same queries."""
        chosen, shares, doubt = self._solve(Q)
        out = np.zeros((len(chosen), self.n_classes))
        queries = np.arange(len(chosen))[:, None]
        is_proxy = chosen >= 0
        np.add.at(out, (queries, self.labels[chosen]), shares * is_proxy)
        return cast_like(like(out, Q), Q), cast_like(like(doubt, Q), Q)

    @cached_property
    def _dtype(self) -> str:
        """The type in which kernels are precise enough for the smallest noise."""
        if float(self.noise.min()) < MIN_FLOAT32_NOISE:
            return "float64"
        return dtype_name(self.weights)

    def doubt(self, Q: AnyArray) -> Any:
        """The posterior standard deviation: 0 at a certain query, 1 far from all
        proxies.  # (q,) in the type of Q
        """
        return self.scores_and_doubt(Q)[1]

    def contributions(self, Q: Array, classes: Array) -> Array:
        """The contribution of each proxy to the score of one class per query.  # (q,
        proxies) float64
        """
        chosen, shares, _ = self._solve(Q)
        out = np.zeros((len(Q), len(self.labels)))
        is_of_class = self.labels[chosen] == np.asarray(classes)[:, None]
        shares = shares * (chosen >= 0) * is_of_class
        queries = np.arange(len(chosen))[:, None]
        np.add.at(out, (queries, chosen), shares)
        return out

    def _solve(self, Q: AnyArray) -> tuple[Array, Array, Array]:
        """Per query: the proxies of its system, their weights in the scores, the doubt.
        # (q, m), (q, m), (q,)
        """
        Q = like(Q, self.weights)
        step = max(1, MAX_KERNELS // self.n_classes)
        with one_blas_thread():
            parts = [self._nearest(Q[rows]) for rows in blocks(max(1, len(Q)), step)]
        chosen = np.concatenate(parts)

        def solve(rows: slice) -> tuple[Array, Array]:
            return self._systems(Q[rows], chosen[rows])

        batches = blocks(max(1, len(Q)), BLOCK_SYSTEMS)
        solved = on_all_cores(solve, batches, parallel=not is_torch(Q))
        shares, doubts = (np.concatenate(part) for part in zip(*solved))
        return chosen, shares, doubts

    def _nearest(self, Q: AnyArray) -> Array:
        """Indices of the proxies of the classes with the nearest means, -1 for padding;
        of many, those nearest to the query.  # (q, m)
        """
        largest = self._members.shape[1]
        per_class = min(largest, CLASS_PROXIES)
        count = min(self.n_classes, max(2, SYSTEM_PROXIES // per_class))
        # the larger the exponent, the nearer the mean
        queries = lift_queries(Q, self.centre, "float32")
        exponents = to_numpy(queries @ self._means.T)
        classes = np.argpartition(exponents, self.n_classes - count, axis=1)[:, -count:]
        candidates = self._members[np.sort(classes, axis=1)]
        candidates = candidates.reshape(len(Q), count * largest)
        if largest == per_class:
            return candidates
        chosen = on_all_cores(
            lambda rows: self._closest(Q[rows], candidates[rows]),
            blocks(max(1, len(Q)), BLOCK_SYSTEMS),
            parallel=not is_torch(Q),
        )
        return np.concatenate(chosen)

    def _closest(self, Q: AnyArray, candidates: Array) -> Array:
        """The candidates nearest to each query, in ascending order; -1 for padding.
        # (q, m)
        """
        chosen = np.full((len(Q), SYSTEM_PROXIES), -1)
        for i, row in enumerate(candidates):
            proxies = row[row >= 0]
            if len(proxies) > SYSTEM_PROXIES:
                W = self.weights[like(proxies, self.weights)] - Q[i]
                squares = to_numpy((W * W).sum(axis=1))
                nearest = np.argpartition(squares, SYSTEM_PROXIES)[:SYSTEM_PROXIES]
                proxies = np.sort(proxies[nearest])
            chosen[i, : len(proxies)] = proxies
        return chosen

    def _systems(self, Q: AnyArray, chosen: Array) -> tuple[Array, Array]:
        """Solve the systems of some queries: kernels about the query, the solution in
        float64.
        """
        xp = namespace(Q)
        index = like(chosen, Q)
        weights = cast(self.weights[index], self._dtype)
        W = weights - cast(Q, self._dtype)[:, None]  # (q, m, d)
        squares = xp.einsum("qmd,qmd->qm", W, W)
        with exact_products(Q):
            K = W @ W.swapaxes(1, 2)
        # -|w - z|^2 = 2 w z - |w|^2 - |z|^2
        K *= 2
        K -= squares[:, :, None]
        K -= squares[:, None, :]
        K *= self.rate
        K = cast(xp.exp(K), "float64")
        squares = cast(squares, "float64")
        noise = xp.where(index >= 0, self.noise[index], PADDING_NOISE)
        diagonal = np.arange(K.shape[1])
        K[:, diagonal, diagonal] = 1 + noise
        k = xp.exp(-self.rate * squares)
        shares = xp.linalg.solve(K, k[:, :, None])[:, :, 0]
        explained = to_numpy((shares * k).sum(axis=1))
        return to_numpy(shares), np.sqrt(np.maximum(1 - explained, 0))


def solve_locally(
    weights: AnyArray,
    labels: Array,
    noise: AnyArray,
    rate: float,
) -> LocalProcess:
    """The proxies `weights` (p, d), their classes 0, 1, ... and their noise."""
    noise = cast(like(noise, weights), "float64")
    n_classes = int(labels.max()) + 1
    return LocalProcess(weights, labels, noise, rate, n_classes, centre_of(weights))
