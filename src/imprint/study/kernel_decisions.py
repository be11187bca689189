"""Decisions by `kernel`, many together.

Decisions that differ only in `norm_inf` have the same linear system, which is solved once. Systems of the same proxies
share the inner products of these, whatever their gamma, noise and balance. Test rows are compared once with the proxies
of a task and of all tasks with some of its classes, and with the largest k of nested generators.

The 1,042 decisions of `paper/all --beside kernel` on MNIST take 6.5 s of CPU time for MobileNet v1 0.25 and 23.7 s for
ResNet-50; a `Head` for each takes 11.1 and 48.1 s. The distinct factors, products and kernels alone take 4.9 and 18.3 s
(benchmarks/study.py kernel, 16 November 2026).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple, cast

import numpy as np

from imprint.aggregators.kernel import Kernel, class_weights
from imprint.core.errors import ParameterError
from imprint.core.types import Array, Proxies, State
from imprint.gaussian_process.gaussian import ERROR, MODERATE, centre_of, lift_proxies, lift_queries
from imprint.gaussian_process.update import scale_for
from imprint.kernels.decisions import Counts, count_decisions
from imprint.kernels.rows import squared_norms
from imprint.normalisers._base import Normaliser
from imprint.study.proxies import ClassProxies, UnitProxies
from imprint.study.sharing import KERNEL_ROUNDING, NESTED
from imprint.study.work_graph import DecisionCounts, WorkGraph

LARGEST = 8192
"""Proxies up to which a matrix of products is held; `Head` solves larger systems."""
BLOCK = 128  # rows of such a matrix processed at a time, so that they stay in the cache
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
        self._lifted, self._hosts, self._rows = cache(self._lift), cache(self._find_hosts), cache(self._find_rows)

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

    def count(self, numbers: Sequence[int]) -> dict[int, DecisionCounts]:
        """The results of some decisions."""
        same_rows: dict[object, list[int]] = defaultdict(list)
        for i in numbers:
            decision = self.graph.decisions[i]
            norm_pre, generator, seed = self.graph.specs[decision.spec]
            key = (norm_pre, seed) if type(generator) in NESTED else decision.spec
            same_rows[key, decision.norm_post].append(i)
        results = {}
        for group in (group for alike in same_rows.values() for group in self._by_task(alike)):
            systems = self._solve(group)
            compared: dict[tuple[Normaliser, type], dict[int, KernelSystem]] = defaultdict(dict)
            for i in group:
                compared[self.graph.decisions[i].norm_inf, systems[i].dtype][i] = systems[i]
            for (norm_inf, dtype), members in compared.items():
                for i, scores in self._scores(norm_inf, dtype, members):
                    counts, truth = Counts.of(1, len(scores)), self.graph.splits[self.graph.decisions[i].split].truth
                    count_decisions(scores.astype(self.queries.dtype), truth, KERNEL_ROUNDING, counts)
                    results[i] = DecisionCounts.of(counts, 0, systems[i].by_class.shape[1])
        return results

    def _by_task(self, numbers: Sequence[int]) -> Iterable[list[int]]:
        """Groups of decisions: a task and those with some of its classes."""
        hosts = self._hosts(frozenset(self.graph.decisions[i].split for i in numbers))
        groups: dict[int, list[int]] = defaultdict(list)
        for i in numbers:
            groups[hosts[self.graph.decisions[i].split]].append(i)
        return groups.values()

    def _find_hosts(self, splits: frozenset[int]) -> dict[int, int]:
        """For each split, the one with the most classes that has all of its classes."""
        classes = {i: {*self.graph.splits[i].classes} for i in sorted(splits)}
        return {
            i: max((j for j in classes if classes[i] <= classes[j]), key=lambda j: len(classes[j])) for i in classes
        }

    def _find_rows(self, splits: frozenset[int]) -> tuple[Array, dict[int, Array]]:
        """The test rows of some splits, and for each split the positions of its rows among them."""
        by_split = {i: self.graph.splits[i].rows for i in splits}
        rows = np.unique(np.concatenate([*by_split.values()]))
        return rows, {i: np.searchsorted(rows, of_split) for i, of_split in by_split.items()}

    def _solve(self, numbers: Sequence[int]) -> dict[int, KernelSystem]:
        """The solved system of each decision."""
        by_proxies: dict[object, dict[Kernel, list[int]]] = defaultdict(lambda: defaultdict(list))
        for i in numbers:
            spec, norm_post, _, aggregator, split = self.graph.decisions[i]
            by_proxies[spec, norm_post, split][cast(Kernel, aggregator)].append(i)
        systems = {}
        for by_aggregator in by_proxies.values():
            (first, *_), *_ = by_aggregator.values()
            parts, proxies = self._proxies(first)
            about = proxies.weights.astype(np.float64)
            about -= about.mean(axis=0)
            products, lengths = _products(about), squared_norms(about)
            for aggregator, same in by_aggregator.items():
                s = self._scale(same[0])
                rate = aggregator.gamma / s
                out = np.empty_like(products) if aggregator is not next(reversed(by_aggregator)) else products
                K = _gram(products, lengths, rate, out)
                np.fill_diagonal(K, 1 + aggregator.noise_of(proxies, s))
                weights = class_weights(proxies, aggregator.balance)
                by_class = _solved(K, proxies.labels, str(aggregator)).T * weights[:, None]
                narrow = self.queries.dtype == np.float32 and _precise_in_float32(rate * lengths.max(), by_class)
                system = KernelSystem(parts, rate, by_class, np.float32 if narrow else np.float64)
                systems.update(dict.fromkeys(same, system))
        return systems

    def _proxies(self, number: int) -> tuple[list[ClassProxies], Proxies]:
        """The proxies of a decision."""
        decision = self.graph.decisions[number]
        parts = self.proxies.parts(decision.spec, decision.split, decision.norm_post)
        states = [self.proxies.states[c, decision.spec] for c in self.graph.splits[decision.split].classes]
        labels = np.repeat(np.arange(len(parts)), [part.size for part in parts])
        mass, spread = (
            np.concatenate([s[name] if name in s else np.full(part.size, default) for s, part in zip(states, parts)])
            for name, default in (("mass", 1.0), ("spread", 0.0))
        )
        return parts, Proxies(np.concatenate([part.rows for part in parts]), labels, mass, spread)

    def _lift(self, norm_inf: Normaliser, dtype: type) -> tuple[Array, Array]:
        """The test rows as kernels take them, and the centre from which they are measured."""
        Q = norm_inf.apply(self.queries)
        centre = centre_of(Q)
        return lift_queries(Q, centre, dtype), centre

    def _scores(
        self, norm_inf: Normaliser, dtype: type, systems: dict[int, KernelSystem]
    ) -> Iterator[tuple[int, Array]]:
        """The scores of the test rows of each decision of a group.  # (classes, rows)"""
        queries, centre = self._lifted(norm_inf, dtype)
        rows, positions = _stacked([system.classes for system in systems.values()])
        proxies = lift_proxies(rows, centre, 1.0, dtype)
        split = {i: self.graph.decisions[i].split for i in systems}
        used, columns = self._rows(frozenset(split.values()))
        queries = queries if len(used) == len(queries) else queries[used]
        scores: dict[int, list[Array]] = {i: [] for i in systems}
        step = max(16, DISTANCES // len(proxies))
        for start in range(0, len(used), step):
            D = proxies @ queries[start : start + step].T  # -|q - w|^2
            for (i, system), position in zip(systems.items(), positions):
                first, last = np.searchsorted(columns[split[i]], (start, start + step)).tolist()
                K = D[position]
                if last - first < D.shape[1]:
                    K = np.take(K, columns[split[i]][first:last] - start, axis=1)
                K *= dtype(system.rate)
                scores[i].append(system.by_class @ np.exp(K, out=K).astype(np.float64, copy=False))
        return ((i, np.concatenate(blocks, axis=1)) for i, blocks in scores.items())


def _stacked(sets: Sequence[list[ClassProxies]]) -> tuple[Array, list[Array]]:
    """The rows of several sets of proxies, each once, and the positions of every set among them."""
    by_size = sorted((part for parts in sets for part in parts), key=lambda part: part.size)
    largest = {(part.block, part.unit): part for part in by_size}  # the others from this block are its first rows
    ends = np.cumsum([part.size for part in largest.values()]).tolist()
    spans = {key: np.arange(end - part.size, end) for (key, part), end in zip(largest.items(), ends)}
    rows = np.concatenate([part.rows for part in largest.values()])
    return rows, [np.concatenate([spans[p.block, p.unit][: p.size] for p in parts]) for parts in sets]


def _products(X: Array) -> Array:
    """The inner products of rows; only the lower triangle.  # (n, n) float64"""
    from scipy.linalg.blas import dsyrk

    return np.asarray(dsyrk(1.0, X.T, trans=True)).T  # X.T is Fortran-ordered, so nothing is copied


def _gram(products: Array, lengths: Array, rate: float, out: Array) -> Array:
    """exp(-rate |w_i - w_j|^2), given products and squared lengths; only the lower triangle.  # (p, p)"""
    for start in range(0, len(out), BLOCK):
        stop = start + BLOCK
        block = np.multiply(products[start:stop, :stop], 2 * rate, out=out[start:stop, :stop])
        block -= rate * lengths[:stop]
        block -= rate * lengths[start:stop, None]
        np.exp(block, out=block)
    return out


def _solved(K: Array, labels: Array, name: str) -> Array:
    """K^-1 Y for Y one column per class, given the lower triangle of K, which is overwritten.  # (p, classes)"""
    from scipy.linalg.lapack import dposv

    Y = np.asfortranarray(labels[:, None] == np.arange(labels[-1] + 1), dtype=np.float64)
    _, A, info = dposv(K.T, Y, overwrite_a=True, overwrite_b=True)  # K.T is Fortran-ordered, so nothing is copied
    if info:
        raise ParameterError(f"{name}: proxies lie too close together for this noise; use a larger one.")
    return np.asarray(A)


def _precise_in_float32(reach: float, by_class: Array) -> bool:
    """Whether rounded exponents shift no score by more than `ERROR`; see `gaussian.for_float32`."""
    length = np.sqrt(np.einsum("cp,cp->c", by_class, by_class).max())
    return bool(3 * 2**-24 * (1 + reach) * length <= ERROR)
