"""Metrics of neural collapse as functions of labelled rows in memory."""

from typing import Any

import numpy as np

from imprint.collapse.accumulator import SecondPass
from imprint.collapse.metrics import NC2, Collapse, class_means
from imprint.collapse.rows import group
from imprint.core.types import Array


def nc1(X: Any, y: Any, legacy: bool = False) -> float:
    """Variability collapse, trace(Sw Sb^+) / C: zero when every row equals its class mean.

    Sw is the mean over classes of the class covariances, Sb the covariance of the class means around their
    own mean: classes have equal weights, whatever their sizes. A class of one row has no variation. NC1 is
    computed by projecting the residuals on the at most C - 1 directions of the centred class means. It is
    invariant to shifts and rotations of X.

    `legacy=True` returns the value of the published computation: its h_G is the mean of all rows, and its Sw
    is too large by h_G h_G^T, so that the value depends on the origin.

    Papyan, Han, Donoho (2020), doi:10.1073/pnas.2015509117; in this form Zhu et al. (2021), arXiv:2105.02375.

    >>> X, y = [[0.0, 1], [0, -1], [4, 1], [4, -1], [8, 2], [8, -2]], [0, 0, 1, 1, 2, 2]
    >>> round(nc1(X, y), 12)
    0.0
    >>> round(nc1([[0.0], [2], [4], [6]], [0, 0, 1, 1]), 12)
    0.125
    >>> round(nc1([[0.0], [2], [4], [6]], [0, 0, 1, 1], legacy=True), 12)
    1.25
    """
    rows = group("nc1(X, y)", X, y)
    means = class_means(rows)
    whitening = means.whitening(legacy)
    centre = 0.0 if rows.eps else means.centre  # the rounding of float32 input exceeds that of a float64 product
    inner_means = (means.values - centre) @ whitening  # (C, r)

    def squares(codes: Array, block: Array) -> Array:
        if not rows.eps:
            block -= centre
        inside = block @ whitening - inner_means[codes]
        return np.einsum("ij,ij->i", inside, inside)

    return float(np.mean(rows.class_averages(squares))) + (means.legacy_offset if legacy else 0.0)


def nc2(X: Any, y: Any) -> NC2:
    """Convergence of the class means, centred at their own mean, to a simplex equiangular tight frame.

    `equinorm` and `equiangular` after Papyan, Han, Donoho (2020), doi:10.1073/pnas.2015509117 (standard
    deviation with divisor C); `etf` is the measure of Zhu et al. (2021), arXiv:2105.02375, on the class
    means.

    >>> deviation = nc2([[1.0, 0], [-1, 0], [0, 1], [0, -1]], [0, 1, 2, 3])
    >>> deviation.equinorm, round(deviation.equiangular, 6), round(deviation.etf, 6)
    (0.0, 0.444444, 0.605811)
    """
    return Collapse(class_means(group("nc2(X, y)", X, y))).nc2


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
    return Collapse(class_means(group("nc3(X, y, weights)", X, y))).nc3(weights)


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
    rows = group("nc4(X, y)", X, y)
    means = class_means(rows)
    if predictions is None and weights is None:
        raise means.error("give either predictions or weights")
    return SecondPass(Collapse(means), weights, bias, covariance=False).add(rows, predictions).result().nc4


def cdnv(X: Any, y: Any) -> float:
    """Class-distance-normalised variance: mean over pairs of classes of (v_i + v_j) / (2 |m_i - m_j|^2).

    m_i is the mean of class i and v_i the mean squared distance of its rows to m_i.

    Galanti, Gyorgy, Hutter (2022), On the role of neural collapse in transfer learning, arXiv:2112.15121.

    >>> cdnv([[0.0], [2], [4], [6]], [0, 0, 1, 1])
    0.0625
    """
    rows = group("cdnv(X, y)", X, y)
    means = class_means(rows)

    def squares(codes: Array, block: Array) -> Array:
        block -= means.values[codes]
        return np.einsum("ij,ij->i", block, block)

    return Collapse(means, rows.class_averages(squares)).cdnv


def vci(X: Any, y: Any) -> float:
    """Variability collapse index, 1 - trace(St^+ Sb) / rank(Sb): 0 when collapsed, 1 when not at all.

    Sw and Sb as in `nc1`, St = Sw + Sb, with equal weights of the classes. VCI is invariant to invertible linear maps
    of X. It needs the whole St: this function, unlike the others, stores l x l matrices.

    Xu, Liu (2023), Quantifying the variability collapse of neural networks, PMLR 202:38535-38550.

    >>> round(vci([[0.0], [2], [4], [6]], [0, 0, 1, 1]), 12)
    0.2
    """
    rows = group("vci(X, y)", X, y)
    return SecondPass(Collapse(class_means(rows))).add(rows).result().vci
