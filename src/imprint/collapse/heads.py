"""NC2, NC3 and NC4: whether class means form a simplex, a head equals them, and a classifier picks the nearest one."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from imprint.collapse.means import Means, class_means
from imprint.collapse.rows import BLOCK, as_array, group, labels, matrix
from imprint.core.errors import ParameterError
from imprint.core.types import Array
from imprint.kernels.cpu import one_blas_thread


@dataclass(frozen=True)
class NC2:
    """Deviations of the centred class means from a simplex equiangular tight frame; all zero on one."""

    equinorm: float
    """Standard deviation of the lengths over their mean."""
    equiangular: float
    """Mean over pairs of classes of |cosine + 1 / (C - 1)|."""
    etf: float
    """Frobenius distance of the Gram matrix to that of the frame, both scaled to norm one."""


def nc2(X: Any, y: Any) -> NC2:
    """Convergence of the class means, centred at their own mean, to a simplex equiangular tight frame.

    `equinorm` and `equiangular` after Papyan, Han, Donoho (2020), doi:10.1073/pnas.2015509117 (standard
    deviation with divisor C); `etf` is the measure of Zhu et al. (2021), arXiv:2105.02375, on the class
    means.

    >>> deviation = nc2([[1.0, 0], [-1, 0], [0, 1], [0, -1]], [0, 1, 2, 3])
    >>> deviation.equinorm, round(deviation.equiangular, 6), round(deviation.etf, 6)
    (0.0, 0.444444, 0.605811)
    """
    return nc2_from(class_means(group("nc2(X, y)", X, y)))


def nc2_from(means: Means) -> NC2:
    C, lengths = len(means.classes), np.linalg.norm(means.centred, axis=1)
    if lengths.min() <= means.tolerance:
        label = means.classes[lengths.argmin()]
        raise ParameterError(f"{means.call}: class {label} must not have the global mean as its mean.")
    unit = means.centred / lengths[:, None]
    cosines = (unit @ unit.T)[np.triu_indices(C, k=1)]
    scaled = means.centred / lengths.max()
    gram = scaled @ scaled.T
    frame = (np.eye(C) - 1 / C) / np.sqrt(C - 1)
    return NC2(
        equinorm=float(lengths.std() / lengths.mean()),
        equiangular=float(np.abs(cosines + 1 / (C - 1)).mean()),
        etf=float(np.linalg.norm(gram / np.linalg.norm(gram) - frame)),
    )


def nc3(X: Any, y: Any, weights: Any) -> float:
    """Self-duality, | W / |W| - M / |M| |^2: 0 when the head is the centred class means, at most 4.

    `weights` has one row per class, in the sorted order of the labels; M holds the class means centred at
    their mean.

    Papyan, Han, Donoho (2020), doi:10.1073/pnas.2015509117.

    >>> X, y = [[1.0, 5], [-1, 5]], ["cat", "dog"]
    >>> round(nc3(X, y, weights=[[3, 0], [-3, 0]]), 12)
    0.0
    >>> round(nc3(X, y, weights=[[-3, 0], [3, 0]]), 12)
    4.0
    """
    return nc3_from(class_means(group("nc3(X, y, weights)", X, y)), weights)


def nc3_from(means: Means, weights: Any) -> float:
    head = head_weights(means, weights)
    length, size = np.linalg.norm(means.centred), np.linalg.norm(head)
    if length <= means.tolerance:
        raise ParameterError(f"{means.call}: the class means must differ, here they are all equal.")
    if size == 0:
        raise ParameterError(f"{means.call}: weights must not all be zero.")
    return float(np.linalg.norm(head / size - means.centred / length) ** 2)


def head_weights(means: Means, weights: Any) -> Array:
    """The weights of a linear head, checked, in float64, one row per class.  # (C, l)"""
    head = matrix(means.call, "weights", weights).astype(np.float64)
    if head.shape != means.values.shape:
        raise ParameterError(f"{means.call}: weights must have shape {means.values.shape}, got {head.shape}.")
    if not np.isfinite(head).all():
        raise ParameterError(f"{means.call}: weights must be finite, without NaN or infinity.")
    return head


def nc4(X: Any, y: Any, *, predictions: Any = None, weights: Any = None, bias: Any = None) -> float:
    """Share of rows that a classifier assigns to the class with the nearest mean: 1 if it is the nearest-mean rule.

    Give either `predictions`, one label per row, or the `weights` (one row per class, in the sorted order
    of the labels) and `bias` of a linear head. The means are those of (X, y); a tie goes to the first class,
    up to rounding, and a prediction that is not a label of y counts as a disagreement. (Papyan, Han, Donoho
    (2020), doi:10.1073/pnas.2015509117, report the complement, the share of rows in disagreement.)

    >>> X, y = [[0.0], [1], [4], [5]], ["a", "a", "b", "b"]
    >>> nc4(X, y, predictions=["a", "a", "a", "b"])
    0.75
    >>> nc4(X, y, weights=[[-1], [1]], bias=[5, 0])
    1.0
    """
    means = class_means(group("nc4(X, y)", X, y))
    return float(NearestMean(means, weights, bias).agreeing(X, predictions) / len(X))


@dataclass(frozen=True, eq=False)
class NearestMean:
    """Compares the nearest-mean rule with predictions, or with a linear head."""

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
            raise ParameterError(f"{self.means.call}: bias must be finite, {shape} in shape, and given with weights.")
        return bias.astype(np.float64)

    def agreeing(self, X: Any, predictions: Any = None) -> int:
        """The number of rows that both rules assign to the same class."""
        X = as_array(X)
        if (predictions is None) == (self.weights is None):
            raise ParameterError(f"{self.means.call}: give either predictions or weights.")
        predicted = None if predictions is None else self._labels(predictions, len(X))
        step, same = max(1, BLOCK // X.shape[1]), 0
        with one_blas_thread():
            for a in range(0, len(X), step):
                block = X[a : a + step].astype(np.float64)
                nearest = self.means.classes[self._nearest(block)]
                chosen = self._chosen(block) if predicted is None else predicted[a : a + step]
                same += int((chosen == nearest).sum())
        return same

    def _chosen(self, block: Array) -> Array:
        """The predictions of the linear head."""
        return np.asarray(self.means.classes[np.argmax(block @ self.weights.T + self.bias, axis=1)])

    def _labels(self, predictions: Any, count: int) -> Array:
        predicted = labels(self.means.call, "predictions", predictions, count)
        texts = [array.dtype.kind in "US" for array in (predicted, self.means.classes)]
        if texts[0] != texts[1]:
            raise ParameterError(f"{self.means.call}: predictions must be labels of the same type as y.")
        return predicted

    def _nearest(self, block: Array) -> Array:
        centred = self.means.centred
        scores = (block - self.means.centre) @ centred.T - np.einsum("ij,ij->i", centred, centred) / 2
        return np.asarray(np.argmax(scores, axis=1))
