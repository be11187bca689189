"""`suggest`: the rows of an unlabelled pool that are most useful to label next, with a
reason for each.

Rows are selected greedily: they reduce the posterior variance of a Gaussian process
over the pool the most. With V the posterior covariance of the pool given the labelled
rows, and weights w of the pool's rows, each step chooses the candidate i with the
largest sum_j w_j V_ji^2 / (V_ii + noise) and conditions V on it. V is never rewritten:
a step adds one column u to a factor U, V becomes V - U U', and the sums are corrected
by one product with V.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from imprint.core.arrays import Array, all_finite, to_numpy
from imprint.core.errors import ParameterError, check_int
from imprint.gaussian_process.gaussian import (
    centre_of,
    kernel_rows,
    lift_proxies,
    lift_queries,
)
from imprint.head import Decider
from imprint.kernels.rows import (
    column_means,
    squared_distances,
    squared_norms,
    unit_blocks,
)

if TYPE_CHECKING:
    from imprint.embeddings import Skipped

# rows over which the variance is reduced; a larger pool is represented by a random
# sample of this size
TARGETS = 5_000
# rows that can be chosen; from a larger pool, a random sample that contains the targets
CANDIDATES = 20_000
NOISE = 0.1  # variance of the noise of one label
# how much the spread of a proxy's rows adds to its noise, as in the aggregator `kernel`
SPREAD = 0.2
ROUNDING = 1e-3  # unit rows at most this far apart differ by rounding only
# A smaller scale of distances is rounding error: float32 rounds unit rows by up to
# 6e-8, hence squared distances of equal rows are below 1e-14.
MIN_SCALE = 1e-12
# maximum distance of near-duplicates, as a share of the median distance to the nearest
# row
NEAR_DUPLICATE = 0.3
# rows of the covariance that are squared at once, so that temporary arrays stay small
BLOCK = 1024
# Reasons: without a model nothing is known, so nothing can be far from it.
UNLABELLED = "nothing like it is labelled yet"
UNKNOWN = "far from what is known"


class Suggestions(np.ndarray):
    """Row numbers of the pool, most useful to label first.

    `reasons` holds one reason for each of them; `unreadable` lists the inputs of the
    pool that could not be read.
    """

    reasons: tuple[str, ...]
    unreadable: tuple["Skipped", ...]

    @classmethod
    def of(
        cls,
        rows: ArrayLike,
        reasons: Sequence[str],
        unreadable: Sequence["Skipped"] = (),
    ) -> "Suggestions":
        """Row numbers, their reasons, and the inputs without a row."""
        suggestions = np.asarray(rows, dtype=np.int64).view(cls)
        suggestions.reasons = tuple(reasons)
        suggestions.unreadable = tuple(unreadable)
        return suggestions

    def __array_finalize__(self, source: object) -> None:
        self.reasons = ()
        self.unreadable = ()


def suggest(
    X_pool: ArrayLike,
    n: int = 10,
    *,
    head: Decider | None = None,
    random_state: int = 0,
    blocks: Sequence[int] = (),
) -> Suggestions:
    """The n rows of an unlabelled pool that are most useful to label next, best first.

    The rows chosen reduce the posterior variance of a Gaussian process over the pool
    the most. With a fitted `head`, the process has observed its proxies, and the row j
    of the pool counts with the weight (1 - margin_j)^2, where the margin is the
    difference of the two largest class probabilities. Near-duplicates of a chosen or
    labelled row are not chosen, so fewer than n rows are returned where the pool has
    fewer distinct rows.

    A pool of more than 5,000 rows is represented by a random sample of 5,000, and the
    rows are chosen from a random sample of 20,000: time and memory do not grow further.
    `random_state` is the seed of these samples. `blocks` are the widths of the blocks
    of embeddings of several layers; by default, those of the head.

    >>> rows = suggest(np.array([[1, 0], [0.99, 0.01], [0, 1], [-1, 0.1]]), n=2)
    >>> rows.tolist(), rows.reasons
    ([1, 3], ('nothing like it is labelled yet', 'nothing like it is labelled yet'))
    """
    if head is not None and not blocks:
        blocks = head.imprinted.method.blocks
    return PreparedPool(X_pool, random_state, blocks).suggest(n, head)


class PreparedPool:
    """An unlabelled pool whose distances are computed once, for suggestions after every
    few labels.

    Its rows are the candidates, and the first `targets` of them represent the pool.
    """

    def __init__(
        self,
        X_pool: ArrayLike,
        random_state: int = 0,
        blocks: Sequence[int] = (),
    ):
        X = _pool_rows(X_pool)
        rng = np.random.default_rng(random_state)
        self.index = np.arange(len(X))
        if len(X) > TARGETS:
            self.index = rng.permutation(len(X))[:CANDIDATES]
        self.rows = X[self.index]
        self.targets = min(len(X), TARGETS)
        narrow = self.rows.astype(np.float32, copy=False)
        self.unit = unit_blocks(narrow, blocks)
        represented = self.unit[: self.targets]
        from_mean = squared_distances(represented, column_means(represented))
        scale = 2 * float(from_mean.mean())
        self.rate = 1 / scale if scale > MIN_SCALE else 1.0
        # (candidates, targets)
        self.kernel = _kernel(self.unit, represented, self.rate)
        self.duplicate = _duplicate_distance(self.kernel, self.rate)

    def suggest(
        self,
        n: int = 10,
        head: Decider | None = None,
        excluded: Array | None = None,
    ) -> Suggestions:
        """The n rows to label next; `excluded` marks rows of the pool never to
        choose.
        """
        count = min(check_int("suggest", "n", n), len(self.rows))
        if head is not None and head.tags:
            raise ParameterError(
                "suggest(head=...): suggestions are for one label per input; leave the"
                " tag model out."
            )
        eligible = np.ones(len(self.rows), bool)
        if excluded is not None:
            eligible = ~excluded[self.index]
        weights = np.ones(self.targets)
        explained = np.empty((len(self.rows), 0), np.float32)
        if head is not None:
            weights = _weights(head, self.rows[: self.targets])
            # proxies that are not points, such as weights, are no observations
            if head.imprinted.method.generator.points:
                rows, noise, is_exact = _observations(head)
                explained = self.explained(rows, noise)
                eligible &= ~self._is_labelled(rows[is_exact])
        chosen = self.select(count, weights, eligible, explained)
        variance = _variance(explained)
        is_far = variance[chosen] >= np.median(variance)
        reasons = _reasons(head, self.rows[chosen], is_far)
        return Suggestions.of(self.index[chosen], reasons)

    def _is_labelled(self, rows: Array) -> Array:
        """Which candidates are near-duplicates of labelled rows.  # (candidates,)"""
        if not len(rows):
            return np.zeros(len(self.rows), bool)
        closest = _kernel(self.unit, rows, self.rate).max(axis=1)
        # the kernel falls with the distance
        is_apart = closest < np.exp(-self.rate * self.duplicate)
        return np.asarray(~is_apart)

    def explained(self, rows: Array, noise: Array) -> Array:
        """The factor B of the covariance B B' that observations at unit rows explain.
        # (candidates, p)
        """
        K = _kernel(rows, rows, self.rate)
        K = K.astype(np.float64)
        factor = np.linalg.cholesky(K + np.diag(noise))
        coupling = _kernel(self.unit, rows, self.rate)
        solution = np.linalg.solve(factor, coupling.T)
        return np.asarray(solution.T.astype(np.float32))

    def _covariance(self, explained: Array) -> Array:
        """The covariance with the targets, given the labelled rows.  # (candidates,
        targets)
        """
        if not explained.shape[1]:
            return self.kernel
        V = explained @ explained[: self.targets].T
        return np.subtract(self.kernel, V, out=V)

    def select(
        self,
        n: int,
        weights: Array,
        eligible: Array,
        explained: Array,
    ) -> list[int]:
        """At most n of the eligible candidates, best first, without near-duplicates.

        Parameters
        ----------
        n : int
            The maximum number.
        weights : array (targets,)
            How much the variance of each target counts.
        eligible : array (candidates,) of bool
            Which candidates may be chosen.
        explained : array (candidates, p)
            The factor of the covariance that labelled rows explain.

        Returns
        -------
        list of int
            Indices of candidates.
        """
        V = self._covariance(explained)
        t = self.targets
        w = weights.astype(V.dtype)
        gain = _gains(V, w)
        U = np.empty((len(V), n), V.dtype)
        variance = _variance(explained)
        eligible = eligible.copy()
        chosen = list[int]()
        while len(chosen) < n and eligible.any():
            step = len(chosen)
            reduction = np.where(eligible, gain / (variance + NOISE), -np.inf)
            best = int(reduction.argmax())
            chosen.append(best)
            chosen_row = self.unit[best].astype(np.float64)
            distances = squared_distances(self.unit, chosen_row)
            eligible &= distances > self.duplicate
            eligible[best] = False

            # the column of the covariance, given the labelled and the chosen rows
            earlier = U[:, :step]
            column = np.exp(-self.rate * distances) - explained @ explained[best]
            column -= earlier @ earlier[best]
            # rounding can make a variance of zero negative
            deviation = np.sqrt(max(column[best], 0.0) + NOISE)
            u = (column / deviation).astype(V.dtype)

            # With V' = V - uu', the sums of w V'^2 are those of w V^2, minus twice
            # those of w V uu', plus those of w (uu')^2.
            weighted = w * u[:t]
            covered = V @ weighted - earlier @ (earlier[:t].T @ weighted)
            gain += u * (u * float(weighted @ u[:t]) - 2 * covered)
            variance = np.maximum(variance - u.astype(np.float64) ** 2, 0)
            U[:, step] = u
        return chosen


