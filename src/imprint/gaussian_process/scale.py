"""The scale of distances: twice the variance of all training rows, from centred moments
that can be merged.

Sums of squares would cancel where rows have a large common offset; squared distances
from the mean do not. Moments of parts are merged as in T. F. Chan, G. H. Golub, R. J.
LeVeque, 1979.
"""

from collections.abc import Sequence

import numpy as np

from imprint.core.arrays import AnyArray, Array, State, dtype_name, namespace
from imprint.kernels.rows import centred_moments

# of a system that is solved again when classes are added or removed; larger are updated
MAX_RESOLVED_PROXIES = 4096
# relative to the largest mean; a smaller standard deviation is rounding error
MIN_DEVIATION = 2.0**-70
# relative to sums of squares that were not centred; a smaller one is rounding error
MIN_SCATTER = 1e-12


def moments(X: AnyArray, weight: Array | None = None) -> State:
    """Mean, sum of squared distances from it, and number of rows (their total
    weight).
    """
    mean, scatter, rows = centred_moments(X, weight)
    return {"mean": mean, "scatter": np.array([scatter]), "rows": np.array([rows])}


def merge_moments(parts: Sequence[State]) -> State:
    """The moments of all rows from those of disjoint parts."""
    centred = [_centred(part) for part in parts]
    rows = np.array([part["rows"][0] for part in centred])
    means = np.stack([part["mean"] for part in centred])  # (parts, d)
    first = means[0]
    with np.errstate(over="ignore"):
        mean = first + (rows / rows.sum()) @ (means - first)
        squares = np.square(means - mean).sum(axis=1)
    scatter = sum(part["scatter"][0] for part in centred) + rows @ squares
    return {
        "mean": mean,
        "scatter": np.array([scatter]),
        "rows": rows.sum(keepdims=True),
    }


def remove_moments(sums: State, part: State) -> State:
    """The moments of the other rows: the inverse of `merge_moments`."""
    both = _centred(sums)
    removed = _centred(part)
    rows = both["rows"] - removed["rows"]
    offset = removed["mean"] - both["mean"]
    mean = both["mean"] - removed["rows"] / rows * offset
    between = removed["rows"] * both["rows"] / rows * (offset @ offset)
    scatter = both["scatter"] - removed["scatter"] - between
    # rounding can make the scatter of equal rows negative
    return {"mean": mean, "scatter": np.maximum(scatter, 0.0), "rows": rows}


def _centred(part: State) -> State:
    """Moments as they are, or from sums of rows and of squares as older files hold
    them.
    """
    rows = part["rows"]
    mean = part["mean"] if "mean" in part else part["total"] / rows
    if "scatter" in part:
        return {"mean": mean, "scatter": part["scatter"], "rows": rows}
    scatter = part["square"] - rows * (mean @ mean)
    return {
        "mean": mean,
        "scatter": np.where(scatter > MIN_SCATTER * part["square"], scatter, 0.0),
        "rows": rows,
    }


def scale(sums: State) -> float:
    """Twice the mean squared distance of rows from their mean; 1 if that is not more
    than rounding error.
    """
    deviation = variance(sums) ** 0.5
    largest = float(abs(_centred(sums)["mean"]).max())
    if deviation > MIN_DEVIATION * largest:
        return 2 * variance(sums)
    return 1.0


def variance(sums: State) -> float:
    """The mean squared distance of rows from their mean."""
    part = _centred(sums)
    with np.errstate(over="ignore"):
        return float(part["scatter"][0] / part["rows"][0])


def rounded_scale(s: float) -> float:
    """The nearest power of 2^(1/4), so that it seldom changes when classes are added or
    removed.
    """
    return float(2 ** (np.round(4 * np.log2(s)) / 4))


def scale_for(sums: State, count: int) -> float:
    """The scale of distances between this number of proxies, rounded where the system
    is updated.
    """
    if is_updated(count):
        return rounded_scale(scale(sums))
    return scale(sums)


def is_updated(count: int) -> bool:
    """Whether the system of this number of proxies is updated when classes are added or
    removed.
    """
    return count > MAX_RESOLVED_PROXIES


def differ(W: AnyArray) -> bool:
    """Whether some rows differ by more than rounding error."""
    amax = namespace(W).amax
    rounding = 4 * np.finfo(dtype_name(W)).eps * amax(abs(W), axis=0)
    spread = amax(abs(W - W[0]), axis=0)
    return bool((spread > rounding).any())
