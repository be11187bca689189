"""The metrics of neural collapse, computed from class means and second moments."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from imprint.collapse.rows import RowsByClass, check_labels, check_values
from imprint.core.arrays import Array
from imprint.core.errors import ParameterError
from imprint.kernels.cpu import on_all_cores

FLOAT32_EPS, FLOAT64_EPS = (
    float(np.finfo(dtype).eps) for dtype in (np.float32, np.float64)
)
EQUAL_MEANS = "the class means must differ, here they are all equal"
LinearHead = tuple[Array, Array]  # weights (C, l) and bias (C,) of a linear head


@dataclass(frozen=True)
class NC2:
    """Deviations of the centred class means from a simplex equiangular tight frame
    (ETF); all zero on an ETF.
    """

    equinorm: float  # standard deviation of the lengths over their mean
    equiangular: float  # mean over pairs of classes of |cosine + 1 / (C - 1)|
    # Frobenius distance of the Gram matrix to that of the frame, both scaled to norm
    # one
    etf: float


@dataclass(frozen=True, eq=False)
class Collapse:
    """The metrics of all rows so far, computed on access. Each equals the function of
    the same name.
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
        return cls(rows.call, rows.classes, rows.counts, rows.class_means(), rows.eps)

    def error(self, rule: str) -> ParameterError:
        """The error of a broken rule, which names the call."""
        return ParameterError(f"{self.call}: {rule}.")

    def head(self, weights: Any, bias: Any) -> LinearHead | None:
        """A linear head, checked, in float64; None without weights."""
        if weights is None:
            if bias is not None:
                raise self.error("bias must be given with weights")
            return None
        W = check_values(self.call, "weights", weights, self.means.shape)
        return W, check_values(
            self.call,
            "bias",
            np.zeros(len(W)) if bias is None else bias,
            self.classes.shape,
        )

    def agreeing(
        self, rows: RowsByClass, predictions: Any, head: LinearHead | None
    ) -> int:
        """The number of rows that a classifier, given by predictions or as a head,
        assigns to the nearest mean.
        """
        predicted = (
            None
            if predictions is None
            else check_labels(self.call, "predictions", predictions, len(rows.X))
        )
        if (predicted is None) == (head is None):
            raise self.error("give either predictions or weights")
        if predicted is not None and (predicted.dtype.kind in "US") != (
            self.classes.dtype.kind in "US"
        ):
            raise self.error("predictions must be labels of the same type as y")
        W, b = head or (np.zeros(0), np.zeros(0))
        offsets = np.einsum("ij,ij->i", self.centred, self.centred) / 2

        def agreeing_in(part: slice) -> int:
            block = rows.X[part].astype(np.float64)
            nearest = self.classes[
                np.argmax((block - self.centre) @ self.centred.T - offsets, axis=1)
            ]
            if predicted is not None:
                return int((predicted[part] == nearest).sum())
            return int(
                (self.classes[np.argmax(block @ W.T + b, axis=1)] == nearest).sum()
            )

        return sum(on_all_cores(agreeing_in, rows.parts()))

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
        return float(
            max(self.eps, max(self.means.shape) * FLOAT64_EPS)
            * np.linalg.norm(self.means)
        )

    @cached_property
    def span(self) -> tuple[Array, Array]:
        """Orthonormal directions of M (l, r) and their singular values (r,); at most C
        - 1, above the tolerance.
        """
        _, s, directions = np.linalg.svd(self.centred, full_matrices=False)
        rank = int((s[: len(self.means) - 1] > self.tolerance).sum())
        if rank == 0:
            raise self.error(EQUAL_MEANS)
        return directions[:rank].T, s[:rank]

    def whitening(self, legacy: bool = False) -> tuple[Array, float]:
        """A matrix A with |x A|^2 = x^T Sb^+ x / C (l, r), and the constant that the
        published computation adds to NC1.

        That computation centres at the mean h_G of all rows, which adds h_G^T Sb^+ h_G
        / C, and truncates Sb as a float32 pseudo-inverse does.
        """
        if not legacy:
            directions, lengths = self.span
            return directions / lengths, 0.0
        if np.linalg.norm(self.centred) <= self.tolerance:
            raise self.error(EQUAL_MEANS)
        centre = self.counts @ self.means / self.counts.sum()
        _, s, directions = np.linalg.svd(self.means - centre, full_matrices=False)
        rank = int((s**2 > self.means.shape[1] * FLOAT32_EPS * s[0] ** 2).sum())
        whitening = directions[:rank].T / s[:rank]
        return whitening, float(((centre @ whitening) ** 2).sum())

    @property
    def nc1(self) -> float:
        return self._nc1()

    @property
    def nc1_legacy(self) -> float:
        """As `nc1(X, y, legacy=True)`."""
        return self._nc1(legacy=True)

    def _nc1(self, legacy: bool = False) -> float:
        whitening, offset = self.whitening(legacy)
        return float(np.vdot(whitening, self._within() @ whitening)) + offset

    def _within(self) -> Array:
        if self.within is None:
            raise self.error(
                "nc1 and vci need scatter=True, or a second pass, see"
                " Accumulator.second_pass"
            )
        return self.within

    @property
    def nc2(self) -> NC2:
        C, lengths = len(self.classes), np.linalg.norm(self.centred, axis=1)
        if lengths.min() <= self.tolerance:
            raise self.error(
                f"class {self.classes[lengths.argmin()]} must not have the global mean"
                " as its mean"
            )
        unit = self.centred / lengths[:, None]
        cosines = (unit @ unit.T)[np.triu_indices(C, k=1)]
        scaled = self.centred / lengths.max()
        gram = scaled @ scaled.T
        frame = (np.eye(C) - 1 / C) / np.sqrt(C - 1)
        return NC2(
            equinorm=float(lengths.std() / lengths.mean()),
            equiangular=float(np.abs(cosines + 1 / (C - 1)).mean()),
            etf=float(np.linalg.norm(gram / np.linalg.norm(gram) - frame)),
        )

    def nc3(self, weights: Any) -> float:
        W = check_values(self.call, "weights", weights, self.means.shape)
        means_norm, weights_norm = np.linalg.norm(self.centred), np.linalg.norm(W)
        if means_norm <= self.tolerance:
            raise self.error(EQUAL_MEANS)
        if weights_norm == 0:
            raise self.error("weights must not all be zero")
        return float(np.linalg.norm(W / weights_norm - self.centred / means_norm) ** 2)

    @property
    def nc4(self) -> float:
        if self.agreement is None:
            raise self.error("nc4 needs a second pass, see Accumulator.second_pass")
        return self.agreement

    @property
    def vci(self) -> float:
        """Directions in which St is zero up to rounding do not count."""
        (directions, lengths), C = self.span, len(self.classes)
        between = directions * (lengths / np.sqrt(C))  # (l, r), Sb = between between^T
        values, vectors = np.linalg.eigh(self._within() + between @ between.T)
        floor = len(values) * FLOAT64_EPS * values[-1]
        nonzero = values > floor  # directions of St
        distinct = lengths**2 / C > floor  # directions of Sb
        if not distinct.any():
            raise self.error(EQUAL_MEANS)
        projected = vectors[:, nonzero].T @ between[:, distinct]
        explained = float((projected**2 / values[nonzero, None]).sum())
        return 1.0 - explained / int(distinct.sum())

    @property
    def cdnv(self) -> float:
        from scipy.spatial.distance import pdist

        distances, variances = (
            pdist(self.centred, "sqeuclidean"),
            np.asarray(self.variances),
        )
        first, second = np.triu_indices(len(variances), k=1)
        closest = int(distances.argmin())
        if np.sqrt(distances[closest]) <= self.tolerance:
            pair = f"{self.classes[first[closest]]} and {self.classes[second[closest]]}"
            raise self.error(f"the class means must differ, those of {pair} are equal")
        return float(np.mean((variances[first] + variances[second]) / (2 * distances)))
