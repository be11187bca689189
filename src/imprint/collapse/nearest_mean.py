"""Whether a classifier has become the rule of the nearest class mean."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from imprint.collapse.means import Means, class_means
from imprint.collapse.rows import BLOCK, as_array, group, labels, narrow_product
from imprint.collapse.simplex import head_weights
from imprint.core.errors import ParameterError
from imprint.core.types import Array


def nc4(X: Any, y: Any, *, predictions: Any = None, weights: Any = None, bias: Any = None) -> float:
    """Share of rows that a classifier puts into the class whose mean is nearest: 1 when it is that rule.

    Give either `predictions`, one label per row, or the `weights` (one row per class, in the sorted order
    of the labels) and `bias` of a linear head. The means are those of (X, y); a tie goes to the first class,
    up to rounding, and a prediction that is no label of y agrees with nothing. (Papyan, Han, Donoho
    (2020), doi:10.1073/pnas.2015509117, report the complement, the share of rows in disagreement.)

    >>> X, y = [[0.0], [1], [4], [5]], ["a", "a", "b", "b"]
    >>> nc4(X, y, predictions=["a", "a", "a", "b"])
    0.75
    >>> nc4(X, y, weights=[[-1], [1]], bias=[5, 0])
    1.0
    """
    means = class_means(group("nc4(X, y)", X, y))
    return float(Judge(means, weights, bias).agreeing(X, predictions) / len(X))


@dataclass(frozen=True, eq=False)
class Judge:
    """Compare the nearest class mean with predictions, or with a linear head."""

    means: Means
    weights: Any = None
    bias: Any = None

    def __post_init__(self) -> None:
        head = None if self.weights is None else head_weights(self.means, self.weights)
        object.__setattr__(self, "weights", head)
        object.__setattr__(self, "bias", self._bias())

    def _bias(self) -> Array:
        shape = (len(self.means.classes),)
        if self.bias is None:
            return np.zeros(shape)
        bias = as_array(self.bias)
        if self.weights is None or bias.shape != shape or not np.isfinite(bias).all():
            raise ParameterError(f"{self.means.call}: bias must be finite, {shape} in shape, beside weights.")
        return bias.astype(np.float64)

    def agreeing(self, X: Any, predictions: Any = None) -> int:
        """How many rows the two rules put into the same class."""
        X = as_array(X)
        if (predictions is None) == (self.weights is None):
            raise ParameterError(f"{self.means.call}: give either predictions or weights.")
        said = None if predictions is None else self._labels(predictions, len(X))
        step, same = max(1, BLOCK // X.shape[1]), 0
        for a in range(0, len(X), step):
            block = X[a : a + step].astype(np.float64)
            near = self._nearest(block)
            if said is None:
                same += int((np.argmax(narrow_product(block, self.weights.T) + self.bias, axis=1) == near).sum())
            else:
                same += int((said[a : a + step] == self.means.classes[near]).sum())
        return same

    def _labels(self, predictions: Any, count: int) -> Array:
        said = labels(self.means.call, "predictions", predictions, count)
        texts = [array.dtype.kind in "US" for array in (said, self.means.classes)]
        if texts[0] != texts[1]:
            raise ParameterError(f"{self.means.call}: predictions must be labels of the same type as y.")
        return said

    def _nearest(self, block: Array) -> Array:
        centred = self.means.centred
        scores = narrow_product(block - self.means.centre, centred.T) - np.einsum("ij,ij->i", centred, centred) / 2
        return np.asarray(np.argmax(scores, axis=1))
