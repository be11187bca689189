"""A normaliser that acts on each block of a row."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from imprint.core.arrays import Array, namespace
from imprint.core.blocks import column_slices
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

    def apply(self, X: Array, reference: Array | None = None) -> Array:
        parts = []
        for columns in column_slices(self.widths):
            earlier = None if reference is None else reference[:, columns]
            parts.append(self.normaliser.apply(X[:, columns], earlier))
        return namespace(X).concatenate(parts, axis=1)

    def graph(self, g: Any, x: str, dtype: Any) -> str | None:
        parts = []
        for columns in column_slices(self.widths):
            first = g.constant([columns.start], np.int64)
            last = g.constant([columns.stop], np.int64)
            block = g.add("Slice", x, first, last, g.constant([1], np.int64))
            part = self.normaliser.graph(g, block, dtype)
            if part is None:
                return None
            parts.append(part)
        return str(g.add("Concat", *parts, axis=1))
