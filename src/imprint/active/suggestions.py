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
from typing import TYPE_CHECKING, Any

import numpy as np

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
        cls, rows: Any, reasons: Sequence[str], unreadable: Sequence["Skipped"] = ()
    ) -> "Suggestions":
        """Row numbers, their reasons, and the inputs without a row."""
        suggestions = np.asarray(rows, dtype=np.int64).view(cls)
        suggestions.reasons, suggestions.unreadable = tuple(reasons), tuple(unreadable)
        return suggestions

    def __array_finalize__(self, source: Any) -> None:
        self.reasons, self.unreadable = (), ()


def suggest(
    X_pool: Any,
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

    def __init__(self, X_pool: Any, random_state: int = 0, blocks: Sequence[int] = ()):
        X, rng = _pool_rows(X_pool), np.random.default_rng(random_state)
        self.index = (
            rng.permutation(len(X))[:CANDIDATES]
            if len(X) > TARGETS
            else np.arange(len(X))
        )
        self.rows, self.targets = X[self.index], min(len(X), TARGETS)
        self.unit = unit_blocks(self.rows.astype(np.float32, copy=False), blocks)
        represented = self.unit[: self.targets]
        scale = 2 * float(
            squared_distances(represented, column_means(represented)).mean()
        )
        self.rate = 1 / scale if scale > 1e-12 else 1.0
        # (candidates, targets)
        self.kernel = _kernel(self.unit, represented, self.rate)
        self.duplicate = _duplicate_distance(self.kernel, self.rate)

    def suggest(
        self, n: int = 10, head: Decider | None = None, excluded: Array | None = None
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
        eligible = (
            np.ones(len(self.rows), bool) if excluded is None else ~excluded[self.index]
        )
        weights, explained = (
            np.ones(self.targets),
            np.empty((len(self.rows), 0), np.float32),
        )
        if head is not None:
            weights = _weights(head, self.rows[: self.targets])
            if head.imprinted.method.generator.points:
                rows, noise, labelled = _observations(head)
                explained = self.explained(rows, noise)
                if labelled.any():
                    closest = _kernel(self.unit, rows[labelled], self.rate).max(axis=1)
                    eligible &= closest < np.exp(-self.rate * self.duplicate)
        chosen, variance = (
            self.select(count, weights, eligible, explained),
            _variance(explained),
        )
        far = variance[chosen] >= np.median(variance)
        return Suggestions.of(
            self.index[chosen], _reasons(head, self.rows[chosen], far)
        )

    def explained(self, rows: Array, noise: Array) -> Array:
        """The factor B of the covariance B B' that observations at unit rows explain.
        # (candidates, p)
        """
        K = _kernel(rows, rows, self.rate).astype(np.float64)
        factor = np.linalg.cholesky(K + np.diag(noise))
        return np.asarray(
            np.linalg.solve(factor, _kernel(self.unit, rows, self.rate).T).T.astype(
                np.float32
            )
        )

    def select(
        self, n: int, weights: Array, eligible: Array, explained: Array
    ) -> list[int]:
        """At most n of the eligible candidates, best first, without near-duplicates."""
        V, t = self.kernel, self.targets
        if explained.shape[1]:
            V = explained @ explained[:t].T
            np.subtract(self.kernel, V, out=V)
        w = weights.astype(V.dtype)
        blocks = [V[start : start + BLOCK] for start in range(0, len(V), BLOCK)]
        gain = np.concatenate([np.square(block) @ w for block in blocks]).astype(
            np.float64
        )
        U, variance = np.empty((len(V), n), V.dtype), _variance(explained)
        eligible, chosen = eligible.copy(), list[int]()
        while len(chosen) < n and eligible.any():
            step = len(chosen)
            best = int(np.where(eligible, gain / (variance + NOISE), -np.inf).argmax())
            chosen.append(best)
            distances = squared_distances(self.unit, self.unit[best].astype(np.float64))
            eligible &= distances > self.duplicate
            eligible[best] = False
            column = np.exp(-self.rate * distances) - explained @ explained[best]
            column -= U[:, :step] @ U[best, :step]
            u = (column / np.sqrt(max(column[best], 0.0) + NOISE)).astype(V.dtype)
            seen = w * u[:t]
            covered = V @ seen - U[:, :step] @ (U[:t, :step].T @ seen)
            gain += u * (u * float(seen @ u[:t]) - 2 * covered)
            variance = np.maximum(variance - u.astype(np.float64) ** 2, 0)
            U[:, step] = u
        return chosen


def _pool_rows(X_pool: Any) -> Array:
    X = np.asarray(to_numpy(X_pool))
    if X.ndim != 2 or X.dtype.kind not in "fiu" or not X.size:
        raise ParameterError(
            f"suggest(X_pool): X_pool must be rows of numbers (n, d), not {X.dtype} of"
            f" {X.shape}."
        )
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float32)
    if not all_finite(X):
        row = int(np.flatnonzero(~np.isfinite(X).all(axis=1))[0])
        raise ParameterError(
            f"suggest(X_pool): all values must be finite; row {row} is not. Leave it"
            " out."
        )
    return X


def _kernel(left: Array, right: Array, rate: float) -> Array:
    """exp(-rate |a - b|^2) in the type of `left`.  # (n, m)"""
    centre, dtype = centre_of(right), left.dtype.type
    K = kernel_rows(
        lift_queries(left, centre, dtype), lift_proxies(right, centre, rate, dtype)
    )
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
    apart = nearest[nearest > ROUNDING**2]
    return (
        max(ROUNDING**2, NEAR_DUPLICATE**2 * float(np.median(apart)))
        if len(apart)
        else ROUNDING**2
    )


def _observations(head: Decider) -> tuple[Array, Array, Array]:
    """The proxies as noisy observations: unit rows, noise, and whether all rows behind
    a proxy equal it.
    """
    proxies = head.imprinted.proxies
    blocks = head.imprinted.method.blocks
    rows = unit_blocks(proxies.weights.astype(np.float32), blocks)
    scale = 1 - float(np.square(rows.mean(axis=0, dtype=np.float64)).sum()) or 1.0
    # the squared length of a proxy is the number of its blocks, of these rows it is 1
    spread = proxies.spread / (len(blocks) or 1)
    noise = NOISE / proxies.mass + SPREAD * spread / (2 * scale)
    return rows, noise, proxies.spread <= ROUNDING**2 * squared_norms(proxies.weights)


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
    return np.asarray((1 - (top[:, -1] - top[:, -2])) ** 2)


def _probabilities(head: Decider, rows: Array) -> Array:
    return np.asarray(
        head.probabilities(head.scores(rows.astype(head.imprinted.dtype, copy=False))),
        dtype=np.float64,
    )


def _reasons(head: Decider | None, rows: Array, far: Array) -> list[str]:
    """One reason per row: its posterior variance is large for the pool, or two classes
    compete for it.
    """
    if head is None:
        return [UNLABELLED] * len(rows)
    if len(head.classes) < 2 or not len(rows):
        return [UNKNOWN] * len(rows)
    top = np.argsort(-_probabilities(head, rows), axis=1, kind="stable")[:, :2]
    names = [" and ".join(str(head.classes[c]) for c in pair) for pair in top]
    return [
        UNKNOWN if is_far else f"between {name}" for is_far, name in zip(far, names)
    ]
