"""Neural collapse of data that do not fit into memory: batch by batch, on any number of
workers.
"""

from copy import deepcopy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from imprint.collapse.metrics import Collapse
from imprint.collapse.rows import RowsByClass, check_finite
from imprint.core.arrays import Array
from imprint.core.errors import ParameterError

MIN_PRODUCT_ROWS = 256  # below, a matrix product is not worthwhile


class Gram:
    """The sum of x x^T over rows.

    Rows are collected until there are as many as columns, then one matrix product adds
    them. A sum of few rows never needs a matrix, and one of many rows needs few
    products.
    """

    def __init__(self, width: int) -> None:
        self.matrix: Array | float = 0.0  # (l, l), 0.0 before the first product
        self.rows = [np.empty((0, width))]  # blocks that are not in the matrix yet

    def add(self, block: Array) -> None:
        """Add float64 rows, which the caller must not change afterwards."""
        self.rows.append(block)
        if sum(map(len, self.rows)) >= max(MIN_PRODUCT_ROWS, block.shape[1]):
            self.total()

    def merge(self, other: "Gram", factor: float = 1.0) -> None:
        """Add another sum, multiplied by a factor."""
        self.matrix = self.matrix + factor * other.matrix
        for block in list(other.rows):
            self.add(np.sqrt(factor) * block)

    def total(self) -> Array:
        """The sum as a matrix, which later calls do not change.  # (l, l)"""
        rows = np.concatenate(self.rows)
        total: Array = self.matrix + rows.T @ rows
        self.matrix, self.rows = total, [np.empty((0, rows.shape[1]))]
        return total


class Accumulator:
    """Computes the metrics of neural collapse of labelled rows that arrive in batches.

    By default every class stores its scatter matrix, at most 16 l^2 bytes, and one pass
    computes NC1, NC2, NC3, VCI and CDNV. With `scatter=False` a class stores only its
    mean, 8 l bytes. One pass then computes NC2, NC3 and CDNV; a second pass, which
    stores a single l x l matrix, computes the others. NC4 always needs the second pass.

    Each worker fills one accumulator; `a.merge(b)` and `a + b` combine them, in any
    order. Accumulators can be pickled.
    """

    def __init__(self, scatter: bool = True) -> None:
        self.scatter = bool(scatter)
        self.width = 0  # number of columns, known after the first batch
        # by label: the index of a class in the arrays below
        self._index: dict[Any, int] = {}
        self._counts = np.zeros(0, int)  # rows of each class
        self._squares = np.zeros(0)  # sum of the squared distances to the class mean
        self._means = np.zeros((0, 0))
        self._scatters: list[Gram] = []
        self._eps = 0.0

    def __repr__(self) -> str:
        return f"Accumulator(scatter={self.scatter})"

    def update(self, X: Any, y: Any) -> Self:
        """Add one batch, without keeping references to it. A refused batch changes
        nothing.
        """
        rows = RowsByClass.of(f"{self!r}.update(X, y)", X, y, min_classes=1)
        check_finite(rows.call, "X", rows.X)
        means = np.stack(
            [rows.X[index].mean(axis=0, dtype=np.float64) for index in rows.by_class()]
        )
        classes, steps = self._include(
            rows.call, rows.classes.tolist(), rows.counts, means
        )
        origins = means - steps / np.sqrt(rows.counts)[:, None]
        for part in rows.parts():
            codes, block = rows.codes[part], rows.X[part].astype(np.float64)
            block -= origins[codes]
            np.add.at(
                self._squares, classes[codes], np.einsum("ij,ij->i", block, block)
            )
            for c in np.unique(codes) if self.scatter else ():
                self._scatters[classes[c]].add(block[codes == c])
        self._eps = max(self._eps, rows.eps)
        return self

    def merge(self, other: "Accumulator") -> Self:
        """Add the rows of another accumulator, which is not changed."""
        call = f"{self!r}.merge(other)"
        if not isinstance(other, Accumulator) or other.scatter != self.scatter:
            raise ParameterError(f"{call}: other must be {self!r}, got {other!r}.")
        if other._index:
            classes, steps = self._include(
                call, list(other._index), other._counts, other._means
            )
            self._squares[classes] += other._squares + (steps**2).sum(axis=1)
            for c, scatter, step in zip(classes, other._scatters, steps):
                self._scatters[c].merge(scatter)
                self._scatters[c].add(step[None])
            self._eps = max(self._eps, other._eps)
        return self

    def __add__(self, other: "Accumulator") -> "Accumulator":
        return Accumulator(self.scatter).merge(self).merge(other)

    def _include(
        self, call: str, labels: list[Any], counts: Array, means: Array
    ) -> tuple[Array, Array]:
        """Include rows of some classes in the counts and means.

        Returns the indices of the classes, and for each class a vector x: merging two
        parts of a class adds x x^T to the sum of their scatter matrices (Chan, Golub,
        LeVeque 1979).
        """
        if self.width not in (0, means.shape[1]):
            raise ParameterError(
                f"{call}: every batch must have {self.width} columns, got"
                f" {means.shape[1]}."
            )
        known = next(iter(self._index), labels[0])
        if isinstance(known, str) != isinstance(labels[0], str):
            raise ParameterError(
                f"{call}: labels must be of one type, got {labels[0]!r} after"
                f" {known!r}."
            )
        self.width = means.shape[1]
        classes = np.array(
            [self._index.setdefault(label, len(self._index)) for label in labels]
        )
        new = len(self._index) - len(self._counts)
        self._counts, self._squares = (
            np.pad(self._counts, (0, new)),
            np.pad(self._squares, (0, new)),
        )
        self._means = np.concatenate(
            [self._means.reshape(-1, self.width), np.zeros((new, self.width))]
        )
        self._scatters += [Gram(self.width) for _ in range(new if self.scatter else 0)]
        old_counts, differences = self._counts[classes], means - self._means[classes]
        total = old_counts + counts
        steps = differences * np.sqrt(old_counts * counts / total)[:, None]
        self._means[classes] += differences * (counts / total)[:, None]
        self._counts[classes] = total
        return classes, steps

    def result(self) -> Collapse:
        """The metrics of the rows so far; more batches may follow."""
        call = f"{self!r}.result()"
        labels = sorted(self._index)
        if len(labels) < 2:
            raise ParameterError(
                f"{call}: at least 2 classes must have been seen, got {len(labels)}."
            )
        order = [self._index[label] for label in labels]
        counts, means, variances = (
            self._counts[order],
            self._means[order],
            self._squares[order] / self._counts[order],
        )
        within = Gram(self.width)
        for c, count in zip(order, counts) if self.scatter else ():
            within.merge(self._scatters[c], 1 / (count * len(labels)))
        pooled = within.total() if self.scatter else None
        return Collapse(
            call, np.array(labels), counts, means, self._eps, variances, pooled
        )

    def second_pass(self, weights: Any = None, bias: Any = None) -> "SecondPass":
        """Start the second pass over the same rows, in any batches and order.

        It computes NC4 for the linear head (weights, bias) or for predictions passed
        with each batch, and with `scatter=False` also NC1 and VCI.
        """
        return SecondPass(self.result(), weights, bias)


