"""Metrics of neural collapse as functions of labelled rows in memory; docs/collapse.md
has definitions and references.

The docstrings write m_c for the mean of class c, h_G for the mean of the C class means,
and M for the rows m_c - h_G. All classes have equal weights, whatever their sizes.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from imprint.collapse.accumulator import SecondPass
from imprint.collapse.metrics import NC2, Collapse
from imprint.collapse.rows import RowsByClass
from imprint.core.arrays import Array, to_numpy
from imprint.core.errors import ParameterError


def nc1(X: Any, y: Any, legacy: bool = False) -> float:
    """Variability collapse, trace(Sw Sb^+) / C: zero when every row equals its class
    mean.

    Sw is the mean over classes of the class covariances, Sb the covariance of the class
    means around h_G. Shifts and rotations of X do not change NC1. `legacy=True` returns
    the value of the code published with the paper: its h_G is the mean of all rows, and
    its Sw is too large by h_G h_G^T, so that the value depends on the origin.
    """
    rows = RowsByClass.of("nc1(X, y)", X, y)
    collapse = Collapse.of(rows)
    whitening, offset = collapse.whitening(legacy)
    # the rounding of float32 input exceeds that of a float64 product
    centre = 0.0 if rows.eps else collapse.centre
    projected_means = (collapse.means - centre) @ whitening  # (C, r), with r < C

    def residuals(codes: Array, block: Array) -> Array:
        if not rows.eps:
            block -= centre
        return np.asarray(block @ whitening - projected_means[codes])

    return float(np.mean(rows.mean_squares(residuals))) + offset


def nc2(X: Any, y: Any) -> NC2:
    """Convergence of the centred class means to a simplex equiangular tight frame."""
    return Collapse.of(RowsByClass.of("nc2(X, y)", X, y)).nc2


def nc3(X: Any, y: Any, weights: Any) -> float:
    """Self-duality, | W / |W| - M / |M| |^2: 0 when the head W equals the centred class
    means up to scale, maximum 4.

    `weights` has one row per class, in the sorted order of the labels.
    """
    return Collapse.of(RowsByClass.of("nc3(X, y, weights)", X, y)).nc3(weights)


def nc4(
    X: Any, y: Any, *, predictions: Any = None, weights: Any = None, bias: Any = None
) -> float:
    """Share of rows that a classifier assigns to the class with the nearest mean: 1 for
    the nearest-mean rule itself.

    Give either `predictions`, one label per row, or the `weights` (one row per class,
    in the sorted order of the labels) and `bias` of a linear head. A tie goes to the
    first class, up to rounding. A prediction that is not a label of y counts as a
    disagreement. Papyan, Han, Donoho (2020) report the complement, the share of
    disagreements.
    """
    rows = RowsByClass.of("nc4(X, y)", X, y)
    collapse = Collapse.of(rows)
    return collapse.agreeing(rows, predictions, collapse.head(weights, bias)) / len(
        rows.X
    )


def cdnv(X: Any, y: Any) -> float:
    """Class-distance-normalised variance: mean over pairs of classes of (v_i + v_j) /
    (2 |m_i - m_j|^2).

    v_i is the mean squared distance of the rows of class i to m_i.
    """
    rows = RowsByClass.of("cdnv(X, y)", X, y)
    collapse = Collapse.of(rows)
    variances = rows.mean_squares(
        lambda codes, block: np.subtract(block, collapse.means[codes], out=block)
    )
    return replace(collapse, variances=variances).cdnv


def vci(X: Any, y: Any) -> float:
    """Variability collapse index, 1 - trace(St^+ Sb) / rank(Sb): 0 when collapsed, 1
    without any collapse.

    Sw and Sb are those of `nc1`, and St = Sw + Sb. Invertible linear maps of X do not
    change VCI. Unlike the other functions, this one stores l x l matrices.
    """
    rows = RowsByClass.of("vci(X, y)", X, y)
    return SecondPass(Collapse.of(rows)).update(rows.X, y).result().vci


@dataclass(frozen=True)
class GainFit:
    """Rank correlation of gain and NC1, and the line gain = intercept + slope *
    log10(NC1).
    """

    n: int
    spearman: float
    p_value: float
    slope: float
    intercept: float
    r2: float

    def predict(self, nc1: float) -> float:
        """The gain on the line."""
        return float(self.intercept + self.slope * np.log10(nc1))


def gain_fit(nc1_values: Any, gains: Any) -> GainFit:
    """Fit the gains in accuracy of several tasks (such as k = 5 over k = 1) to their
    NC1.

    Computes Spearman's rank correlation with its two-sided p-value (Student's t, ties
    averaged), and ordinary least squares of the gain on log10(NC1) with the share of
    variance explained.
    """
    from scipy import stats

    x, gain = np.asarray(to_numpy(nc1_values)), np.asarray(to_numpy(gains))
    if x.ndim != 1 or x.shape != gain.shape or len(x) < 3:
        rule = (
            f"both must be lists of the same number of values, 3 or more, got {x.shape}"
            f" and {gain.shape}"
        )
    elif x.dtype.kind not in "iuf" or gain.dtype.kind not in "iuf":
        rule = f"both must hold real numbers, got {x.dtype} and {gain.dtype}"
    elif not (np.isfinite(x).all() and np.isfinite(gain).all() and (x > 0).all()):
        rule = "all values must be finite and nc1_values positive"
    elif np.ptp(x) == 0 or np.ptp(gain) == 0:
        rule = "neither may be constant, a correlation is then not defined"
    else:
        rank, line = stats.spearmanr(x, gain), stats.linregress(np.log10(x), gain)
        values = rank.statistic, rank.pvalue, line.slope, line.intercept, line.rvalue**2
        return GainFit(len(x), *map(float, values))
    raise ParameterError(f"gain_fit(nc1_values, gains): {rule}.")
