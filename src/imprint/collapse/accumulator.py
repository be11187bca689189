"""Neural collapse of data that do not fit into memory: batch by batch, on any number of
workers.
"""

from collections.abc import Hashable, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from imprint.collapse.metrics import Collapse
from imprint.collapse.rows import RowsByClass, check_finite
from imprint.core.arrays import Array
from imprint.core.errors import ParameterError

# Below, a matrix product spends most of its time on reading and writing the matrix. A
# matter of taste: narrow rows would otherwise be added a few at a time.
MIN_PRODUCT_ROWS = 256


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
        width = block.shape[1]
        if sum(map(len, self.rows)) >= max(MIN_PRODUCT_ROWS, width):
            self.total()

    def merge(self, other: "Gram", factor: float = 1.0) -> None:
        """Add another sum, multiplied by a factor."""
        self.matrix = self.matrix + factor * other.matrix
        # A copy: `other` may be this sum itself.
        for block in list(other.rows):
            self.add(np.sqrt(factor) * block)

    def total(self) -> Array:
        """The sum as a matrix, which later calls do not change.  # (l, l)"""
        rows = np.concatenate(self.rows)
        total: Array = self.matrix + rows.T @ rows
        self.matrix = total
        self.rows = [np.empty((0, rows.shape[1]))]
        return total