class SecondPass:
    """The second pass over the rows, given the class means: see
    `Accumulator.second_pass`.
    """

    def __init__(self, first: Collapse, weights: Any = None, bias: Any = None) -> None:
        self._first, self._head = first, first.head(weights, bias)
        self._counts = np.zeros_like(first.counts)
        self._classified = self._agreeing = 0
        self._gram = Gram(first.means.shape[1]) if first.within is None else None

    def update(self, X: Any, y: Any, predictions: Any = None) -> Self:
        """Add one batch. `predictions` are labels, one per row, if no weights were
        given.
        """
        rows = RowsByClass.of("second_pass().update(X, y)", X, y, min_classes=1)
        check_finite(rows.call, "X", rows.X)
        first = self._first
        classes = np.searchsorted(first.classes, rows.classes).clip(
            max=len(first.classes) - 1
        )
        if (
            rows.X.shape[1] != first.means.shape[1]
            or (first.classes[classes] != rows.classes).any()
        ):
            raise ParameterError(
                f"{rows.call}: the labels and the width must be those of the first"
                " pass."
            )
        if predictions is not None or self._head is not None:
            self._agreeing += first.agreeing(rows, predictions, self._head)
            self._classified += len(rows.X)
        if self._gram is not None:
            scale = 1 / np.sqrt(first.counts * len(first.counts))
            for part in rows.parts():
                codes, block = (
                    classes[rows.codes[part]],
                    rows.X[part].astype(np.float64),
                )
                block -= first.means[codes]
                block *= scale[codes][:, None]
                self._gram.add(block)
        self._counts[classes] += rows.counts
        return self

    def merge(self, other: "SecondPass") -> Self:
        """Add the second pass of another worker; both must follow the same first pass,
        with the same head.
        """
        same = (self._gram is None) == (other._gram is None) and (
            self._head is None
        ) == (other._head is None)
        arrays = zip(
            (self._first.means, *(self._head or ())),
            (other._first.means, *(other._head or ())),
        )
        if not same or not all(np.array_equal(*pair) for pair in arrays):
            raise ParameterError(
                "second_pass().merge(other): both need the same first pass and the same"
                " head."
            )
        self._counts += other._counts
        self._classified += other._classified
        self._agreeing += other._agreeing
        if self._gram is not None and other._gram is not None:
            self._gram.merge(other._gram)
        return self

    def __add__(self, other: "SecondPass") -> "SecondPass":
        return deepcopy(self).merge(other)

    def result(self) -> Collapse:
        """All metrics; every class must have as many rows as in the first pass."""
        first = self._first
        for label, expected, count in zip(first.classes, first.counts, self._counts):
            if expected != count:
                rule = (
                    f"class {label} must have {expected} rows as in the first pass, got"
                    f" {count}"
                )
                raise ParameterError(f"second_pass().result(): {rule}.")
        within = first.within if self._gram is None else self._gram.total()
        return replace(
            first,
            within=within,
            agreement=self._agreeing / self._classified if self._classified else None,
        )
