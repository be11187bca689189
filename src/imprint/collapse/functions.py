"""Metrics of neural collapse as functions of labelled rows in memory.

docs/collapse.md has definitions and references. The docstrings write m_c for the mean
of class c, h_G for the mean of the C class means, and M for the rows m_c - h_G. All
classes have equal weights, whatever their sizes.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from imprint.collapse.accumulator import SecondPass
from imprint.collapse.metrics import NC2, Collapse
from imprint.collapse.rows import RowsByClass
from imprint.core.arrays import Array, to_numpy
from imprint.core.errors import ParameterError


def nc1(
    X: ArrayLike,
    y: ArrayLike,
    legacy: bool = False,
) -> float:
    """Variability collapse, trace(Sw Sb^+) / C.

    Sw is the mean over classes of the class covariances, Sb the covariance of the class
    means around h_G. Shifts and rotations of X do not change NC1.

    Parameters
    ----------
    X : array-like of shape (n, l)
        Embeddings.
    y : array-like of shape (n,)
        Their labels.
    legacy : bool
        Whether to return the value of the code published with the paper: its h_G is the
        mean of all rows, and its Sw is too large by h_G h_G^T, so that the value
        depends on the origin. [default: False]

    Returns
    -------
    float
        Zero when every row equals its class mean.

    Examples
    --------
    >>> from imprint.collapse import nc1
    >>> X, y = [[0.0], [2], [4], [6]], [0, 0, 1, 1]
    >>> round(nc1(X, y), 12), round(nc1(X, y, legacy=True), 12)
    (0.125, 1.25)
    """
    rows = RowsByClass.of("nc1(X, y)", X, y)
    collapse = Collapse.of(rows)
    whitening, offset = collapse.whitening(legacy)
    # Centring first makes the product more accurate. For float32 input, the rounding of
    # the input exceeds that of a float64 product, so the pass over the rows is saved.
    centres_rows = not rows.eps
    centre = collapse.centre if centres_rows else 0.0
    projected_means = (collapse.means - centre) @ whitening  # (C, r), with r < C

    def residuals(codes: Array, block: Array) -> Array:
        if centres_rows:
            block -= centre
        projected = block @ whitening
        return np.asarray(projected - projected_means[codes])

    by_class = rows.mean_squares(residuals)
    return float(np.mean(by_class)) + offset


def nc2(X: ArrayLike, y: ArrayLike) -> NC2:
    """Convergence of the centred class means to a simplex equiangular tight frame.

    Parameters
    ----------
    X : array-like of shape (n, l)
        Embeddings.
    y : array-like of shape (n,)
        Their labels.

    Returns
    -------
    NC2
        Three deviations from such a frame.

    Examples
    --------
    >>> from imprint.collapse import nc2
    >>> deviation = nc2([[1.0, 0], [-1, 0], [0, 1], [0, -1]], [0, 1, 2, 3])
    >>> deviation.equinorm, round(deviation.equiangular, 6), round(deviation.etf, 6)
    (0.0, 0.444444, 0.605811)
    """
    rows = RowsByClass.of("nc2(X, y)", X, y)
    return Collapse.of(rows).nc2


def nc3(
    X: ArrayLike,
    y: ArrayLike,
    weights: ArrayLike,
) -> float:
    """Self-duality, | W / |W| - M / |M| |^2.

    Parameters
    ----------
    X : array-like of shape (n, l)
        Embeddings.
    y : array-like of shape (n,)
        Their labels.
    weights : array-like of shape (C, l)
        The head W: one row per class, in the sorted order of the labels.

    Returns
    -------
    float
        0 when the head equals the centred class means up to scale, maximum 4.

    Examples
    --------
    >>> from imprint.collapse import nc3
    >>> X, y = [[1.0, 5], [-1, 5]], ["cat", "dog"]
    >>> round(nc3(X, y, weights=[[3, 0], [-3, 0]]), 12)
    0.0
    >>> round(nc3(X, y, weights=[[-3, 0], [3, 0]]), 12)
    4.0
    """
    rows = RowsByClass.of("nc3(X, y, weights)", X, y)
    return Collapse.of(rows).nc3(weights)


def nc4(
    X: ArrayLike,
    y: ArrayLike,
    *,
    predictions: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    bias: ArrayLike | None = None,
) -> float:
    """Share of rows that a classifier assigns to the class with the nearest mean.

    Give either predictions or a linear head. A tie goes to the first class, up to
    rounding. A prediction that is not a label of y counts as a disagreement. Papyan,
    Han, Donoho (2020) report the complement, the share of disagreements.

    Parameters
    ----------
    X : array-like of shape (n, l)
        Embeddings.
    y : array-like of shape (n,)
        Their labels.
    predictions : array-like of shape (n,), optional
        The label that the classifier assigns to each row.
    weights : array-like of shape (C, l), optional
        A linear head: one row per class, in the sorted order of the labels.
    bias : array-like of shape (C,), optional
        The bias of the head. [default: zeros]

    Returns
    -------
    float
        1 for the nearest-mean rule itself.

    Examples
    --------
    >>> from imprint.collapse import nc4
    >>> X, y = [[0.0], [1], [4], [5]], ["a", "a", "b", "b"]
    >>> nc4(X, y, predictions=["a", "a", "a", "b"])
    0.75
    >>> nc4(X, y, weights=[[-1], [1]], bias=[5, 0])
    1.0
    """
    rows = RowsByClass.of("nc4(X, y)", X, y)
    collapse = Collapse.of(rows)
    head = collapse.head(weights, bias)
    return collapse.agreeing(rows, predictions, head) / len(rows.X)


def cdnv(X: ArrayLike, y: ArrayLike) -> float:
    """Class-distance-normalised variance.

    It is the mean over pairs of classes of (v_i + v_j) / (2 |m_i - m_j|^2), where v_i
    is the mean squared distance of the rows of class i to m_i.

    Parameters
    ----------
    X : array-like of shape (n, l)
        Embeddings.
    y : array-like of shape (n,)
        Their labels.

    Returns
    -------
    float
        0 when every row equals its class mean.

    Examples
    --------
    >>> from imprint.collapse import cdnv
    >>> cdnv([[0.0], [2], [4], [6]], [0, 0, 1, 1])
    0.0625
    """
    rows = RowsByClass.of("cdnv(X, y)", X, y)
    collapse = Collapse.of(rows)

    def deviations(codes: Array, block: Array) -> Array:
        block -= collapse.means[codes]
        return block

    variances = rows.mean_squares(deviations)
    return replace(collapse, variances=variances).cdnv


def vci(X: ArrayLike, y: ArrayLike) -> float:
    """Variability collapse index, 1 - trace(St^+ Sb) / rank(Sb).

    Sw and Sb are those of `nc1`, and St = Sw + Sb. Invertible linear maps of X do not
    change VCI. Unlike the other functions, this one stores l x l matrices.

    Parameters
    ----------
    X : array-like of shape (n, l)
        Embeddings.
    y : array-like of shape (n,)
        Their labels.

    Returns
    -------
    float
        0 when collapsed, 1 without any collapse.

    Examples
    --------
    >>> from imprint.collapse import vci
    >>> round(vci([[0.0], [2], [4], [6]], [0, 0, 1, 1]), 12)
    0.2
    """
    rows = RowsByClass.of("vci(X, y)", X, y)
    second_pass = SecondPass(Collapse.of(rows))
    return second_pass.update(rows.X, y).result().vci


@dataclass(frozen=True)
class GainFit:
    """Rank correlation of gain and NC1, and the line gain = intercept + slope *
    log10(NC1).

    Examples
    --------
    >>> from imprint.collapse import gain_fit
    >>> nc1_values = [0.1, 1.0, 10.0]  # of three data sets
    >>> gains = [0.5, 2.0, 3.5]  # of several proxies over one, on each
    >>> fit = gain_fit(nc1_values, gains)
    >>> round(fit.spearman, 6), round(fit.slope, 6), round(fit.predict(100.0), 6)
    (1.0, 1.5, 5.0)
    """

    n: int  # number of values
    spearman: float  # rank correlation, ties averaged
    p_value: float  # of the rank correlation: two-sided, Student's t
    slope: float  # of the line
    intercept: float  # of the line
    r2: float  # the share of variance that the line explains

    def predict(self, nc1: float) -> float:
        """The gain on the line."""
        return float(self.intercept + self.slope * np.log10(nc1))


def gain_fit(nc1_values: ArrayLike, gains: ArrayLike) -> GainFit:
    """Fit the gains in accuracy of several tasks to their NC1.

    A gain is for example the accuracy with k = 5 minus that with k = 1. The line is
    that of ordinary least squares.

    Parameters
    ----------
    nc1_values : array-like of shape (tasks,)
        NC1 of each task, positive; three or more.
    gains : array-like of shape (tasks,)
        The gain of each task.

    Returns
    -------
    GainFit
        Spearman's rank correlation, and the line.

    Examples
    --------
    >>> from imprint.collapse import gain_fit
    >>> fit = gain_fit([0.1, 1, 10, 100], [1, 3, 5, 7])
    >>> fit.spearman, round(fit.slope, 6), round(fit.r2, 6), round(fit.predict(1000), 6)
    (1.0, 2.0, 1.0, 9.0)
    """
    from scipy import stats

    x = np.asarray(to_numpy(nc1_values))
    gain = np.asarray(to_numpy(gains))
    rule = _broken_rule(x, gain)
    if rule:
        raise ParameterError(f"gain_fit(nc1_values, gains): {rule}.")
    rank = stats.spearmanr(x, gain)
    line = stats.linregress(np.log10(x), gain)
    return GainFit(
        n=len(x),
        spearman=float(rank.statistic),
        p_value=float(rank.pvalue),
        slope=float(line.slope),
        intercept=float(line.intercept),
        r2=float(line.rvalue**2),
    )


def _broken_rule(x: Array, gain: Array) -> str | None:
    """The rule of `gain_fit` that the values break."""
    # A line always passes through two points.
    if x.ndim != 1 or x.shape != gain.shape or len(x) < 3:
        return (
            "both must be lists of the same number of values, 3 or more, got"
            f" {x.shape} and {gain.shape}"
        )
    if x.dtype.kind not in "iuf" or gain.dtype.kind not in "iuf":
        return f"both must hold real numbers, got {x.dtype} and {gain.dtype}"
    all_finite = np.isfinite(x).all() and np.isfinite(gain).all()
    if not all_finite or not (x > 0).all():
        return "all values must be finite and nc1_values positive"
    if np.ptp(x) == 0 or np.ptp(gain) == 0:
        return "neither may be constant, a correlation is then not defined"
    return None
