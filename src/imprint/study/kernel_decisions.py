"""Decisions by `kernel`, many together.

Decisions that differ only in `norm_inf` have the same linear system, which is solved once. Systems of the same proxies
share the inner products of the proxies, for every gamma, noise and balance. One product of test rows and proxies serves
a task and all tasks with some of its classes, and every k of nested generators.

The 1,042 decisions of `paper/all --beside kernel` on MNIST take 6.5 s of CPU time for MobileNet v1 0.25 and 23.7 s for
ResNet-50; a `Head` for each takes 11.1 and 48.1 s. The distinct factors, products and kernels alone take 4.9 and 18.3 s
(benchmarks/study.py kernel, 16 November 2026).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple, cast

import numpy as np

from imprint.aggregators.kernel import Kernel, class_weights
from imprint.core.errors import ParameterError
from imprint.core.types import Array, State
from imprint.gaussian_process.gaussian import ERROR, MODERATE, centre_of, lift_proxies, lift_queries
from imprint.gaussian_process.update import scale_for
from imprint.head.head import with_mass
from imprint.kernels.decisions import Counts, count_decisions
from imprint.kernels.rows import squared_norms
from imprint.normalisers._base import Normaliser
from imprint.study.proxies import ClassProxies, UnitProxies
from imprint.study.sharing import KERNEL_ROUNDING, NESTED
from imprint.study.work_graph import Counted, Decision, TaskSplit

LARGEST = 8192
"""Proxies up to which a matrix of products is held; `Head` solves larger systems."""
BLOCK = 128  # rows of such a matrix processed at a time, so that they stay in the cache
DISTANCES = 2**20  # between test rows and proxies, held at a time


class SolvedDecision(NamedTuple):
    """A decision and its solved system: scores are `by_class` times exp(-rate |q - w|^2)."""

    decision: Decision
    parts: list[ClassProxies]
    rate: float
    by_class: Array  # (classes, proxies) float64
    dtype: type  # in which kernels are precise enough; their sums cancel, and are float64


class KernelDecisions:
    """Decisions by `kernel` of one unit."""

    def __init__(self, proxies: UnitProxies, queries: Array) -> None:
        self.proxies, self.queries = proxies, queries
        self._sums: dict[object, State] = {}
        self._lifted, self._rows = cache(partial(_lift, queries)), cache(_rows_of)

    def can_decide(self, decision: Decision) -> bool:
        """Whether a system is small enough to be held whole, and its rate far from the limits of floats."""
        if self.proxies.count(decision) > LARGEST:
            return False
        with np.errstate(over="ignore", divide="ignore"):
            rate = np.float64(cast(Kernel, decision.aggregator).gamma) / self._scale(decision)
        return bool(1 / MODERATE < rate < MODERATE)

    def _scale(self, decision: Decision) -> float:
        """The scale of distances, as `Kernel.prepare` computes it."""
        key, method = (decision.spec.norm_pre, decision.split), decision.method
        if key not in self._sums:
            statistics = [self.proxies.row_statistics(method, c) for c in decision.split.classes]
            self._sums[key] = method.aggregator.merge(statistics)
        return scale_for(self._sums[key], self.proxies.count(decision))

    def decide(self, decisions: Sequence[Decision]) -> Iterator[Counted]:
        """Compute decisions together: those with the same or nested proxies, about tasks with common classes."""
        same_rows: dict[object, list[Decision]] = defaultdict(list)
        for d in decisions:
            key = (d.spec.norm_pre, d.spec.seed) if type(d.spec.generator) in NESTED else d.spec
            same_rows[key, d.norm_post].append(d)
        for group in (group for alike in same_rows.values() for group in _by_host(alike)):
            compared: dict[tuple[Normaliser, type], list[SolvedDecision]] = defaultdict(list)
            for solved in self._solve(group):
                compared[solved.decision.norm_inf, solved.dtype].append(solved)
            for (norm_inf, dtype), alike in compared.items():
                yield from self._count(norm_inf, dtype, alike)

    def _solve(self, decisions: Sequence[Decision]) -> Iterator[SolvedDecision]:
        """Solve the system of each decision."""
        from scipy.linalg.blas import dsyrk  # of matrices in Fortran's order, which transposes have: nothing is copied

        by_proxies: dict[Any, dict[Kernel, list[Decision]]] = defaultdict(lambda: defaultdict(list))
        for d in decisions:
            by_proxies[d.spec, d.norm_post, d.split][cast(Kernel, d.aggregator)].append(d)
        for (spec, norm_post, split), by_aggregator in by_proxies.items():
            parts = self.proxies.parts(spec, split, norm_post)
            states = [self.proxies.states[c, spec] for c in split.classes]
            proxies = with_mass(states, np.concatenate([part.rows for part in parts]), [part.size for part in parts])
            about = proxies.weights.astype(np.float64)
            about -= about.mean(axis=0)
            products = np.asarray(dsyrk(1.0, about.T, trans=True)).T  # (p, p) the lower triangle of about @ about.T
            lengths = squared_norms(about)
            for aggregator, same in by_aggregator.items():
                s = self._scale(same[0])
                rate = aggregator.gamma / s
                out = np.empty_like(products) if aggregator is not next(reversed(by_aggregator)) else products
                K = _gram(products, lengths, rate, out)
                np.fill_diagonal(K, 1 + aggregator.noise_of(proxies, s))
                weights = class_weights(proxies, aggregator.balance)
                by_class = _solved(K, proxies.labels, str(aggregator)).T * weights[:, None]
                narrow = self.queries.dtype == np.float32 and _precise_in_float32(rate * lengths.max(), by_class)
                system = parts, rate, by_class, np.float32 if narrow else np.float64
                yield from (SolvedDecision(d, *system) for d in same)

    def _count(self, norm_inf: Normaliser, dtype: type, group: Sequence[SolvedDecision]) -> Iterator[Counted]:
        """Compare test rows with the proxies of all decisions of a group at once, then count each decision."""
        queries, centre = self._lifted(norm_inf, dtype)
        rows, positions = _stacked([solved.parts for solved in group])
        proxies = lift_proxies(rows, centre, 1.0, dtype)
        used, columns = self._rows(frozenset(solved.decision.split for solved in group))
        queries = queries if len(used) == len(queries) else queries[used]
        counts = [Counts.of(1, len(solved.by_class)) for solved in group]
        step = max(16, DISTANCES // len(proxies))
        for start in range(0, len(used), step):
            D = proxies @ queries[start : start + step].T  # -|q - w|^2
            for (decision, _, rate, by_class, _), position, count in zip(group, positions, counts):
                of_split = columns[decision.split]
                first, last = np.searchsorted(of_split, (start, start + step)).tolist()
                K = D[position]
                if last - first < D.shape[1]:
                    K = np.take(K, of_split[first:last] - start, axis=1)
                K *= dtype(rate)
                scores = by_class @ np.exp(K, out=K).astype(np.float64, copy=False)  # (classes, rows)
                truth = decision.split.truth[first:last]
                count_decisions(scores.astype(self.queries.dtype), truth, KERNEL_ROUNDING, count)
        return (Counted([s.decision], count, [s.by_class.shape[1]]) for s, count in zip(group, counts))


def _lift(queries: Array, norm_inf: Normaliser, dtype: type) -> tuple[Array, Array]:
    """The test rows as kernels take them, and the centre from which they are measured."""
    Q = norm_inf.apply(queries)
    centre = centre_of(Q)
    return lift_queries(Q, centre, dtype), centre


def _by_host(decisions: Sequence[Decision]) -> Iterable[list[Decision]]:
    """Groups of decisions: a task and those with some of its classes."""
    classes = {d.split: {*d.split.classes} for d in sorted(decisions, key=lambda d: d.split.number)}
    largest = sorted(classes, key=lambda split: -len(classes[split]))
    hosts = {split: next(host for host in largest if classes[split] <= classes[host]) for split in classes}
    groups: dict[TaskSplit, list[Decision]] = defaultdict(list)
    for d in decisions:
        groups[hosts[d.split]].append(d)
    return groups.values()


def _rows_of(splits: frozenset[TaskSplit]) -> tuple[Array, dict[TaskSplit, Array]]:
    """The test rows of some splits, and for each split the positions of its rows among them."""
    rows = np.unique(np.concatenate([split.rows for split in splits]))
    return rows, {split: np.searchsorted(rows, split.rows) for split in splits}


def _stacked(sets: Sequence[list[ClassProxies]]) -> tuple[Array, list[Array]]:
    """The rows of several sets of proxies, each once, and the positions of every set among them."""
    by_size = sorted((part for parts in sets for part in parts), key=lambda part: part.size)
    largest = {(part.block, part.is_unit): part for part in by_size}  # the others from this block are its first rows
    ends = np.cumsum([part.size for part in largest.values()]).tolist()
    spans = {key: np.arange(end - part.size, end) for (key, part), end in zip(largest.items(), ends)}
    rows = np.concatenate([part.rows for part in largest.values()])
    return rows, [np.concatenate([spans[p.block, p.is_unit][: p.size] for p in parts]) for parts in sets]


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
    _, A, info = dposv(K.T, Y, overwrite_a=True, overwrite_b=True)
    if info:
        raise ParameterError(f"{name}: proxies lie too close together for this noise; use a larger one.")
    return np.asarray(A)


def _precise_in_float32(reach: float, by_class: Array) -> bool:
    """Whether rounded exponents shift no score by more than `ERROR`; see `gaussian.for_float32`."""
    length = np.sqrt(np.einsum("cp,cp->c", by_class, by_class).max())
    return bool(3 * 2**-24 * (1 + reach) * length <= ERROR)
