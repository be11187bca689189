"""The scale of distances: twice the variance of all training rows, from centred moments that can be merged.

Sums of squares would cancel where rows have a large common offset; squared distances from the mean do not. Moments of
parts are merged as in T. F. Chan, G. H. Golub, R. J. LeVeque, 1979.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from imprint.core.types import Array, State
from imprint.kernels.rows import centred_moments

ROUNDING = 2.0**-90
"""Variances below this share of the squared mean are rounding."""


def moments(X: Any, weight: Array | None = None) -> State:
    """Mean, sum of squared distances from it, and number of rows (their total weight)."""
    mean, scatter, rows = centred_moments(X, weight)
    return {"mean": mean, "scatter": np.array([scatter]), "rows": np.array([rows])}


def merge_moments(parts: Sequence[State]) -> State:
    """The moments of all rows from those of disjoint parts.

    >>> rows = np.array([[1.0], [2.0], [6.0]])
    >>> merge_moments([moments(rows[:1]), moments(rows[1:])])
    {'mean': array([3.]), 'scatter': array([14.]), 'rows': array([3.])}
    """
    centred = [_centred(part) for part in parts]
    rows = np.array([part["rows"][0] for part in centred])
    means = np.stack([part["mean"] for part in centred])  # (parts, d)
    first = means[0]
    mean = first + (rows / rows.sum()) @ (means - first)
    apart = np.square(means - mean).sum(axis=1)
    scatter = sum(part["scatter"][0] for part in centred) + rows @ apart
    return {"mean": mean, "scatter": np.array([scatter]), "rows": rows.sum(keepdims=True)}


def _centred(part: State) -> State:
    """Moments as they are, or from sums of rows and of squares as older files hold them."""
    if "mean" in part and "scatter" in part:
        return part
    rows = part["rows"]
    mean = part["mean"] if "mean" in part else part["total"] / rows
    scatter = part["scatter"] if "scatter" in part else np.maximum(part["square"] - rows * (mean @ mean), 0)
    return {"mean": mean, "scatter": scatter, "rows": rows}


def scale(sums: State) -> float:
    """Twice the mean squared distance of rows from their mean; 1 where that is no more than rounding.

    >>> scale({"mean": np.zeros(2), "scatter": np.array([4.0]), "rows": np.array([4.0])})
    2.0
    """
    part = _centred(sums)
    with np.errstate(over="ignore"):
        variance = float(part["scatter"][0] / part["rows"][0])
        threshold = ROUNDING * float(part["mean"] @ part["mean"])
    return 2 * variance if variance > threshold else 1.0


def rounded_scale(s: float) -> float:
    """The nearest power of 2^(1/4), so that it seldom changes when classes are added or removed.

    >>> rounded_scale(1.1), rounded_scale(0.98)
    (1.189207115002721, 1.0)
    """
    return float(2 ** (np.round(4 * np.log2(s)) / 4))
