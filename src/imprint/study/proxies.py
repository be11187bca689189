"""The proxies of a unit: each class is summarised once, each set of proxies normalised
once.
"""

import time
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from imprint.core.arrays import Array, State
from imprint.generators._base import PerClassGenerator
from imprint.generators.all import AllRows
from imprint.head import Head
from imprint.kernels.quantiles import ranks, successive_targets
from imprint.kernels.rows import lengths, unit_rows
from imprint.method import ClassState, Method
from imprint.normalisers._base import Normaliser
from imprint.normalisers._blocks import Blockwise
from imprint.normalisers.none import NoNorm
from imprint.normalisers.quantile import Quantile
from imprint.study import sharing
from imprint.study.failures import COMPONENT_ERRORS, reason_of
from imprint.study.sharing import ProxySpec
from imprint.study.work_graph import (
    ClassRows,
    Decision,
    TaskSplit,
    WorkGraph,
)


class ProxyRows:
    """Rows of one class, of which the proxies of several experiments are prefixes."""

    def __init__(self, rows: Array, dtype: DTypeLike | None = None) -> None:
        self.rows = np.ascontiguousarray(rows, dtype)

    @cached_property
    def divisors(self) -> Array | None:
        """The lengths by which `l2` divides the rows; None if some are too extreme to
        be squared.
        """
        return lengths(self.rows)

    @cached_property
    def unit(self) -> "ProxyRows":
        """The rows after `l2`."""
        if self.divisors is None:
            return ProxyRows(unit_rows(self.rows))
        return ProxyRows(self.rows / self.divisors[:, None])

    @cached_property
    def ranks(self) -> Array:
        """The ranks of the values within each row."""
        return ranks(self.rows)


class ClassProxies(NamedTuple):
    """The proxies of one class: the first rows of a block, before or after `l2`."""

    block: ProxyRows
    size: int
    is_unit: bool = False

    @property
    def source(self) -> ProxyRows:
        """The block, before or after `l2`."""
        return self.block.unit if self.is_unit else self.block

    @property
    def rows(self) -> Array:
        """The proxies themselves."""
        return self.source.rows[: self.size]

    def after(self, norm: Normaliser) -> "ClassProxies":
        """The proxies after `none` or `l2`."""
        if type(norm) is NoNorm:
            return self
        # Rows that can be divided share their block with those before `l2`, so that
        # products with test rows are computed once for both.
        if self.block.divisors is None:
            return ClassProxies(self.block.unit, self.size)
        return self._replace(is_unit=True)


