"""Decisions by `kernel`, many together.

A linear system is solved once for all decisions that use the same proxies, whatever their `norm_inf`; systems of the
same proxies share the inner products of these, whatever their gamma, noise and balance. Test rows are compared once
with proxies that several tasks use.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import DTypeLike

from imprint.aggregators.kernel import Kernel, class_weights
from imprint.core.errors import ParameterError
from imprint.core.types import Array, Proxies, State
from imprint.gaussian_process.gaussian import ERROR, MODERATE, centre_of, lift_proxies, lift_queries
from imprint.gaussian_process.update import scale_for
from imprint.kernels.decisions import Counts, count_decisions
from imprint.kernels.rows import squared_norms
from imprint.normalisers._base import Normaliser
from imprint.study.proxies import ClassProxies, UnitProxies
from imprint.study.sharing import KERNEL_ROUNDING
from imprint.study.work_graph import Decision, QueryGroup, WorkGraph

LARGEST = 8192
"""Proxies up to which a matrix of products is held; `Head` solves larger systems."""
BLOCK = 128  # rows of such a matrix processed at a time, so that they stay in the cache
PROXIES = 1024  # compared with test rows at a time; more if one decision has more
DISTANCES = 2**20  # between test rows and proxies, held at a time


class KernelSystem(NamedTuple):
    """A solved system: scores are `by_class` times exp(-rate |q - w|^2)."""

    classes: list[ClassProxies]
    rate: float
    by_class: Array  # (classes, proxies) float64
    dtype: type  # in which kernels are precise enough; their sums cancel, and are float64


class KernelDecisions:
    """The decisions by `kernel` of a work graph."""

    def __init__(self, graph: WorkGraph, proxies: UnitProxies, queries: Array) -> None:
        self.graph, self.proxies, self.queries = graph, proxies, queries
        self._sums: dict[object, State] = {}

    def can_decide(self, number: int) -> bool:
        """Whether a system is small enough to be held whole, and its rate far from the limits of floats."""
        decision = self.graph.decisions[number]
        if self.proxies.count(decision) > LARGEST:
            return False
        with np.errstate(over="ignore", divide="ignore"):
            rate = np.float64(cast(Kernel, decision.aggregator).gamma) / self._scale(number)
        return bool(1 / MODERATE < rate < MODERATE)

    def _scale(self, number: int) -> float:
        """The scale of distances, as `Kernel.prepare` computes it."""
        decision = self.graph.decisions[number]
        key = self.graph.specs[decision.spec].norm_pre, decision.split
        if key not in self._sums:
            method, classes = self.graph.methods[number], self.graph.splits[decision.split].classes
            self._sums[key] = decision.aggregator.merge([self.proxies.row_statistics(method, c) for c in classes])
        return scale_for(self._sums[key], self.proxies.count(decision))

    def count(self, numbers: Sequence[int]) -> dict[int, tuple[Counts, int]]:
        """For each decision, how many test rows of each class it gives to which class, and its number of proxies."""
        graph, systems = self.graph, self._solve(numbers)
        alike: dict[tuple[Normaliser, type], list[int]] = defaultdict(list)
        for i, system in systems.items():
            alike[graph.decisions[i].norm_inf, system.dtype].append(i)
        counts = {i: (Counts.of(1, len(system.by_class)), system.by_class.shape[1]) for i, system in systems.items()}
        for (norm_inf, dtype), members in alike.items():
            Q = norm_inf.apply(self.queries)
            centre = centre_of(Q)
            left = lift_queries(Q, centre, dtype)
            for batch in self._batches({i: systems[i] for i in members}):
                for i, scores in self._scores(batch, left, centre):
                    scores = scores.astype(self.queries.dtype, copy=False)
                    count_decisions(scores, self._truth[graph.decisions[i].split], KERNEL_ROUNDING, counts[i][0])
        return counts

    def _solve(self, numbers: Sequence[int]) -> dict[int, KernelSystem]:
        """The solved system of each decision; decisions that differ only in `norm_inf` have the same."""
        by_proxies: dict[object, dict[Kernel, list[int]]] = defaultdict(lambda: defaultdict(list))
        for i in numbers:
            d = self.graph.decisions[i]
            by_proxies[d.spec, d.norm_post, d.split][cast(Kernel, d.aggregator)].append(i)
        systems = {}
        for by_aggregator in by_proxies.values():
            (first, *_), *_ = by_aggregator.values()
            problem = _Problem(self.proxies, self.graph, self.graph.decisions[first])
            for left, (aggregator, same) in zip(range(len(by_aggregator))[::-1], by_aggregator.items()):
                system = problem.solve(aggregator, self._scale(same[0]), self.queries.dtype, in_place=not left)
                systems.update(dict.fromkeys(same, system))
        return systems

    @cached_property
    def _related(self) -> list[int]:
        """For each split, the first of the splits that share classes, directly or through others."""
        first: list[int] = []
        owner: dict[int, int] = {}
        for i, split in enumerate(self.graph.splits):
            first.append(i)
            first[i] = min(first[owner.setdefault(c, i)] for c in split.classes)
        return first

    @cached_property
    def _groups(self) -> dict[int, list[QueryGroup]]:
        """For related splits, their test rows by the splits that they belong to."""
        related: dict[int, list[int]] = defaultdict(list)
        for i, first in enumerate(self._related):
            related[first].append(i)
        return {first: self.graph.query_groups(splits) for first, splits in related.items()}

    @cached_property
    def _truth(self) -> list[Array]:
        """For each split, the true classes of its test rows, one query group after the other."""
        return [
            np.concatenate([split.truth_of(group.rows) for group in self._groups[first] if i in group.splits])
            for i, (split, first) in enumerate(zip(self.graph.splits, self._related))
        ]

    def _batches(self, systems: dict[int, KernelSystem]) -> Iterator[dict[int, KernelSystem]]:
        """Systems of related splits, in groups of up to `PROXIES` different proxies; similar proxies are together."""

        def similar(i: int) -> tuple[object, ...]:
            decision = self.graph.decisions[i]
            norm_pre, _, seed = self.graph.specs[decision.spec]
            return self._related[decision.split], str(norm_pre), str(decision.norm_post), seed or 0, decision.spec

        batch: dict[int, KernelSystem] = {}
        for i in sorted(systems, key=similar):
            together = {**batch, i: systems[i]}
            unrelated = batch and similar(i)[0] != similar(next(iter(batch)))[0]
            if batch and (unrelated or sum(part.size for part in _largest(together.values())) > PROXIES):
                yield batch
                together = {i: systems[i]}
            batch = together
        yield batch

    def _scores(self, batch: dict[int, KernelSystem], queries: Array, centre: Array) -> Iterator[tuple[int, Array]]:
        """The scores of test rows, in the order of `_truth`, by systems of related splits.  # (classes, rows)"""
        dtype, splits = queries.dtype, {i: int(self.graph.split[i]) for i in batch}
        scores: dict[int, list[Array]] = {i: [] for i in batch}
        largest = _largest(batch.values())
        lifted = lift_proxies(np.concatenate([part.rows for part in largest]), centre, 1.0, dtype)
        span = _spans(largest)
        for rows, members in self._groups[self._related[next(iter(splits.values()))]]:
            here = [i for i in batch if splits[i] in members]
            if not here:
                continue
            parts = _largest(batch[i] for i in here)
            right, here_span = lifted[_positions(parts, span)], _spans(parts)
            step = max(16, DISTANCES // len(right))
            for start in range(0, len(rows), step):
                D = right @ queries[rows[start : start + step]].T  # (proxies, rows) -|q - w|^2
                for i in here:
                    K = D[_positions(batch[i].classes, here_span)]
                    K *= dtype.type(batch[i].rate)
                    scores[i].append(batch[i].by_class @ np.exp(K, out=K).astype(np.float64, copy=False))
        return ((i, np.concatenate(blocks, axis=1)) for i, blocks in scores.items())


class _Problem:
    """The systems of the proxies of one decision, which differ in gamma, noise and balance."""

    def __init__(self, proxies: UnitProxies, graph: WorkGraph, decision: Decision) -> None:
        self.parts = proxies.parts(decision.spec, decision.split, decision.norm_post)
        states = [proxies.states[c, decision.spec] for c in graph.splits[decision.split].classes]
        labels = np.repeat(np.arange(len(self.parts)), [part.size for part in self.parts])
        mass, spread = (_per_proxy(states, self.parts, *entry) for entry in (("mass", 1.0), ("spread", 0.0)))
        self.proxies = Proxies(np.concatenate([part.rows for part in self.parts]), labels, mass, spread)
        about = self.proxies.weights.astype(np.float64)
        about -= about.mean(axis=0)
        self.lengths = squared_norms(about)
        self.products = _products(about)

    def solve(self, aggregator: Kernel, s: float, dtype: DTypeLike, in_place: bool) -> KernelSystem:
        """The solved system, as `Kernel.prepare` solves it for queries of a type; in place, it is the last one."""
        rate, labels = aggregator.gamma / s, self.proxies.labels
        K = self._gram(rate, in_place)
        np.fill_diagonal(K, 1 + aggregator.noise_of(self.proxies, s))
        Y = np.asfortranarray(labels[:, None] == np.arange(len(self.parts)), dtype=np.float64)
        by_class = _solved(K, Y, str(aggregator)).T * class_weights(self.proxies, aggregator.balance)[:, None]
        narrow = dtype == np.float32 and self._precise_in_float32(rate, by_class)
        return KernelSystem(self.parts, rate, by_class, np.float32 if narrow else np.float64)

    def _gram(self, rate: float, in_place: bool) -> Array:
        """exp(-rate |w_i - w_j|^2), of which only the lower triangle is computed.  # (p, p)"""
        K, lengths = self.products if in_place else np.empty_like(self.products), rate * self.lengths
        for start in range(0, len(K), BLOCK):
            stop = start + BLOCK
            block = np.multiply(self.products[start:stop, :stop], 2 * rate, out=K[start:stop, :stop])
            block -= lengths[:stop]
            block -= lengths[start:stop, None]
            np.exp(block, out=block)
        return K

    def _precise_in_float32(self, rate: float, by_class: Array) -> bool:
        """Whether rounded exponents shift no score by more than `ERROR`; see `gaussian.for_float32`."""
        reach = 1 + rate * self.lengths.max()
        length = np.sqrt(np.einsum("cp,cp->c", by_class, by_class).max())
        return bool(3 * 2**-24 * reach * length <= ERROR)


def _largest(systems: Iterable[KernelSystem]) -> list[ClassProxies]:
    """The largest of the proxies from each block; the others are its first rows."""
    largest: dict[object, ClassProxies] = {}
    for part in (part for system in systems for part in system.classes):
        key = part.block, part.unit
        if key not in largest or part.size > largest[key].size:
            largest[key] = part
    return list(largest.values())


def _spans(parts: Sequence[ClassProxies]) -> dict[object, Array]:
    """The positions of the proxies from each block, one block after the other."""
    ends = np.cumsum([part.size for part in parts]).tolist()
    return {(part.block, part.unit): np.arange(end - part.size, end) for part, end in zip(parts, ends)}


def _positions(parts: Iterable[ClassProxies], spans: dict[object, Array]) -> Array:
    """The positions of proxies, given those of the largest from each block."""
    return np.concatenate([spans[part.block, part.unit][: part.size] for part in parts])


def _per_proxy(states: Sequence[State], parts: Sequence[ClassProxies], name: str, default: float) -> Array:
    """One number for every proxy, from the states that have it."""
    return np.concatenate([s[name] if name in s else np.full(p.size, default) for s, p in zip(states, parts)])


def _products(X: Array) -> Array:
    """The inner products of rows; only the lower triangle.  # (n, n) float64"""
    from scipy.linalg.blas import dsyrk

    return np.asarray(dsyrk(1.0, X.T, trans=True)).T  # X.T is Fortran-ordered, so nothing is copied


def _solved(K: Array, Y: Array, name: str) -> Array:
    """K^-1 Y, given the lower triangle of K; both are overwritten.  # (p, classes)"""
    from scipy.linalg.lapack import dposv

    _, A, info = dposv(K.T, Y, overwrite_a=True, overwrite_b=True)  # K.T is Fortran-ordered, so nothing is copied
    if info:
        raise ParameterError(f"{name}: proxies lie too close together for this noise; use a larger one.")
    return np.asarray(A)