def _gains(V: Array, w: Array) -> Array:
    """The sum of w_j V_ij^2 for every row i.  # (candidates,) float64"""
    sums = []
    for start in range(0, len(V), BLOCK):
        block = V[start : start + BLOCK]
        sums.append(np.square(block) @ w)
    return np.concatenate(sums).astype(np.float64)


def _pool_rows(X_pool: ArrayLike) -> Array:
    """The rows of a pool in float32 or float64, checked."""
    X = np.asarray(to_numpy(X_pool))
    is_table = X.ndim == 2 and X.size
    if not is_table or X.dtype.kind not in "fiu":
        raise ParameterError(
            f"suggest(X_pool): X_pool must be rows of numbers (n, d), not {X.dtype} of"
            f" {X.shape}."
        )
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float32)
    if not all_finite(X):
        is_finite = np.isfinite(X).all(axis=1)
        row = int(np.argmin(is_finite))
        raise ParameterError(
            f"suggest(X_pool): all values must be finite; row {row} is not. Leave it"
            " out."
        )
    return X


def _kernel(
    left: Array,
    right: Array,
    rate: float,
) -> Array:
    """exp(-rate |a - b|^2) in the type of `left`.  # (n, m)"""
    centre = centre_of(right)
    dtype = left.dtype.type
    queries = lift_queries(left, centre, dtype)
    proxies = lift_proxies(right, centre, rate, dtype)
    K = kernel_rows(queries, proxies)
    # rounding can make the square of a small distance negative
    return np.minimum(K, 1, out=K)


