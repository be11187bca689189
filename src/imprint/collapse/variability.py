"""NC1, CDNV and VCI: variation within classes compared with the distances between classes."""

from typing import Any

import numpy as np

from imprint.collapse.means import DOUBLE, Means, class_means
from imprint.collapse.rows import GroupedRows, group, narrow_product
from imprint.collapse.sums import Gram
from imprint.core.errors import ParameterError
from imprint.core.types import Array
from imprint.kernels.cpu import one_blas_thread


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
    with one_blas_thread():  # idle BLAS threads would occupy the cores that read the rows
        return _nc1(rows, class_means(rows), legacy)


def _nc1(rows: GroupedRows, means: Means, legacy: bool) -> float:
    whitening = (means.legacy_span if legacy else means.span).whitening
    centre = 0.0 if rows.eps else means.centre  # the rounding of float32 input exceeds that of a float64 product
    inner_means = (means.values - centre) @ whitening  # (C, r)

    def squares(codes: Array, block: Array) -> Array:
        if not rows.eps:
            block -= centre
        inside = narrow_product(block, whitening) - inner_means[codes]
        return np.einsum("ij,ij->i", inside, inside)

    within = np.bincount(rows.codes, rows.row_values(squares)) / means.counts
    return float(np.mean(within)) + (leak(means) if legacy else 0.0)


def leak(means: Means) -> float:
    """The term that the published centring adds to NC1: h_G^T Sb^+ h_G / C."""
    return float(((means.sample_centre @ means.legacy_span.whitening) ** 2).sum())


def nc1_from(means: Means, within: Array, legacy: bool = False) -> float:
    """NC1 from the matrix Sw."""
    whitening = (means.legacy_span if legacy else means.span).whitening
    return float(np.vdot(whitening, within @ whitening)) + (leak(means) if legacy else 0.0)


def cdnv(X: Any, y: Any) -> float:
    """Class-distance-normalised variance: mean over pairs of classes of (v_i + v_j) / (2 |m_i - m_j|^2).

    m_i is the mean of class i and v_i the mean squared distance of its rows to m_i.

    Galanti, Gyorgy, Hutter (2022), On the role of neural collapse in transfer learning, arXiv:2112.15121.

    >>> cdnv([[0.0], [2], [4], [6]], [0, 0, 1, 1])
    0.0625
    """
    rows = group("cdnv(X, y)", X, y)
    means = class_means(rows)
    return cdnv_from(means, class_variances(rows, means))


def cdnv_from(means: Means, variances: Array) -> float:
    from scipy.spatial.distance import pdist

    distances = pdist(means.centred, "sqeuclidean")
    first, second = np.triu_indices(len(variances), k=1)
    closest = int(distances.argmin())
    if np.sqrt(distances[closest]) <= means.tolerance:
        pair = f"{means.classes[first[closest]]} and {means.classes[second[closest]]}"
        raise ParameterError(f"{means.call}: the class means must differ, those of {pair} are equal.")
    return float(np.mean((variances[first] + variances[second]) / (2 * distances)))


def class_variances(rows: GroupedRows, means: Means) -> Array:
    """Mean squared distance of the rows of each class to their mean.  # (C,)"""

    def squares(codes: Array, block: Array) -> Array:
        block -= means.values[codes]
        return np.einsum("ij,ij->i", block, block)

    return np.bincount(rows.codes, rows.row_values(squares)) / means.counts


def vci(X: Any, y: Any) -> float:
    """Variability collapse index, 1 - trace(St^+ Sb) / rank(Sb): 0 when collapsed, 1 when not at all.

    Sw and Sb as in `nc1`, St = Sw + Sb, with equal weights of the classes. VCI is invariant to invertible linear maps
    of X. It needs the whole St: this function, unlike the others, stores l x l matrices.

    Xu, Liu (2023), Quantifying the variability collapse of neural networks, PMLR 202:38535-38550.

    >>> round(vci([[0.0], [2], [4], [6]], [0, 0, 1, 1]), 12)
    0.2
    """
    rows = group("vci(X, y)", X, y)
    means = class_means(rows)
    return vci_from(means, within_covariance(rows, means))


def within_covariance(rows: GroupedRows, means: Means) -> Array:
    """Sw: the mean over classes of the class covariances.  # (l, l)"""
    within = Gram(rows.X.shape[1])
    for codes, block in rows.residuals(means.values):
        within.add(block / np.sqrt(means.counts[codes] * len(means.counts))[:, None])
    return within.total()


def vci_from(means: Means, within: Array) -> float:
    """VCI from the matrix Sw; directions in which St is zero up to rounding do not count."""
    span, C = means.span, len(means.counts)
    between = span.directions * (span.lengths / np.sqrt(C))  # (l, r), Sb = between between^T
    values, vectors = np.linalg.eigh(within + between @ between.T)
    floor = len(values) * DOUBLE * values[-1]
    solid, counted = values > floor, span.lengths**2 / C > floor
    if not counted.any():
        raise ParameterError(f"{means.call}: the class means must differ, here they are all equal.")
    inside = vectors[:, solid].T @ between[:, counted]
    explained = float((inside**2 / values[solid, None]).sum())
    return 1.0 - explained / int(counted.sum())