class Accumulator:
    """Computes the metrics of neural collapse of labelled rows that arrive in batches.

    By default every class stores its scatter matrix, and one pass computes NC1, NC2,
    NC3, VCI and CDNV. NC4 always needs a second pass. Each worker fills one
    accumulator; `a.merge(b)` and `a + b` combine them, in any order. Accumulators can
    be pickled.

    Parameters
    ----------
    scatter : bool
        Whether every class stores its scatter matrix, at most 16 l^2 bytes. Without, a
        class stores only its mean, 8 l bytes. One pass then computes NC2, NC3 and CDNV;
        a second pass, which stores a single l x l matrix, computes the others.
        [default: True]

    Examples
    --------
    >>> from imprint.collapse import Accumulator
    >>> seen = Accumulator().update([[0.0], [4]], [0, 1]).update([[2.0], [6]], [0, 1])
    >>> round(seen.result().nc1, 12)
    0.125
    >>> again = seen.second_pass(weights=[[-1], [1]], bias=[6, 0])
    >>> again.update([[0.0], [2]], [0, 0]).update([[4.0], [6]], [1, 1]).result().nc4
    1.0
    """

    def __init__(self, scatter: bool = True) -> None:
        self.scatter = bool(scatter)
        self.width = 0  # number of columns, known after the first batch
        # by label: the index of a class in the arrays below
        self._index: dict[Hashable, int] = {}
        self._counts = np.zeros(0, int)  # rows of each class
        self._squares = np.zeros(0)  # sum of the squared distances to the class mean
        self._means = np.zeros((0, 0))
        self._scatters: list[Gram] = []
        self._eps = 0.0

    def __repr__(self) -> str:
        return f"Accumulator(scatter={self.scatter})"

    def update(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Add one batch, without keeping references to it.

        A refused batch changes nothing.
        """
        rows = RowsByClass.of(f"{self!r}.update(X, y)", X, y, min_classes=1)
        check_finite(rows.call, "X", rows.X)
        means = np.stack([_mean(rows.X[index]) for index in rows.by_class()])
        labels = rows.classes.tolist()
        classes, steps = self._include(rows.call, labels, rows.counts, means)

        # n rows of mean m and a step s add their scatter around m and s s^T. Both are
        # the scatter around one origin, m - s / sqrt(n): it is n (s / sqrt(n))^2
        # larger.
        origins = means - steps / np.sqrt(rows.counts)[:, None]
        for part in rows.parts():
            codes = rows.codes[part]
            block = rows.X[part].astype(np.float64)
            block -= origins[codes]
            squares = np.einsum("ij,ij->i", block, block)
            np.add.at(self._squares, classes[codes], squares)
            if self.scatter:
                for c in np.unique(codes):
                    rows_of_class = block[codes == c]
                    self._scatters[classes[c]].add(rows_of_class)
        self._eps = max(self._eps, rows.eps)
        return self

    def merge(self, other: "Accumulator") -> Self:
        """Add the rows of another accumulator, which is not changed."""
        call = f"{self!r}.merge(other)"
        if not isinstance(other, Accumulator) or other.scatter != self.scatter:
            raise ParameterError(f"{call}: other must be {self!r}, got {other!r}.")
        if not other._index:
            return self
        labels = list(other._index)
        classes, steps = self._include(call, labels, other._counts, other._means)
        self._squares[classes] += other._squares + (steps**2).sum(axis=1)
        for c, scatter, step in zip(classes, other._scatters, steps):
            self._scatters[c].merge(scatter)
            self._scatters[c].add(step[None])
        self._eps = max(self._eps, other._eps)
        return self

    def __add__(self, other: "Accumulator") -> "Accumulator":
        return Accumulator(self.scatter).merge(self).merge(other)

    def _include(
        self,
        call: str,
        labels: Sequence[Hashable],
        counts: Array,
        means: Array,
    ) -> tuple[Array, Array]:
        """Include rows of some classes in the counts and means.

        Returns the indices of the classes, and for each class a vector x: merging two
        parts of a class adds x x^T to the sum of their scatter matrices (Chan, Golub,
        LeVeque 1979).
        """
        self._check_alike(call, labels, means.shape[1])
        self.width = means.shape[1]
        for label in labels:
            self._index.setdefault(label, len(self._index))
        classes = np.array([self._index[label] for label in labels])
        self._make_room()

        old_counts = self._counts[classes]
        total = old_counts + counts
        differences = means - self._means[classes]
        steps = differences * np.sqrt(old_counts * counts / total)[:, None]
        self._means[classes] += differences * (counts / total)[:, None]
        self._counts[classes] = total
        return classes, steps

    def _check_alike(
        self,
        call: str,
        labels: Sequence[Hashable],
        width: int,
    ) -> None:
        """Refuse rows of another width, and text labels next to numbers."""
        if self.width not in (0, width):
            raise ParameterError(
                f"{call}: every batch must have {self.width} columns, got {width}."
            )
        known = next(iter(self._index), labels[0])
        # Labels are sorted later, which texts and numbers together are not.
        if isinstance(known, str) != isinstance(labels[0], str):
            raise ParameterError(
                f"{call}: labels must be of one type, got {labels[0]!r} after"
                f" {known!r}."
            )

    def _make_room(self) -> None:
        """Give every class of the index an element of the arrays."""
        new = len(self._index) - len(self._counts)
        self._counts = np.pad(self._counts, (0, new))
        self._squares = np.pad(self._squares, (0, new))
        # Before the first batch, the means have no columns.
        old_means = self._means.reshape(-1, self.width)
        new_means = np.zeros((new, self.width))
        self._means = np.concatenate([old_means, new_means])
        if self.scatter:
            self._scatters += [Gram(self.width) for _ in range(new)]

    def result(self) -> Collapse:
        """The metrics of the rows so far; more batches may follow."""
        call = f"{self!r}.result()"
        # `_check_alike` ensures that they can be compared
        labels: list[Hashable] = sorted(self._index)  # type: ignore[type-var]
        if len(labels) < 2:
            raise ParameterError(
                f"{call}: at least 2 classes must have been seen, got {len(labels)}."
            )
        order = [self._index[label] for label in labels]
        counts = self._counts[order]
        return Collapse(
            call=call,
            classes=np.array(labels),
            counts=counts,
            means=self._means[order],
            eps=self._eps,
            variances=self._squares[order] / counts,
            within=self._covariance(order) if self.scatter else None,
        )

    def _covariance(self, order: Sequence[int]) -> Array:
        """The mean over classes of the class covariances."""
        within = Gram(self.width)
        for c in order:
            weight = 1 / (self._counts[c] * len(order))
            within.merge(self._scatters[c], weight)
        return within.total()

    def second_pass(
        self, weights: ArrayLike | None = None, bias: ArrayLike | None = None
    ) -> "SecondPass":
        """Start the second pass over the same rows, in any batches and order.

        It computes NC4 for the linear head (weights, bias) or for predictions passed
        with each batch, and with `scatter=False` also NC1 and VCI.
        """
        return SecondPass(self.result(), weights, bias)


def _mean(rows: Array) -> Array:
    """The mean of rows in float64."""
    return np.asarray(rows.mean(axis=0, dtype=np.float64))


class SecondPass:
    """The second pass over the rows, given the class means.

    See `Accumulator.second_pass`.

    Examples
    --------
    >>> from imprint.collapse import Accumulator
    >>> X, y = [[0.0], [2], [4], [6]], ["cat", "cat", "dog", "dog"]
    >>> first = Accumulator().update(X, y)
    >>> second = first.second_pass(weights=[[-1.0], [1.0]], bias=[3.0, -3.0])
    >>> second.update(X, y).result().nc4
    1.0
    """

    def __init__(
        self,
        first: Collapse,
        weights: ArrayLike | None = None,
        bias: ArrayLike | None = None,
    ) -> None:
        self._first = first
        self._head = first.head(weights, bias)
        self._counts = np.zeros_like(first.counts)
        self._classified = 0
        self._agreeing = 0
        # The first pass may have computed Sw already.
        self._gram: Gram | None = None
        if first.within is None:
            self._gram = Gram(first.means.shape[1])

    def update(
        self,
        X: ArrayLike,
        y: ArrayLike,
        predictions: ArrayLike | None = None,
    ) -> Self:
        """Add one batch.

        `predictions` are labels, one per row, if no weights were given.
        """
        rows = RowsByClass.of("second_pass().update(X, y)", X, y, min_classes=1)
        check_finite(rows.call, "X", rows.X)
        classes = self._classes_of(rows)
        if predictions is not None or self._head is not None:
            self._agreeing += self._first.agreeing(rows, predictions, self._head)
            self._classified += len(rows.X)
        if self._gram is not None:
            self._add_scatter(rows, classes, self._gram)
        self._counts[classes] += rows.counts
        return self

    def _classes_of(self, rows: RowsByClass) -> Array:
        """The indices in the first pass of the classes of a batch."""
        known = self._first.classes
        insertion = np.searchsorted(known, rows.classes)
        # A label after the last one would be inserted beyond the end.
        classes = insertion.clip(max=len(known) - 1)
        has_width = rows.X.shape[1] == self._first.means.shape[1]
        if not has_width or (known[classes] != rows.classes).any():
            raise ParameterError(
                f"{rows.call}: the labels and the width must be those of the first"
                " pass."
            )
        return np.asarray(classes)

    def _add_scatter(
        self,
        rows: RowsByClass,
        classes: Array,
        gram: Gram,
    ) -> None:
        """Add the rows to Sw: class c of n_c rows weighs 1 / (n_c C) per row."""
        first = self._first
        scale = 1 / np.sqrt(first.counts * len(first.counts))
        for part in rows.parts():
            codes = classes[rows.codes[part]]
            block = rows.X[part].astype(np.float64)
            block -= first.means[codes]
            block *= scale[codes][:, None]
            gram.add(block)

    def merge(self, other: "SecondPass") -> Self:
        """Add the second pass of another worker.

        Both must follow the same first pass, with the same head.
        """
        if not self._follows_same(other):
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

    def _follows_same(self, other: "SecondPass") -> bool:
        """Whether another pass has the same first pass and the same head."""
        if (self._gram is None) != (other._gram is None):
            return False
        if (self._head is None) != (other._head is None):
            return False
        arrays = (self._first.means, *(self._head or ()))
        other_arrays = (other._first.means, *(other._head or ()))
        return all(map(np.array_equal, arrays, other_arrays))

    def __add__(self, other: "SecondPass") -> "SecondPass":
        return deepcopy(self).merge(other)

    def result(self) -> Collapse:
        """All metrics; every class must have as many rows as in the first pass."""
        first = self._first
        for label, expected, count in zip(first.classes, first.counts, self._counts):
            if expected != count:
                raise ParameterError(
                    f"second_pass().result(): class {label} must have {expected} rows"
                    f" as in the first pass, got {count}."
                )
        within = first.within if self._gram is None else self._gram.total()
        agreement = None
        if self._classified:
            agreement = self._agreeing / self._classified
        return replace(first, within=within, agreement=agreement)
