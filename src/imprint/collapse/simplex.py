"""How near the class means, and the weights of a head, come to the corners of a regular simplex."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from imprint.collapse.means import Means, class_means
from imprint.collapse.rows import group, matrix
from imprint.core.errors import ParameterError
from imprint.core.types import Array


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
    """The weights of a linear head in float64, one row per class.  # (C, l)"""
    head = matrix(means.call, "weights", weights).astype(np.float64)
    if head.shape != means.values.shape:
        raise ParameterError(f"{means.call}: weights must have shape {means.values.shape}, got {head.shape}.")
    if not np.isfinite(head).all():
        raise ParameterError(f"{means.call}: weights must be finite, without NaN or infinity.")
    return head