def _duplicate_distance(kernel: Array, rate: float) -> float:
    """The maximum squared distance of near-duplicates, from the distances of targets to
    the nearest other target.
    """
    others = kernel[: kernel.shape[1]].copy()
    np.fill_diagonal(others, 0)
    closest = others.max(axis=1, initial=0)
    # a row without another one says nothing about distances
    closest = closest[closest > 0]
    nearest = -np.log(closest, dtype=np.float64) / rate
    # copies would make the median that of rounding errors
    apart = nearest[nearest > ROUNDING**2]
    if not len(apart):
        return ROUNDING**2
    usual = float(np.median(apart))
    return max(ROUNDING**2, NEAR_DUPLICATE**2 * usual)


def _observations(head: Decider) -> tuple[Array, Array, Array]:
    """The proxies as noisy observations: unit rows, noise, and whether all rows behind
    a proxy equal it.
    """
    proxies = head.imprinted.proxies
    blocks = head.imprinted.method.blocks
    rows = unit_blocks(proxies.weights.astype(np.float32), blocks)
    # of unit rows, the variance is 1 minus the squared length of the mean
    mean = rows.mean(axis=0, dtype=np.float64)
    scale = 1 - float(np.square(mean).sum()) or 1.0
    # the squared length of a proxy is the number of its blocks, of these rows it is 1
    spread = proxies.spread / (len(blocks) or 1)
    noise = NOISE / proxies.mass + SPREAD * spread / (2 * scale)
    rounding = ROUNDING**2 * squared_norms(proxies.weights)
    return rows, noise, proxies.spread <= rounding


def _variance(explained: Array) -> Array:
    """The posterior variance of every candidate, 1 far from all labelled rows.  #
    (candidates,) float64
    """
    return np.asarray(np.maximum(1 - squared_norms(explained), 0))


def _weights(head: Decider, rows: Array) -> Array:
    """(1 - margin)^2 of every row, 1 where the model has a single class.  #
    (targets,)
    """
    P = _probabilities(head, rows)
    if P.shape[1] < 2:
        return np.ones(len(rows))
    # the last two columns are the second largest and the largest value
    top = np.partition(P, -2, axis=1)
    margin = top[:, -1] - top[:, -2]
    return np.asarray((1 - margin) ** 2)


def _probabilities(head: Decider, rows: Array) -> Array:
    """The probabilities of all classes.  # (n, classes) float64"""
    Q = rows.astype(head.imprinted.dtype, copy=False)
    P = head.probabilities(head.scores(Q))
    return np.asarray(P, dtype=np.float64)


def _reasons(
    head: Decider | None,
    rows: Array,
    far: Array,
) -> list[str]:
    """One reason per row: its posterior variance is large for the pool, or two classes
    compete for it.
    """
    if head is None:
        return [UNLABELLED] * len(rows)
    if len(head.classes) < 2 or not len(rows):
        return [UNKNOWN] * len(rows)
    P = _probabilities(head, rows)
    order = np.argsort(-P, axis=1, kind="stable")
    top = order[:, :2]
    reasons = []
    for is_far, (first, second) in zip(far, top):
        between = f"between {head.classes[first]} and {head.classes[second]}"
        reasons.append(UNKNOWN if is_far else between)
    return reasons