class UnitProxies:
    """The states of all classes of a work graph, and their proxies."""

    def __init__(self, graph: WorkGraph, X: Array) -> None:
        self.X = X
        self._blocks = graph.blocks
        self.states: dict[tuple[ClassRows, ProxySpec], State] = {}
        # processor time of each spec, with an equal part of shared work
        self.seconds = np.zeros(len(graph.specs))
        # before `norm_post`
        self._raw: dict[tuple[ClassRows, ProxySpec], ClassProxies] = {}
        # all rows of a class, as they are
        self._class_blocks: dict[ClassRows, ProxyRows] = {}
        # Of all classes of a task split, after `norm_post`, or before it if the
        # generator uses all classes; by what they depend on.
        self._by_split: dict[Hashable, list[ClassProxies]] = {}
        # of one class after `quantile`, by the classes up to it
        self._by_quantile: dict[Hashable, ClassProxies] = {}
        self._statistics: dict[Hashable, State] = {}
        # why a class has no state
        self._failures: dict[tuple[ClassRows, ProxySpec], str] = {}
        for (c, norm_pre), specs in graph.specs_by_class().items():
            start = time.process_time()
            self._summarise_each(c, norm_pre, specs)
            seconds = time.process_time() - start
            numbers = [spec.number for spec in specs]
            self.seconds[numbers] += seconds / len(specs)

    def _summarise_each(
        self,
        c: ClassRows,
        norm_pre: Normaliser,
        specs: list[ProxySpec],
    ) -> None:
        """Compute the states of a class, together if possible; record those that
        fail.
        """
        try:
            self._summarise(c, norm_pre, specs)
        except COMPONENT_ERRORS as e:
            if len(specs) == 1:
                self._failures[c, specs[0]] = reason_of(e)
                return
            for spec in specs:
                self._summarise_each(c, norm_pre, [spec])

    def _summarise(
        self,
        c: ClassRows,
        norm_pre: Normaliser,
        specs: list[ProxySpec],
    ) -> None:
        """Compute the states of a class, and the proxies of generators that treat each
        class separately.
        """
        containing = sharing.containing_specs(specs)
        computed = list(dict.fromkeys(containing.values()))
        scaling = Blockwise(norm_pre, self._blocks) if self._blocks else norm_pre
        X = scaling.apply(self.X[c.rows])
        computed_states = sharing.summarise(X, c.label, computed)
        states = dict(zip(computed, computed_states))
        blocks: dict[ProxySpec, ProxyRows] = {}
        for spec, largest in containing.items():
            generator = spec.generator
            state = sharing.prefix(generator, states[largest])
            self.states[c, spec] = state
            scales_rows = type(scaling) in sharing.ROW_SCALINGS
            if type(generator) is AllRows and scales_rows:
                # One block for both normalisers, see `ClassProxies.after`.
                if c not in self._class_blocks:
                    self._class_blocks[c] = ProxyRows(self.X[c.rows])
                block = self._class_blocks[c]
                proxies = ClassProxies(block, len(block.rows))
                self._raw[c, spec] = proxies.after(norm_pre)
            elif isinstance(generator, PerClassGenerator):
                if largest not in blocks:
                    blocks[largest] = ProxyRows(states[largest]["rows"], self.X.dtype)
                self._raw[c, spec] = ClassProxies(blocks[largest], len(state["rows"]))

    def clear(self) -> None:
        """Free the memory of normalised proxies."""
        self._by_split.clear()
        self._by_quantile.clear()

    def parts(
        self,
        spec: ProxySpec,
        split: TaskSplit,
        norm_post: Normaliser,
    ) -> list[ClassProxies]:
        """The normalised proxies of the classes of a task split; only for shareable
        methods.
        """
        key = (spec, split, norm_post)
        if key not in self._by_split:
            raw = self._raw_parts(spec, split)
            if type(norm_post) is Quantile:
                self._by_split[key] = self._after_quantile(raw)
            else:
                self._by_split[key] = [part.after(norm_post) for part in raw]
        return self._by_split[key]

    def failure_of(self, decision: Decision) -> str | None:
        """Why a class of a decision has no state; None if all have one."""
        for c in decision.split.classes:
            if (c, decision.spec) in self._failures:
                return self._failures[c, decision.spec]
        return None

    def count(self, decision: Decision) -> int:
        """The number of proxies of a decision; only for shareable methods."""
        total = 0
        for c in decision.split.classes:
            if isinstance(decision.spec.generator, PerClassGenerator):
                total += self._raw[c, decision.spec].size
            else:
                # Of least squares, whose proxies are expensive: one for each cluster.
                masses = self.states[c, decision.spec].get("mass")
                total += 1 if masses is None else len(masses)
        return total

    def row_statistics(self, method: Method, c: ClassRows) -> State:
        """The statistics of the training rows of a class for the aggregator of a
        method.
        """
        key = (method.aggregator, method.norm_pre, method.norm_inf, c)
        if key not in self._statistics:
            X = self.X[c.rows]
            self._statistics[key] = method.sums(X, method.scaling("pre").apply(X))
        return self._statistics[key]

    def head(self, decision: Decision) -> Head:
        """The head of one decision, from the class states."""
        method = decision.method
        spec = decision.spec
        states = []
        for c in decision.split.classes:
            statistics = self.row_statistics(method, c)
            states.append(ClassState(self.states[c, spec], statistics))
        labels = tuple(c.label for c in decision.split.classes)
        return Head(method, spec.seed or 0, self.X.dtype, labels, tuple(states))

    def _raw_parts(
        self,
        spec: ProxySpec,
        split: TaskSplit,
    ) -> list[ClassProxies]:
        """The proxies of the classes of a task split, before `norm_post`."""
        if isinstance(spec.generator, PerClassGenerator):
            return [self._raw[c, spec] for c in split.classes]
        key = (spec, split)
        if key not in self._by_split:
            states = [self.states[c, spec] for c in split.classes]
            parts = []
            for rows in spec.generator.proxies(states):
                parts.append(ClassProxies(ProxyRows(rows, self.X.dtype), len(rows)))
            self._by_split[key] = parts
        return self._by_split[key]

    def _after_quantile(self, raw: Sequence[ClassProxies]) -> list[ClassProxies]:
        """Proxies after `quantile`; task splits that begin with the same classes share
        their proxies.

        The first class does not change. The values of the others become the quantiles
        of its values.
        """
        keys = [tuple(raw[: i + 1]) for i in range(len(raw))]
        by_classes = self._by_quantile
        by_classes[keys[0]] = raw[0]
        if keys[-1] not in by_classes:
            sizes = [part.size for part in raw[1:]]
            targets = successive_targets(raw[0].rows, sizes)
            for key, part, target in zip(keys[1:], raw[1:], targets):
                if key not in by_classes:
                    rows = target.take(part.source.ranks[: part.size])
                    by_classes[key] = ClassProxies(ProxyRows(rows), part.size)
        return [by_classes[key] for key in keys]
