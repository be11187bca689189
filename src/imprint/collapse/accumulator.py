"""Neural collapse of data that do not fit into memory: batch by batch, on any number of workers."""

from copy import deepcopy
from typing import Any, Self

import numpy as np

from imprint.collapse.metrics import Collapse, Means
from imprint.collapse.rows import GroupedRows, as_array, block_slices, check_labels, group
from imprint.collapse.sums import ClassSums, Gram
from imprint.core.errors import ParameterError
from imprint.core.types import Array
from imprint.kernels.cpu import one_blas_thread


class Accumulator:
    """Batches in, neural-collapse metrics out.

    By default every class stores its scatter matrix, because the weight of a class (one over its size) is
    known only at the end: at most 16 l^2 bytes per class, less for a class of fewer than l rows. Then one
    pass computes NC1, NC2, NC3, VCI and CDNV. With `scatter=False` a class stores only its mean, 8 l bytes.
    Then one pass computes NC2, NC3 and CDNV, and a second pass, which stores a single l x l matrix, computes
    the rest. NC4 always needs the second pass.

    Each worker fills one accumulator; `a.merge(b)` and `a + b` combine them, in any order. Accumulators can be
    pickled.

    >>> seen = Accumulator().update([[0.0], [4]], [0, 1]).update([[2.0], [6]], [0, 1])
    >>> round(seen.result().nc1, 12)
    0.125
    >>> again = seen.second_pass(weights=[[-1], [1]], bias=[6, 0])
    >>> again.update([[0.0], [2]], [0, 0]).update([[4.0], [6]], [1, 1]).result().nc4
    1.0
    """

    def __init__(self, scatter: bool = True) -> None:
        self.scatter = bool(scatter)
        self._classes: dict[Any, ClassSums] = {}
        self._eps = 0.0

    def __repr__(self) -> str:
        return f"Accumulator(scatter={self.scatter})"

    @property
    def width(self) -> int | None:
        """The number of columns, known once a batch has been seen."""
        return next((sums.width for sums in self._classes.values()), None)

    def update(self, X: Any, y: Any) -> Self:
        """Add one batch, without keeping references to it. A refused batch changes nothing."""
        rows = group(f"{self!r}.update(X, y)", X, y, at_least=1)
        width, labels = rows.X.shape[1], rows.classes.tolist()
        if not np.isfinite(rows.X).all():
            raise ParameterError(f"{rows.call}: X must be finite, without NaN or infinity.")
        self._check(rows.call, width, labels)
        for label, of_class in zip(labels, rows.by_class()):
            self._sums(label, width).add(of_class)
        self._eps = max(self._eps, rows.eps)
        return self

    def merge(self, other: "Accumulator") -> Self:
        """Add the rows of another accumulator, which is not changed."""
        call = f"{self!r}.merge(other)"
        if not isinstance(other, Accumulator) or other.scatter != self.scatter:
            raise ParameterError(f"{call}: other must be {self!r}, got {other!r}.")
        if other.width is not None:
            self._check(call, other.width, list(other._classes))
        for label, sums in list(other._classes.items()):
            self._sums(label, sums.width).merge(deepcopy(sums) if other is self else sums)
        self._eps = max(self._eps, other._eps)
        return self

    def __add__(self, other: "Accumulator") -> "Accumulator":
        return deepcopy(self).merge(other)

    def result(self) -> Collapse:
        """The metrics of the rows so far; more batches may follow."""
        call, labels = f"{self!r}.result()", sorted(self._classes)
        if len(labels) < 2:
            raise ParameterError(f"{call}: at least 2 classes must have been seen, got {len(labels)}.")
        states = [self._classes[label] for label in labels]
        counts, values, variances = map(np.array, zip(*(sums.total() for sums in states)))
        means = Means(call, np.array(labels), counts, values, self._eps)
        return Collapse(means, variances, _pooled(states, means) if self.scatter else None)

    def second_pass(self, weights: Any = None, bias: Any = None) -> "SecondPass":
        """Start the second pass over the same rows, in any batches and order.

        It computes NC4 for the linear head (weights, bias) or for predictions passed with each batch, and NC1
        and VCI if the first pass had `scatter=False`.
        """
        return SecondPass(self.result(), weights, bias)

    def _sums(self, label: Any, width: int) -> ClassSums:
        return self._classes.setdefault(label, ClassSums(width, self.scatter))

    def _check(self, call: str, width: int, labels: list[Any]) -> None:
        if self.width not in (None, width):
            raise ParameterError(f"{call}: every batch must have {self.width} columns, got {width}.")
        known = next(iter(self._classes), labels[0])
        if isinstance(known, str) != isinstance(labels[0], str):
            raise ParameterError(f"{call}: labels must be of one type, got {labels[0]!r} after {known!r}.")


