"""Running sums of outer products, and of the rows of a class; they can be merged."""

from collections.abc import Iterator
from typing import Self

import numpy as np

from imprint.core.types import Array

BLOCK_ROWS = 256
"""The minimum number of rows of a matrix product, and the maximum that is converted to float64 at a time."""


class Gram:
    """The sum of x x^T over rows; small blocks are collected until a matrix product is worthwhile."""

    def __init__(self, width: int) -> None:
        self._matrix = np.zeros((width, width))
        self._pending: list[Array] = []

    def add(self, block: Array) -> Self:
        """Add float64 rows, which the caller must not change afterwards."""
        self._pending.append(block)
        if sum(map(len, self._pending)) >= max(BLOCK_ROWS, len(self._matrix) // 2):
            self.total()
        return self

    def merge(self, other: "Gram") -> None:
        """Add another sum, which may be this one itself."""
        self._matrix = self.total() + other.total()

    def total(self) -> Array:
        """The sum so far.  # (l, l)"""
        if self._pending:
            rows = np.concatenate(self._pending)
            self._pending = []
            self._matrix += rows.T @ rows
        return self._matrix


class ClassSums:
    """Count, mean and scatter of one class; without `scatter` only the trace of the scatter.

    With `scatter`, rows are collected in their own type until there are as many as columns, then added by one matrix
    product: small classes never allocate a matrix, and large ones need few products.
    """

    def __init__(self, width: int, scatter: bool) -> None:
        self.width, self.scatter = width, scatter
        self.count = 0
        self.mean = np.zeros(width)
        self.squares = 0.0  # trace of the scatter
        self.matrix: Array | None = None  # (l, l), None stands for zero
        self.pending: list[Array] = []

    def add(self, rows: Array) -> None:
        """Add the rows of one batch, which the caller must not change afterwards."""
        self.pending.append(rows)
        if not self.scatter or sum(map(len, self.pending)) >= max(self.width, BLOCK_ROWS):
            self._add_pending()

    def merge(self, other: "ClassSums") -> None:
        """Add the rows of the same class from another worker, which is not changed."""
        if other.count:
            self._combine(other.count, other.mean, other.squares, other.matrix)
        for rows in other.pending:
            self.add(rows)

    def total(self) -> tuple[int, Array, float]:
        """Count, mean and mean squared distance to the mean, including the collected rows."""
        whole = ClassSums(self.width, scatter=False)
        whole.merge(self)
        return whole.count, whole.mean, whole.squares / whole.count

    def residuals(self, mean: Array) -> Iterator[Array]:
        """Rows whose outer products and the matrix add up to the scatter around the mean of all rows."""
        yield (self.mean - mean)[None] * np.sqrt(self.count)
        for block in self._blocks():
            block -= mean
            yield block

    def _blocks(self) -> Iterator[Array]:
        for rows in self.pending:
            for start in range(0, len(rows), BLOCK_ROWS):
                yield rows[start : start + BLOCK_ROWS].astype(np.float64)

    def _add_pending(self) -> None:
        mean, count = np.zeros(self.width), sum(map(len, self.pending))
        for block in self._blocks():
            mean += block.sum(axis=0) / count
        squares, gram = 0.0, Gram(self.width) if self.scatter else None
        for block in self._blocks():
            block -= mean
            squares += float(np.vdot(block, block))
            if gram is not None:
                gram.add(block)
        self.pending = []
        self._combine(count, mean, squares, None if gram is None else gram.total())

    def _combine(self, count: int, mean: Array, squares: float, matrix: Array | None) -> None:
        """Merge another mean and scatter, after Chan, Golub, LeVeque (1979)."""
        total, gap = self.count + count, mean - self.mean
        row = gap * np.sqrt(self.count * count / total)
        if self.scatter and matrix is not None:
            self.matrix = matrix if self.matrix is None else self.matrix + matrix + np.outer(row, row)
        self.squares += squares + float(row @ row)
        self.mean = self.mean + gap * (count / total)
        self.count = total
