"""The proxies of a unit: each class is summarised once, each set of proxies normalised
once.
"""

import time
from functools import cached_property
from typing import Any, NamedTuple

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
from imprint.normalisers.none import NoNorm
from imprint.normalisers.quantile import Quantile
from imprint.study import sharing
from imprint.study.sharing import ProxySpec
from imprint.study.work_graph import ClassRows, Decision, TaskSplit, WorkGraph


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
        return ProxyRows(
            unit_rows(self.rows)
            if self.divisors is None
            else self.rows / self.divisors[:, None]
        )

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
        return (
            ClassProxies(self.block.unit, self.size)
            if self.block.divisors is None
            else self._replace(is_unit=True)
        )


class UnitProxies:
    """The states of all classes of a work graph, and their proxies."""

    def __init__(self, graph: WorkGraph, X: Array) -> None:
        self.X = X
        self.states: dict[tuple[ClassRows, ProxySpec], State] = {}
        # processor time of each spec, with an equal part of shared work
        self.seconds = np.zeros(len(graph.specs))
        # before `norm_post`
        self._raw: dict[tuple[ClassRows, ProxySpec], ClassProxies] = {}
        # all rows of a class, as they are
        self._class_blocks: dict[ClassRows, ProxyRows] = {}
        # after `norm_post`, by what they depend on; cleared to free memory
        self.normalised: dict[object, Any] = {}
        self._statistics: dict[object, State] = {}
        for (c, norm_pre), specs in graph.specs_by_class().items():
            start = time.process_time()
            self._summarise(c, norm_pre, specs)
            self.seconds[[spec.number for spec in specs]] += (
                time.process_time() - start
            ) / len(specs)

    def _summarise(
        self, c: ClassRows, norm_pre: Normaliser, specs: list[ProxySpec]
    ) -> None:
        """Compute the states of a class, and the proxies of generators that treat each
        class separately.
        """
        containing = sharing.containing_specs(specs)
        computed = list(dict.fromkeys(containing.values()))
        states = dict(
            zip(
                computed,
                sharing.summarise(norm_pre.apply(self.X[c.rows]), c.label, computed),
            )
        )
        blocks: dict[ProxySpec, ProxyRows] = {}
        for spec, largest in containing.items():
            self.states[c, spec] = sharing.prefix(spec.generator, states[largest])
            if (
                type(spec.generator) is AllRows
                and type(norm_pre) in sharing.ROW_SCALINGS
            ):
                block = self._class_blocks.setdefault(c, ProxyRows(self.X[c.rows]))
                self._raw[c, spec] = ClassProxies(block, len(block.rows)).after(
                    norm_pre
                )
            elif isinstance(spec.generator, PerClassGenerator):
                block = blocks.setdefault(
                    largest, ProxyRows(states[largest]["rows"], self.X.dtype)
                )
                self._raw[c, spec] = ClassProxies(
                    block, len(self.states[c, spec]["rows"])
                )

    def parts(
        self, spec: ProxySpec, split: TaskSplit, norm_post: Normaliser
    ) -> list[ClassProxies]:
        """The normalised proxies of the classes of a task split; only for shareable
        methods.
        """
        key = spec, split, norm_post
        if key not in self.normalised:
            raw = self._raw_parts(spec, split)
            by_quantile = type(norm_post) is Quantile
            self.normalised[key] = (
                self._after_quantile(raw)
                if by_quantile
                else [p.after(norm_post) for p in raw]
            )
        return self.normalised[key]

    def count(self, decision: Decision) -> int:
        """The number of proxies of a decision whose generator treats each class
        separately.
        """
        return sum(self._raw[c, decision.spec].size for c in decision.split.classes)

    def row_statistics(self, method: Method, c: ClassRows) -> State:
        """The statistics of the training rows of a class for the aggregator of a
        method.
        """
        key = method.aggregator, method.norm_pre, method.norm_inf, c
        if key not in self._statistics:
            X = self.X[c.rows]
            self._statistics[key] = method.sums(X, method.norm_pre.apply(X))
        return self._statistics[key]

    def head(self, decision: Decision) -> Head:
        """The head of one decision, from the class states."""
        method, spec, classes = decision.method, decision.spec, decision.split.classes
        states = tuple(
            ClassState(self.states[c, spec], self.row_statistics(method, c))
            for c in classes
        )
        return Head(
            method,
            spec.seed or 0,
            self.X.dtype,
            tuple(c.label for c in classes),
            states,
        )

    def _raw_parts(self, spec: ProxySpec, split: TaskSplit) -> list[ClassProxies]:
        """The proxies of the classes of a task split, before `norm_post`."""
        if isinstance(spec.generator, PerClassGenerator):
            return [self._raw[c, spec] for c in split.classes]
        if (spec, split) not in self.normalised:
            by_class = spec.generator.proxies(
                [self.states[c, spec] for c in split.classes]
            )
            self.normalised[spec, split] = [
                ClassProxies(ProxyRows(rows, self.X.dtype), len(rows))
                for rows in by_class
            ]
        return self.normalised[spec, split]

    def _after_quantile(self, raw: list[ClassProxies]) -> list[ClassProxies]:
        """Proxies after `quantile`; task splits that begin with the same classes share
        their proxies.

        The first class does not change. The values of the others become the quantiles
        of its values.
        """
        keys = [tuple(raw[: i + 1]) for i in range(len(raw))]
        self.normalised[keys[0]] = raw[0]
        if keys[-1] not in self.normalised:
            targets = successive_targets(raw[0].rows, [part.size for part in raw[1:]])
            for key, part, target in zip(keys[1:], raw[1:], targets):
                if key not in self.normalised:
                    rows = target.take(part.source.ranks[: part.size])
                    self.normalised[key] = ClassProxies(ProxyRows(rows), part.size)
        return [self.normalised[key] for key in keys]