def _pooled(states: list[ClassSums], means: Means) -> Array:
    """Sw: the mean over classes of the class covariances.  # (l, l)"""
    gram, matrices = Gram(states[0].width), np.zeros((states[0].width,) * 2)
    for sums, count, mean in zip(states, means.counts, means.values):
        if sums.matrix is not None:
            matrices += sums.matrix / count
        for block in sums.residuals(mean):
            gram.add(block / np.sqrt(count))
    return (gram.total() + matrices) / len(states)


class SecondPass:
    """The second pass over the rows, given the class means: see `Accumulator.second_pass`.

    With `covariance=False` it computes NC4 only.
    """

    def __init__(self, first: Collapse, weights: Any = None, bias: Any = None, covariance: bool = True) -> None:
        self._first = first
        self._weights: Any = None if weights is None else first.means.head(weights)
        self._bias = self._checked(bias)
        self._counts = np.zeros_like(first.means.counts)
        self._classified = self._agreeing = 0
        self._gram = Gram(first.means.values.shape[1]) if covariance and first.within is None else None

    def update(self, X: Any, y: Any, predictions: Any = None) -> Self:
        """Add one batch; `predictions` are labels, one per row, if no weights were given."""
        call, means = "second_pass().update(X, y)", self._first.means
        rows = group(call, X, y, at_least=1)
        same_labels = (means.classes[self._positions(rows)] == rows.classes).all()
        if not same_labels or rows.X.shape[1] != means.values.shape[1]:
            raise ParameterError(f"{call}: the labels and the width must be those of the first pass.")
        if not np.isfinite(rows.X).all():
            raise ParameterError(f"{call}: X must be finite, without NaN or infinity.")
        return self.add(rows, predictions)

    def add(self, rows: GroupedRows, predictions: Any = None) -> Self:
        """Add rows that were checked."""
        means, where = self._first.means, self._positions(rows)
        if predictions is not None or self._weights is not None:
            self._agreeing += self._agreements(rows.X, predictions)
            self._classified += len(rows.X)
        if self._gram is not None:
            weights = 1 / np.sqrt(means.counts * len(means.counts))
            for codes, block in rows.residuals(means.values[where]):
                self._gram.add(block * weights[where[codes]][:, None])
        self._counts[where] += rows.counts
        return self

    def merge(self, other: "SecondPass") -> Self:
        """Add the second pass of another worker; both must follow the same first pass, with the same head."""
        call, same_kind = "second_pass().merge(other)", (self._gram is None) == (other._gram is None)
        if not same_kind or not np.array_equal(self._first.means.values, other._first.means.values):
            raise ParameterError(f"{call}: both must follow the same first pass.")
        if not (np.array_equal(self._weights, other._weights) and np.array_equal(self._bias, other._bias)):
            raise ParameterError(f"{call}: both must have the same head, weights and bias.")
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
        for label, expected, count in zip(first.means.classes, first.means.counts, self._counts):
            if expected != count:
                rule = f"class {label} must have {expected} rows as in the first pass, got {count}"
                raise ParameterError(f"second_pass().result(): {rule}.")
        within = first.within if self._gram is None else self._gram.total().copy()
        agreement = self._agreeing / self._classified if self._classified else None
        return Collapse(first.means, first.variances, within, agreement)

    def _positions(self, rows: GroupedRows) -> Array:
        """For each class of the rows, its index in the classes of the first pass, if it is one of them."""
        classes = self._first.means.classes
        return np.searchsorted(classes, rows.classes).clip(max=len(classes) - 1)

    def _checked(self, bias: Any) -> Array:
        means = self._first.means
        shape = means.classes.shape
        if bias is None:
            return np.zeros(shape)
        values = as_array(bias)
        if self._weights is None or values.shape != shape or not np.isfinite(values).all():
            raise means.error(f"bias must be finite, {shape} in shape, and given with weights")
        return values.astype(np.float64)

    def _agreements(self, X: Array, predictions: Any) -> int:
        """The number of rows that the classifier and the nearest-mean rule assign to the same class."""
        means = self._first.means
        predicted = None if predictions is None else check_labels(means.call, "predictions", predictions, len(X))
        if (predicted is None) == (self._weights is None):
            raise means.error("give either predictions or weights")
        if predicted is not None and (predicted.dtype.kind in "US") != (means.classes.dtype.kind in "US"):
            raise means.error("predictions must be labels of the same type as y")
        offsets, agreeing = np.einsum("ij,ij->i", means.centred, means.centred) / 2, 0
        with one_blas_thread():
            for part in block_slices(*X.shape):
                block = X[part].astype(np.float64)
                nearest = np.argmax((block - means.centre) @ means.centred.T - offsets, axis=1)
                if predicted is None:
                    agreeing += int((np.argmax(block @ self._weights.T + self._bias, axis=1) == nearest).sum())
                else:
                    agreeing += int((predicted[part] == means.classes[nearest]).sum())
        return agreeing
