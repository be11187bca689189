"""The proxies of a unit: every class summarised once, every set of proxies finished once."""

import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from imprint.core.types import Array, State
from imprint.generators._base import PerClassGenerator
from imprint.generators.all import All
from imprint.kernels.quantiles import ranks, targets_in_turn, values_at
from imprint.kernels.rows import lengths, unit_rows
from imprint.normalisers._base import Normaliser
from imprint.normalisers.none import NoNorm
from imprint.normalisers.quantile import Quantile
from imprint.study import sharing
from imprint.study.tree import Tree


class Block:
    """Rows of one class that proxies of several experiments are made of."""

    def __init__(self, rows: Array) -> None:
        self.rows = np.ascontiguousarray(rows)
        self._ranks: dict[bool, Array] = {}

    @cached_property
    def divisors(self) -> Array | None:
        """What `l2` divides the rows by; None where it does more than divide, for rows too extreme to be squared."""
        return lengths(self.rows)

    @cached_property
    def unit(self) -> Array:
        """The rows after `l2`."""
        return unit_rows(self.rows)

    def ranks(self, unit: bool) -> Array:
        """The ranks of the values within each row, or within each row after `l2`."""
        if unit not in self._ranks:
            self._ranks[unit] = ranks(self.unit if unit else self.rows)
        return self._ranks[unit]


class Part(NamedTuple):
    """The proxies of one class: the first rows of a block, as they are or after `l2`."""

    block: Block
    size: int
    unit: bool = False

    @property
    def rows(self) -> Array:
        """The proxies themselves."""
        return (self.block.unit if self.unit else self.block.rows)[: self.size]


class UnitProxies:
    """States of all classes of a tree, and the proxies that experiments make of them."""

    def __init__(self, tree: Tree, X: Array) -> None:
        self.tree, self.X = tree, X
        self.states: dict[tuple[int, int], State] = {}
        """What is kept of a class, by class and maker."""
        self.seconds = np.zeros(len(tree.makers))
        """Processor time that each maker took; of work that several share, each has its part."""
        self._raw: dict[tuple[int, int], Part] = {}
        self._class_blocks: dict[int, Block] = {}
        self._finished: dict[object, Any] = {}
        for (c, norm_pre), requests in tree.requests().items():
            start = time.process_time()
            scaled = norm_pre.apply(X[tree.classes[c].rows])
            self._keep(c, norm_pre, list(requests), sharing.summarise(scaled, list(requests.values())))
            self.seconds[list(requests)] += (time.process_time() - start) / len(requests)

    def _keep(self, c: int, norm_pre: Normaliser, makers: list[int], found: list[tuple[State, State]]) -> None:
        """Keep the states of a class; of generators that treat classes alone also the proxies, as parts of blocks."""
        blocks: dict[int, Block] = {}
        for m, (state, longest) in zip(makers, found):
            self.states[c, m] = state
            generator = self.tree.makers[m].generator
            if type(generator) is All and type(norm_pre) in sharing.DIVISIONS:
                block = self._class_blocks.setdefault(c, Block(self.X[self.tree.classes[c].rows]))
                self._raw[c, m] = self._divided(Part(block, len(block.rows)), norm_pre)
            elif isinstance(generator, PerClassGenerator):
                if id(longest) not in blocks:
                    blocks[id(longest)] = self._block(longest["rows"])
                self._raw[c, m] = Part(blocks[id(longest)], len(state["rows"]))

    def parts(self, maker: int, lineup: int, norm_post: Normaliser) -> list[Part]:
        """The finished proxies of the classes of a line-up; only for what `sharing.is_known` knows."""
        key = maker, lineup, norm_post
        if key not in self._finished:
            raw, quantile = self._raw_parts(maker, lineup), type(norm_post) is Quantile
            self._finished[key] = self._after_quantile(raw) if quantile else [self._divided(p, norm_post) for p in raw]
        return self._finished[key]

    def forget_finished(self) -> None:
        """Free the proxies that are easily made again."""
        self._finished.clear()

    def _block(self, rows: Array) -> Block:
        return Block(np.asarray(rows, dtype=self.X.dtype))

    def _raw_parts(self, maker: int, lineup: int) -> list[Part]:
        """Proxies as their generator made them."""
        classes = self.tree.lineups[lineup].classes
        generator = self.tree.makers[maker].generator
        if isinstance(generator, PerClassGenerator):
            return [self._raw[c, maker] for c in classes]
        keys = [(maker, lineup, c) for c in classes]
        if keys[0] not in self._finished:
            joint = generator.proxies([self.states[c, maker] for c in classes])
            self._finished.update((key, Part(self._block(rows), len(rows))) for key, rows in zip(keys, joint))
        return [self._finished[key] for key in keys]

    def _divided(self, part: Part, norm: Normaliser) -> Part:
        """Proxies after `none` or `l2`."""
        if type(norm) is NoNorm:
            return part
        if part.block.divisors is not None:
            return part._replace(unit=True)
        if (norm, part) not in self._finished:
            self._finished[norm, part] = Part(Block(part.block.unit[: part.size]), part.size)
        return self._finished[norm, part]

    def _after_quantile(self, raw: Sequence[Part]) -> list[Part]:
        """Proxies after `quantile`; line-ups that begin with the same classes share what comes of them.

        The first class stays as it is, and its values alone decide what those of the others become.
        """
        keys = [tuple(raw[: i + 1]) for i in range(len(raw))]
        self._finished[keys[0]] = raw[0]
        if keys[-1] not in self._finished:
            targets = targets_in_turn(raw[0].rows, [part.size for part in raw[1:]])
            for key, part, target in zip(keys[1:], raw[1:], targets):
                if key not in self._finished:
                    rows = np.empty((part.size, len(target)), dtype=target.dtype)
                    values_at(part.block.ranks(part.unit)[: part.size], target, rows)
                    self._finished[key] = Part(Block(rows), part.size)
        return [self._finished[key] for key in keys]
