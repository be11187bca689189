"""The proxies of a unit: each class is summarised once, each set of proxies normalised once."""

import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from imprint.core.types import Array, State
from imprint.generators._base import PerClassGenerator
from imprint.generators.all import AllRows
from imprint.kernels.quantiles import ranks, targets_in_turn, values_at
from imprint.kernels.rows import lengths, unit_rows
from imprint.method import Method
from imprint.normalisers._base import Normaliser
from imprint.normalisers.none import NoNorm
from imprint.normalisers.quantile import Quantile
from imprint.study import sharing
from imprint.study.work_graph import Decision, WorkGraph


class ProxyRows:
    """Rows of one class, of which the proxies of several experiments are prefixes."""

    def __init__(self, rows: Array) -> None:
        self.rows = np.ascontiguousarray(rows)
        self._ranks: dict[bool, Array] = {}

    @cached_property
    def divisors(self) -> Array | None:
        """The lengths by which `l2` divides the rows; None if some are too extreme to be squared."""
        return lengths(self.rows)

    @cached_property
    def unit(self) -> Array:
        """The rows after `l2`."""
        return unit_rows(self.rows) if self.divisors is None else self.rows / self.divisors[:, None]

    def ranks(self, unit: bool) -> Array:
        """The ranks of the values within each row, before or after `l2`."""
        if unit not in self._ranks:
            self._ranks[unit] = ranks(self.unit if unit else self.rows)
        return self._ranks[unit]


class ClassProxies(NamedTuple):
    """The proxies of one class: the first rows of a block, before or after `l2`."""

    block: ProxyRows
    size: int
    unit: bool = False

    @property
    def rows(self) -> Array:
        """The proxies themselves."""
        return (self.block.unit if self.unit else self.block.rows)[: self.size]


class UnitProxies:
    """The states of all classes of a work graph, and their proxies."""

    def __init__(self, graph: WorkGraph, X: Array) -> None:
        self.graph, self.X = graph, X
        self.states: dict[tuple[int, int], State] = {}
        """By class and spec."""
        self.seconds = np.zeros(len(graph.specs))
        """The processor time of each spec, with an equal part of shared work."""
        self._raw: dict[tuple[int, int], ClassProxies] = {}
        self._class_blocks: dict[int, ProxyRows] = {}
        self._finished: dict[object, Any] = {}
        self._statistics: dict[object, State] = {}
        for (c, norm_pre), requests in graph.requests().items():
            start = time.process_time()
            scaled = norm_pre.apply(X[graph.classes[c].rows])
            self._store(c, norm_pre, list(requests), *sharing.summarise(scaled, list(requests.values())))
            self.seconds[list(requests)] += (time.process_time() - start) / len(requests)

    def _store(self, c: int, norm_pre: Normaliser, specs: list[int], states: list[State], serving: list[int]) -> None:
        """Store the states of a class, and the proxies of generators that treat each class separately."""
        blocks: dict[int, ProxyRows] = {}
        for m, position in zip(specs, serving):
            generator = self.graph.specs[m].generator
            self.states[c, m] = sharing.prefix(generator, states[position])
            if type(generator) is AllRows and type(norm_pre) in sharing.ROW_SCALINGS:
                block = self._class_blocks.setdefault(c, ProxyRows(self.X[self.graph.classes[c].rows]))
                self._raw[c, m] = self._divided(ClassProxies(block, len(block.rows)), norm_pre)
            elif isinstance(generator, PerClassGenerator):
                if position not in blocks:
                    blocks[position] = self._block(states[position]["rows"])
                self._raw[c, m] = ClassProxies(blocks[position], len(self.states[c, m]["rows"]))

    def parts(self, spec: int, split: int, norm_post: Normaliser) -> list[ClassProxies]:
        """The normalised proxies of the classes of a task split; only for shareable methods."""
        key = spec, split, norm_post
        if key not in self._finished:
            raw, quantile = self._raw_parts(spec, split), type(norm_post) is Quantile
            self._finished[key] = self._after_quantile(raw) if quantile else [self._divided(p, norm_post) for p in raw]
        return self._finished[key]

    def row_statistics(self, method: Method, c: int) -> State:
        """The statistics of the training rows of a class for the aggregator of a method."""
        key = method.aggregator, method.norm_pre, method.norm_inf, c
        if key not in self._statistics:
            X = self.X[self.graph.classes[c].rows]
            self._statistics[key] = method.sums(X, method.norm_pre.apply(X))
        return self._statistics[key]

    def count(self, decision: Decision) -> int:
        """The number of proxies of a decision whose generator treats each class separately."""
        return sum(self._raw[c, decision.spec].size for c in self.graph.splits[decision.split].classes)

    def forget_finished(self) -> None:
        """Free the memory of normalised proxies, which can be computed again."""
        self._finished.clear()

    def _block(self, rows: Array) -> ProxyRows:
        return ProxyRows(np.asarray(rows, dtype=self.X.dtype))

    def _raw_parts(self, spec: int, split: int) -> list[ClassProxies]:
        """Proxies before normalisation."""
        classes = self.graph.splits[split].classes
        generator = self.graph.specs[spec].generator
        if isinstance(generator, PerClassGenerator):
            return [self._raw[c, spec] for c in classes]
        keys = [(spec, split, c) for c in classes]
        if keys[0] not in self._finished:
            joint = generator.proxies([self.states[c, spec] for c in classes])
            self._finished.update((key, ClassProxies(self._block(rows), len(rows))) for key, rows in zip(keys, joint))
        return [self._finished[key] for key in keys]

    def _divided(self, part: ClassProxies, norm: Normaliser) -> ClassProxies:
        """Proxies after `none` or `l2`."""
        if type(norm) is NoNorm:
            return part
        if part.block.divisors is not None:
            return part._replace(unit=True)
        if (norm, part) not in self._finished:
            self._finished[norm, part] = ClassProxies(ProxyRows(part.block.unit[: part.size]), part.size)
        return self._finished[norm, part]

    def _after_quantile(self, raw: Sequence[ClassProxies]) -> list[ClassProxies]:
        """Proxies after `quantile`; task splits that begin with the same classes share their proxies.

        The first class does not change. The values of the others become the quantiles of its values.
        """
        keys = [tuple(raw[: i + 1]) for i in range(len(raw))]
        self._finished[keys[0]] = raw[0]
        if keys[-1] not in self._finished:
            targets = targets_in_turn(raw[0].rows, [part.size for part in raw[1:]])
            for key, part, target in zip(keys[1:], raw[1:], targets):
                if key not in self._finished:
                    rows = np.empty((part.size, len(target)), dtype=target.dtype)
                    values_at(part.block.ranks(part.unit)[: part.size], target, rows)
                    self._finished[key] = ClassProxies(ProxyRows(rows), part.size)
        return [self._finished[key] for key in keys]
