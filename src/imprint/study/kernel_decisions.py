"""Decisions by `kernel`, many together.

Decisions with the same proxies share the inner products of the proxies, for every
gamma, noise and balance, and the distances of test rows. Those that differ only in
`norm_inf` have the same linear system, which is solved once.

The 1,042 decisions of `paper/all --beside kernel` on MNIST take 6.8 s of CPU time for
MobileNet v1 0.25 and 28.3 s for ResNet-50; a `Head` for each takes 12.6 and 52.9 s
(benchmarks/study.py kernel, 18 November 2026).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from typing import NamedTuple, TypeAlias, cast

import numpy as np

from imprint.aggregators.kernel import Kernel, class_weights
from imprint.core.arrays import Array, Proxies, State
from imprint.core.errors import ParameterError
from imprint.gaussian_process.gaussian import (
    MAX_RATE,
    centre_of,
    is_precise_in_float32,
    lift_proxies,
    lift_queries,
)
from imprint.gaussian_process.scale import scale_for
from imprint.head.head import build_proxies
from imprint.kernels.rows import squared_norms
from imprint.kernels.scores import Counts, count_decisions
from imprint.normalisers._base import Normaliser
from imprint.study.proxies import UnitProxies
from imprint.study.sharing import KERNEL_ROUNDING, ProxySpec
from imprint.study.work_graph import CountedDecisions, Decision, TaskSplit

# of a system that is solved here; `Head` solves larger ones, which need too much memory
MAX_PROXIES = 8192
# of a matrix of proxies x proxies, processed at a time, so that they stay in the cache
BLOCK_ROWS = 128
MAX_DISTANCES = 2**20  # between test rows and proxies, in memory at a time

ProxyKey: TypeAlias = tuple[ProxySpec, Normaliser, TaskSplit]


class SolvedDecision(NamedTuple):
    """A decision and its solved system: scores are `coefficients` times exp(-rate |q -
    w|^2).
    """

    decision: Decision
    rate: float
    coefficients: Array  # (classes, proxies) float64
    dtype: type  # sufficient for the kernel values; their sums cancel, and are float64


class KernelDecisions:
    """Decisions by `kernel` of one unit."""

    def __init__(self, proxies: UnitProxies, queries: Array) -> None:
        self.proxies = proxies
        self.queries = queries
        self._sums: dict[object, State] = {}
        self._lifted = cache(partial(_lift, queries))

    def can_decide(self, decision: Decision) -> bool:
        """Whether the system of a decision is small enough, and its rate far from the
        limits of floats.
        """
        if self.proxies.count(decision) > MAX_PROXIES:
            return False
        gamma = np.float64(_kernel(decision).gamma)
        # The scale of equal rows is 0.
        with np.errstate(over="ignore", divide="ignore"):
            rate = gamma / self._scale(decision)
        return bool(1 / MAX_RATE < rate < MAX_RATE)

    def _scale(self, decision: Decision) -> float:
        """The scale of distances, as `Kernel.prepare` computes it."""
        key = (decision.spec.norm_pre, decision.split)
        if key not in self._sums:
            method = decision.method
            statistics = []
            for c in decision.split.classes:
                statistics.append(self.proxies.row_statistics(method, c))
            self._sums[key] = method.aggregator.merge(statistics)
        return scale_for(self._sums[key], self.proxies.count(decision))

    def decide(self, decisions: Iterable[Decision]) -> Iterator[CountedDecisions]:
        """Compute decisions, those with the same proxies together."""
        by_proxies: dict[ProxyKey, list[Decision]] = defaultdict(list)
        for d in decisions:
            by_proxies[d.spec, d.norm_post, d.split].append(d)
        for key, same_proxies in by_proxies.items():
            proxies = self._proxies(*key)
            # Solved systems whose distances to test rows are the same.
            by_queries: dict[tuple[Normaliser, type], list[SolvedDecision]] = (
                defaultdict(list)
            )
            for solved in self._solve(proxies, same_proxies):
                by_queries[solved.decision.norm_inf, solved.dtype].append(solved)
            for (norm_inf, dtype), group in by_queries.items():
                yield from self._count(proxies.weights, norm_inf, dtype, group)

    def _proxies(
        self,
        spec: ProxySpec,
        norm_post: Normaliser,
        split: TaskSplit,
    ) -> Proxies:
        """The proxies of a task split as one matrix."""
        parts = self.proxies.parts(spec, split, norm_post)
        states = [self.proxies.states[c, spec] for c in split.classes]
        weights = np.concatenate([part.rows for part in parts])
        return build_proxies(states, weights, [part.size for part in parts])

    def _solve(
        self,
        proxies: Proxies,
        decisions: Sequence[Decision],
    ) -> Iterator[SolvedDecision]:
        """Solve the systems of decisions with the same proxies, one for each
        aggregator.
        """
        # takes matrices in Fortran order; transposes have it and are not copied
        from scipy.linalg.blas import dsyrk

        by_aggregator: dict[Kernel, list[Decision]] = defaultdict(list)
        for decision in decisions:
            by_aggregator[_kernel(decision)].append(decision)
        centred = proxies.weights.astype(np.float64)
        centred -= centred.mean(axis=0)
        # (p, p) the lower triangle of centred @ centred.T
        products = np.asarray(dsyrk(1.0, centred.T, trans=True)).T
        lengths = squared_norms(centred)
        last_aggregator = next(reversed(by_aggregator))
        for aggregator, same_system in by_aggregator.items():
            scale = self._scale(same_system[0])
            rate = aggregator.gamma / scale
            # The last system may overwrite the products.
            is_last = aggregator is last_aggregator
            out = products if is_last else np.empty_like(products)
            K = _gram(products, lengths, rate, out)
            noise = aggregator.noise_of(proxies, scale)
            np.fill_diagonal(K, 1 + noise)
            weights = class_weights(proxies, aggregator.balance)
            solution = _solve_in_place(K, proxies.labels, str(aggregator))
            coefficients = solution.T * weights[:, None]
            dtype = self._kernel_type(rate * lengths.max(), coefficients)
            for decision in same_system:
                yield SolvedDecision(decision, rate, coefficients, dtype)

    def _kernel_type(self, largest: float, coefficients: Array) -> type:
        """The type of kernel values: float32 only where the error of scores stays
        small.
        """
        if self.queries.dtype != np.float32:
            return np.float64
        is_precise = is_precise_in_float32(largest, coefficients)
        return np.float32 if is_precise else np.float64

    def _count(
        self,
        proxies: Array,
        norm_inf: Normaliser,
        dtype: type,
        group: Sequence[SolvedDecision],
    ) -> Iterator[CountedDecisions]:
        """Compute the distances of test rows to proxies once, then count each decision
        of a group.
        """
        queries, centre = self._lifted(norm_inf, dtype)
        lifted = lift_proxies(proxies, centre, 1.0, dtype)
        split = group[0].decision.split
        # A copy only if the task leaves out test rows.
        if len(split.rows) != len(queries):
            queries = queries[split.rows]
        counts = [Counts.of(1, len(split.classes)) for _ in group]
        step = max(16, MAX_DISTANCES // len(lifted))
        for start in range(0, len(split.rows), step):
            D = lifted @ queries[start : start + step].T  # -|q - w|^2
            truth = split.truth[start : start + step]
            for solved, count in zip(group, counts):
                # The last decision may overwrite the distances.
                out = D if solved is group[-1] else None
                K = np.multiply(D, dtype(solved.rate), out=out)
                np.exp(K, out=K)
                # (classes, rows)
                scores = solved.coefficients @ K.astype(np.float64, copy=False)
                rounded = scores.astype(self.queries.dtype)
                count_decisions(rounded, truth, KERNEL_ROUNDING, count)
        for solved, count in zip(group, counts):
            yield CountedDecisions([solved.decision], count, [len(proxies)])


def _kernel(decision: Decision) -> Kernel:
    """The aggregator of a decision by `kernel`."""
    return cast(Kernel, decision.aggregator)


def _lift(
    queries: Array,
    norm_inf: Normaliser,
    dtype: type,
) -> tuple[Array, Array]:
    """The normalised test rows as factors of squared distances (see `lift_queries`),
    and their centre.
    """
    Q = norm_inf.apply(queries)
    centre = centre_of(Q)
    return lift_queries(Q, centre, dtype), centre


def _gram(
    products: Array,
    lengths: Array,
    rate: float,
    out: Array,
) -> Array:
    """Values exp(-rate |w_i - w_j|^2), given products and squared lengths; only the
    lower triangle.  # (p, p)
    """
    for start in range(0, len(out), BLOCK_ROWS):
        stop = start + BLOCK_ROWS
        # -rate |w_i - w_j|^2 = 2 rate w_i w_j - rate |w_j|^2 - rate |w_i|^2
        block = out[start:stop, :stop]
        np.multiply(products[start:stop, :stop], 2 * rate, out=block)
        block -= rate * lengths[:stop]
        block -= rate * lengths[start:stop, None]
        np.exp(block, out=block)
    return out


def _solve_in_place(
    K: Array,
    labels: Array,
    name: str,
) -> Array:
    """K^-1 Y for one-hot labels Y, given the lower triangle of K, which is overwritten.
    # (p, classes)
    """
    from scipy.linalg.lapack import dposv

    classes = np.arange(labels[-1] + 1)
    Y = np.asfortranarray(labels[:, None] == classes, dtype=np.float64)
    # K.T is in Fortran order; its upper triangle is the lower one of K.
    _, A, info = dposv(K.T, Y, overwrite_a=True, overwrite_b=True)
    if info:
        raise ParameterError(
            f"{name}: proxies lie too close together for this noise; use a larger one."
        )
    return np.asarray(A)
