"""A normaliser that acts on each block of a row."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from imprint.core.arrays import Array, namespace
from imprint.core.blocks import column_slices
from imprint.core.graph import GraphBuilder
from imprint.normalisers._base import Normaliser, Scaling


@dataclass(frozen=True)
class Blockwise(Scaling):
    """Applies a normaliser to each block of a row: with `l2`, every block has length
    one.

    >>> from imprint.normalisers.l2 import L2
    >>> Blockwise(L2(), (2, 1)).apply(np.array([[3.0, 4.0, 5.0]])).tolist()
    [[0.6, 0.8, 1.0]]
    """

    normaliser: Normaliser
    widths: tuple[int, ...]

    @property
    def instruction(self) -> str | None:
        instruction = self.normaliser.instruction
        if not instruction:
            return instruction
        widths = ", ".join(map(str, self.widths))
        return f"Do this for each block of {widths} columns: {instruction}"

    def apply(
        self,
        X: Array,
        reference: Array | None = None,
    ) -> Array:
        parts = []
        for columns in column_slices(self.widths):
            earlier = None
            if reference is not None:
                earlier = reference[:, columns]
            block = self.normaliser.apply(X[:, columns], earlier)
            parts.append(block)
        return namespace(X).concatenate(parts, axis=1)

    def pullback(self, x: Array, gradient: Array) -> Array | None:
        parts = []
        for columns in column_slices(self.widths):
            part = self.normaliser.pullback(x[columns], gradient[columns])
            if part is None:
                return None
            parts.append(part)
        return np.concatenate(parts)

    def graph(
        self,
        g: GraphBuilder,
        x: str,
        dtype: DTypeLike,
    ) -> str | None:
        parts = []
        for columns in column_slices(self.widths):
            first = g.constant([columns.start], np.int64)
            last = g.constant([columns.stop], np.int64)
            # A slice along axis 1: the columns of a block.
            axis = g.constant([1], np.int64)
            block = g.add("Slice", x, first, last, axis)
            part = self.normaliser.graph(g, block, dtype)
            if part is None:
                return None
            parts.append(part)
        return g.add("Concat", *parts, axis=1)
