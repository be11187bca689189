"""The metrics of neural collapse, computed from class means and second moments.

Notation, as in docs/collapse.md: C classes of width l; m_c is the mean of class c, h_G
the mean of these means, and M has the rows m_c - h_G. Sw is the mean over classes of
the class covariances, Sb = M^T M / C the covariance of the class means, and St = Sw +
Sb.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from imprint.collapse.rows import RowsByClass, check_labels, check_values
from imprint.core.arrays import Array
from imprint.core.errors import ParameterError
from imprint.kernels.cpu import on_all_cores

FLOAT32_EPS = float(np.finfo(np.float32).eps)
FLOAT64_EPS = float(np.finfo(np.float64).eps)
EQUAL_MEANS = "the class means must differ, here they are all equal"

# weights (C, l) and bias (C,) of a linear head
LinearHead: TypeAlias = tuple[Array, Array]


@dataclass(frozen=True)
class NC2:
    """Deviations of the centred class means from a simplex equiangular tight frame.

    All are zero on such a frame (ETF).

    Examples
    --------
    >>> from imprint.collapse import nc2
    >>> corners = [[1.0, 0.0], [-0.5, 0.75**0.5], [-0.5, -(0.75**0.5)]]  # a simplex
    >>> deviation = nc2(corners, ["a", "b", "c"])
    >>> max(deviation.equinorm, deviation.equiangular, deviation.etf) < 1e-12
    True
    """

    equinorm: float  # standard deviation of the lengths over their mean
    equiangular: float  # mean over pairs of classes of |cosine + 1 / (C - 1)|
    etf: float
    """Frobenius distance of the Gram matrix to that of the frame, both scaled to norm
    one.
    """


@dataclass(frozen=True, eq=False)
class Collapse:
    """The metrics of all rows so far, computed on access.

    Each equals the function of the same name.

    Examples
    --------
    >>> from imprint.collapse import Accumulator
    >>> X, y = [[0.0], [2], [4], [6]], ["cat", "cat", "dog", "dog"]
    >>> metrics = Accumulator().update(X[:2], y[:2]).update(X[2:], y[2:]).result()
    >>> round(metrics.nc1, 12), round(metrics.cdnv, 12)
    (0.125, 0.0625)
    """

    call: str = field(repr=False)  # the call that error messages name
    classes: Array  # (C,) sorted
    counts: Array  # (C,) rows of each class
    means: Array  # (C, l) float64
    eps: float  # relative rounding error of the input
    # (C,) mean squared distance of the rows of each class to their mean
    variances: Array | None = None
    # (l, l) Sw, the mean over classes of the class covariances
    within: Array | None = None
    # share of rows on which a classifier and the nearest-mean rule agree
    agreement: float | None = None

    @classmethod
    def of(cls, rows: RowsByClass) -> "Collapse":
        """The class means of rows in memory."""
        return cls(
            call=rows.call,
            classes=rows.classes,
            counts=rows.counts,
            means=rows.class_means(),
            eps=rows.eps,
        )

    def error(self, rule: str) -> ParameterError:
        """The error of a broken rule, which names the call."""
        return ParameterError(f"{self.call}: {rule}.")

    def head(
        self, weights: ArrayLike | None, bias: ArrayLike | None
    ) -> LinearHead | None:
        """A linear head, checked, in float64; None without weights."""
        if weights is None:
            if bias is not None:
                raise self.error("bias must be given with weights")
            return None
        W = check_values(self.call, "weights", weights, self.means.shape)
        if bias is None:
            bias = np.zeros(len(W))
        b = check_values(self.call, "bias", bias, self.classes.shape)
        return W, b

    def agreeing(
        self,
        rows: RowsByClass,
        predictions: ArrayLike | None,
        head: LinearHead | None,
    ) -> int:
        """The number of rows that a classifier assigns to the nearest mean.

        The classifier is given by its predictions or as a head.
        """
        if (predictions is None) == (head is None):
            raise self.error("give either predictions or weights")
        predicted = None
        if predictions is not None:
            predicted = self._checked_predictions(predictions, len(rows.X))
        # |x - m_c|^2 = |x - h_G|^2 - 2 (x - h_G) M_c + |M_c|^2. The first term is the
        # same for every class, so the nearest mean maximises (x - h_G) M_c - |M_c|^2 /
        # 2.
        offsets = np.einsum("ij,ij->i", self.centred, self.centred) / 2

        def agreeing_in(part: slice) -> int:
            block = rows.X[part].astype(np.float64)
            scores = (block - self.centre) @ self.centred.T - offsets
            nearest = self.classes[np.argmax(scores, axis=1)]
            if head is None:
                assigned = predicted[part]  # type: ignore[index]  # given without head
            else:
                W, b = head
                logits = block @ W.T + b
                assigned = self.classes[np.argmax(logits, axis=1)]
            return int((assigned == nearest).sum())

        counts = on_all_cores(agreeing_in, rows.parts())
        return sum(counts)

    def _checked_predictions(self, predictions: ArrayLike, count: int) -> Array:
        """The predictions as an array, one per row, of the type of the labels."""
        predicted = check_labels(self.call, "predictions", predictions, count)
        predicts_text = predicted.dtype.kind in "US"
        has_text_labels = self.classes.dtype.kind in "US"
        if predicts_text != has_text_labels:
            raise self.error("predictions must be labels of the same type as y")
        return predicted

    @cached_property
    def centre(self) -> Array:
        """h_G, the mean of the class means.  # (l,)"""
        return np.asarray(self.means.mean(axis=0))

    @cached_property
    def centred(self) -> Array:
        """M, the class means minus h_G.  # (C, l)"""
        return self.means - self.centre

    @cached_property
    def tolerance(self) -> float:
        """The largest length of a centred mean that rounding alone can explain.

        Rounding the input moves the C x l matrix of means by about eps times its norm,
        and by Weyl's inequality no singular value moves further. The same holds for the
        float64 arithmetic here.
        """
        arithmetic = max(self.means.shape) * FLOAT64_EPS
        relative = max(self.eps, arithmetic)
        return float(relative * np.linalg.norm(self.means))

    @cached_property
    def span(self) -> tuple[Array, Array]:
        """Orthonormal directions of M (l, r) and their singular values (r,).

        There are at most C - 1 of them, all above the tolerance.
        """
        _, values, directions = np.linalg.svd(self.centred, full_matrices=False)
        # The rows of M sum to zero, so its rank is at most C - 1. The last value is
        # rounding.
        largest = values[: len(self.means) - 1]
        rank = int((largest > self.tolerance).sum())
        if rank == 0:
            raise self.error(EQUAL_MEANS)
        return directions[:rank].T, values[:rank]

    def whitening(self, legacy: bool = False) -> tuple[Array, float]:
        """A matrix A with |x A|^2 = x^T Sb^+ x / C (l, r), and a constant that is added
        to NC1.

        The constant is 0, except in the published computation (`legacy`). That centres
        at the mean h_G of all rows, which adds h_G^T Sb^+ h_G / C, and truncates Sb as
        a float32 pseudo-inverse does.
        """
        if not legacy:
            # C Sb = M^T M = V diag(s^2) V^T, so that Sb^+ / C = V diag(s^-2) V^T.
            directions, lengths = self.span
            return directions / lengths, 0.0
        if np.linalg.norm(self.centred) <= self.tolerance:
            raise self.error(EQUAL_MEANS)
        centre = self.counts @ self.means / self.counts.sum()
        deviations = self.means - centre
        _, values, directions = np.linalg.svd(deviations, full_matrices=False)
        # The eigenvalues of Sb are s^2 / C. A pseudo-inverse, such as
        # torch.linalg.pinv, drops those up to l eps times the largest.
        floor = self.means.shape[1] * FLOAT32_EPS * values[0] ** 2
        rank = int((values**2 > floor).sum())
        whitening = directions[:rank].T / values[:rank]
        projected_centre = centre @ whitening
        return whitening, float((projected_centre**2).sum())

    @property
    def nc1(self) -> float:
        return self._nc1()

    @property
    def nc1_legacy(self) -> float:
        """As `nc1(X, y, legacy=True)`."""
        return self._nc1(legacy=True)

    def _nc1(self, legacy: bool = False) -> float:
        """NC1 = trace(Sw Sb^+) / C = trace(A^T Sw A), with A from `whitening`."""
        whitening, offset = self.whitening(legacy)
        trace = np.vdot(whitening, self._within() @ whitening)
        return float(trace) + offset

    def _within(self) -> Array:
        if self.within is None:
            raise self.error(
                "nc1 and vci need scatter=True, or a second pass, see"
                " Accumulator.second_pass"
            )
        return self.within

    @property
    def nc2(self) -> NC2:
        C = len(self.classes)
        lengths = np.linalg.norm(self.centred, axis=1)
        if lengths.min() <= self.tolerance:
            shortest = self.classes[lengths.argmin()]
            raise self.error(
                f"class {shortest} must not have the global mean as its mean"
            )
        # The vectors of an ETF have equal lengths and pairwise cosines -1 / (C - 1).
        unit = self.centred / lengths[:, None]
        pairs = np.triu_indices(C, k=1)
        cosines = (unit @ unit.T)[pairs]

        # The norm of a Gram matrix takes fourth powers of the rows. Scaled to a longest
        # row of one, they do not underflow.
        scaled = self.centred / lengths.max()
        gram = scaled @ scaled.T
        # I - 1/C is a projection of rank C - 1, so its Frobenius norm is sqrt(C - 1).
        frame = (np.eye(C) - 1 / C) / np.sqrt(C - 1)
        deviation = gram / np.linalg.norm(gram) - frame
        return NC2(
            equinorm=float(lengths.std() / lengths.mean()),
            equiangular=float(np.abs(cosines + 1 / (C - 1)).mean()),
            etf=float(np.linalg.norm(deviation)),
        )

    def nc3(self, weights: ArrayLike) -> float:
        W = check_values(self.call, "weights", weights, self.means.shape)
        means_norm = np.linalg.norm(self.centred)
        weights_norm = np.linalg.norm(W)
        if means_norm <= self.tolerance:
            raise self.error(EQUAL_MEANS)
        if weights_norm == 0:
            raise self.error("weights must not all be zero")
        difference = W / weights_norm - self.centred / means_norm
        return float(np.linalg.norm(difference) ** 2)

    @property
    def nc4(self) -> float:
        if self.agreement is None:
            raise self.error("nc4 needs a second pass, see Accumulator.second_pass")
        return self.agreement

    @property
    def vci(self) -> float:
        """Directions in which St is zero up to rounding do not count."""
        directions, lengths = self.span
        C = len(self.classes)
        between = directions * (lengths / np.sqrt(C))  # (l, r), Sb = between between^T
        total = self._within() + between @ between.T
        values, vectors = np.linalg.eigh(total)

        # Eigenvalues of an l x l matrix are exact up to about l eps times the largest.
        floor = len(values) * FLOAT64_EPS * values[-1]
        nonzero = values > floor  # directions of St
        distinct = lengths**2 / C > floor  # directions of Sb
        if not distinct.any():
            raise self.error(EQUAL_MEANS)

        # trace(St^+ Sb), in the basis of the eigenvectors of St
        projected = vectors[:, nonzero].T @ between[:, distinct]
        weighted = projected**2 / values[nonzero, None]
        explained = float(weighted.sum())
        return 1.0 - explained / int(distinct.sum())

    @property
    def cdnv(self) -> float:
        # SciPy's spatial package takes a tenth of a second to import.
        from scipy.spatial.distance import pdist

        distances = pdist(self.centred, "sqeuclidean")
        variances = np.asarray(self.variances)
        first, second = np.triu_indices(len(variances), k=1)
        closest = int(distances.argmin())
        if np.sqrt(distances[closest]) <= self.tolerance:
            label = self.classes[first[closest]]
            other = self.classes[second[closest]]
            raise self.error(
                f"the class means must differ, those of {label} and {other} are equal"
            )
        variance_of_pair = variances[first] + variances[second]
        return float(np.mean(variance_of_pair / (2 * distances)))
