"""Decisions by `kernel`, many together: they share squared distances, whatever their rate, noise and balance.

Distances between proxies are computed once for a task and for every task whose classes are among its classes. Distances
between test rows and proxies are computed by one product for all decisions that use the same `norm_inf`. Each decision
then takes one exponential, one factorisation and one sum. For `paper/all --beside kernel` on MNIST by MobileNet v1 0.25
(1,042 decisions) this takes 8.7 s of CPU time; `Head`, which computes all of it for every decision, takes 13.3 s.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
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
from imprint.normalisers.quantile import Quantile
from imprint.study.proxies import ClassProxies, UnitProxies
from imprint.study.sharing import KERNEL_ROUNDING
from imprint.study.work_graph import WorkGraph

LARGEST = 8192
"""Proxies up to which a whole matrix of distances is held; `Head` solves larger systems."""
BLOCK = 512  # rows of a matrix computed at a time
DISTANCES = 2**24  # between test rows and proxies, held at a time


class SharedSystem(NamedTuple):
    """A solved decision: scores are `by_class` times exp(-rate |q - w|^2)."""

    number: int
    classes: list[ClassProxies]
    rate: float
    by_class: Array  # (classes, proxies) float64
    dtype: type  # in which kernels are precise enough


class KernelDecisions:
    """The decisions by `kernel` of a work graph."""

    def __init__(self, graph: WorkGraph, proxies: UnitProxies, queries: Array) -> None:
        self.graph, self.proxies, self.queries = graph, proxies, queries
        self._distances: dict[object, Array] = {}

    @cached_property
    def _hosts(self) -> list[int]:
        """For each task, the one whose distances between proxies serve it."""
        classes = [split.classes for split in self.graph.splits]
        return [_host(of_task, classes) for of_task in classes]

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
        decision, method = self.graph.decisions[number], self.graph.methods[number]
        classes = self.graph.splits[decision.split].classes
        sums = decision.aggregator.merge([self.proxies.row_statistics(method, c) for c in classes])
        return scale_for(sums, self.proxies.count(decision))

    def count(self, numbers: Sequence[int]) -> dict[int, tuple[Counts, int]]:
        """For each decision, how many test rows of each class it gives to which class, and its number of proxies."""
        counts = {i: Counts.of(1, len(self.graph.splits[self.graph.split[i]].classes)) for i in numbers}
        groups: dict[tuple[Normaliser, type], list[SharedSystem]] = defaultdict(list)
        for i in numbers:
            system = self._solve(i)
            groups[self.graph.decisions[i].norm_inf, system.dtype].append(system)
        self._distances.clear()
        for (norm_inf, dtype), systems in groups.items():
            self._count_group(norm_inf, dtype, systems, counts)
        sizes = {s.number: s.by_class.shape[1] for systems in groups.values() for s in systems}
        return {i: (counts[i], sizes[i]) for i in numbers}

    def _solve(self, number: int) -> SharedSystem:
        """Solve the system of one decision, as `Kernel.prepare` does."""
        graph, decision = self.graph, self.graph.decisions[number]
        aggregator, classes = cast(Kernel, decision.aggregator), graph.splits[decision.split].classes
        parts = self.proxies.parts(decision.spec, decision.split, decision.norm_post)
        labels = np.repeat(np.arange(len(parts)), [part.size for part in parts])
        states = [self.proxies.states[c, decision.spec] for c in classes]
        mass, spread = (_per_proxy(states, parts, name, default) for name, default in (("mass", 1.0), ("spread", 0.0)))
        proxies = Proxies(np.concatenate([part.rows for part in parts]), labels, mass, spread)
        s = self._scale(number)
        rate = aggregator.gamma / s
        K = self._gram(number, rate)
        np.fill_diagonal(K, 1 + aggregator.noise / mass + aggregator.spread * spread / s)
        Y = np.asarray(labels[:, None] == np.arange(len(parts)), dtype=np.float64)
        by_class = _solved(K, Y, str(aggregator)).T * class_weights(proxies, aggregator.balance)[:, None]
        narrow = self.queries.dtype == np.float32 and _precise_in_float32(proxies.weights, rate, by_class)
        return SharedSystem(number, parts, rate, by_class, np.float32 if narrow else np.float64)

    def _gram(self, number: int, rate: float) -> Array:
        """The lower triangle of exp(-rate |w_i - w_j|^2) between the proxies of a decision, from shared distances."""
        decision = self.graph.decisions[number]
        spec, split, norm_post = decision.spec, decision.split, decision.norm_post
        host = self._hosts[split]
        if type(norm_post) is Quantile or self.proxies.count(decision._replace(split=host)) > LARGEST:
            host = split  # quantile depends on the whole task
        parts = self.proxies.parts(spec, host, norm_post)
        key = spec, host, norm_post
        if key not in self._distances:
            self._distances[key] = _negative_distances(np.concatenate([part.rows for part in parts]))
        D = self._distances[key]
        if host != split:
            spans = dict(zip(self.graph.splits[host].classes, _spans(parts)))
            chosen = np.concatenate([spans[c] for c in self.graph.splits[split].classes])
            D = D[np.ix_(chosen, chosen)]
        K = np.empty_like(D)
        for start in range(0, len(D), BLOCK):
            stop = start + BLOCK
            np.exp(np.multiply(D[start:stop, :stop], rate, out=K[start:stop, :stop]), out=K[start:stop, :stop])
        return K

    def _count_group(
        self, norm_inf: Normaliser, dtype: type, systems: list[SharedSystem], counts: dict[int, Counts]
    ) -> None:
        """Count the decisions of systems that compare proxies with the same normalised test rows."""
        parts = list(dict.fromkeys(part for system in systems for part in system.classes))
        Q = norm_inf.apply(self.queries)
        centre = centre_of(Q)
        lifted = dict(
            zip(parts, _cut(lift_proxies(np.concatenate([p.rows for p in parts]), centre, 1.0, dtype), parts))
        )
        for group in self.graph.query_groups():
            here = [s for s in systems if int(self.graph.split[s.number]) in group.splits]
            if not here:
                continue
            used = list(dict.fromkeys(part for system in here for part in system.classes))
            right, span = np.concatenate([lifted[part] for part in used]), dict(zip(used, _spans(used)))
            step = max(16, DISTANCES // len(right))
            for taken in (group.rows[i : i + step] for i in range(0, len(group.rows), step)):
                D = right @ lift_queries(Q[taken], centre, dtype).T  # (proxies, rows) negative squared distances
                for system in here:
                    self._count(system, D[np.concatenate([span[part] for part in system.classes])], taken, counts)

    def _count(self, system: SharedSystem, D: Array, rows: Array, counts: dict[int, Counts]) -> None:
        """Count what a system decides about some test rows, given their distances (overwritten)."""
        D *= D.dtype.type(system.rate)
        K = np.exp(D, out=D).astype(np.float64, copy=False)
        scores = (system.by_class @ K).astype(self.queries.dtype)
        truth = self.graph.splits[self.graph.split[system.number]].truth_of(rows)
        count_decisions(scores, truth, KERNEL_ROUNDING, counts[system.number])


def _host(classes: tuple[int, ...], splits: Sequence[tuple[int, ...]]) -> int:
    """The task with the most classes that has all of these."""
    hosts = [i for i, other in enumerate(splits) if set(classes) <= set(other)]
    return max(hosts, key=lambda i: len(splits[i]))


def _spans(parts: Sequence[ClassProxies]) -> Iterator[Array]:
    """The positions of the proxies of each class, one class after the other."""
    ends = np.cumsum([part.size for part in parts]).tolist()
    return (np.arange(end - part.size, end) for part, end in zip(parts, ends))


def _cut(rows: Array, parts: Sequence[ClassProxies]) -> list[Array]:
    return np.split(rows, np.cumsum([part.size for part in parts])[:-1])


def _per_proxy(states: Sequence[State], parts: Sequence[ClassProxies], name: str, default: float) -> Array:
    """One number for every proxy, from the states that have it."""
    return np.concatenate([s[name] if name in s else np.full(p.size, default) for s, p in zip(states, parts)])


def _negative_distances(W: Array) -> Array:
    """-|w_i - w_j|^2 about the mean of the rows.  # (p, p) float64"""
    about = W.astype(np.float64)
    about -= about.mean(axis=0)
    lengths = squared_norms(about)
    D = about @ about.T
    D *= 2
    D -= lengths
    D -= lengths[:, None]
    return np.asarray(D)


def _solved(K: Array, Y: Array, name: str) -> Array:
    """K^-1 Y, given the lower triangle of K, which is overwritten.  # (p, classes)"""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    try:
        factor = cho_factor(K.T, lower=False, overwrite_a=True, check_finite=False)  # in place: K.T is Fortran-ordered
    except LinAlgError:
        raise ParameterError(f"{name}: proxies lie too close together for this noise; use a larger one.") from None
    return np.asarray(cho_solve(factor, Y, overwrite_b=True, check_finite=False))


def _precise_in_float32(W: Array, rate: float, by_class: Array) -> bool:
    """Whether rounded exponents shift no score by more than `ERROR`; see `gaussian.for_float32`."""
    about = W - centre_of(W)
    reach = 1 + rate * squared_norms(about).max()
    length = np.sqrt(np.einsum("cp,cp->c", by_class, by_class).max())
    return bool(3 * 2**-24 * reach * length <= ERROR)
