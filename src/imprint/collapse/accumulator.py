"""Neural collapse of data that do not fit into memory: batch by batch, on any number of workers."""

from copy import deepcopy
from typing import Any, Self

import numpy as np

from imprint.collapse.metrics import Collapse, Means
from imprint.collapse.rows import group
from imprint.collapse.second_pass import SecondPass
from imprint.collapse.sums import ClassSums, Gram
from imprint.core.errors import ParameterError
from imprint.core.types import Array


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
