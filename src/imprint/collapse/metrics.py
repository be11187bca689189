"""Class means, and the metrics of neural collapse that are computed from them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from imprint.collapse.rows import GroupedRows, check_matrix
from imprint.core.errors import ParameterError
from imprint.core.types import Array

SINGLE, DOUBLE = float(np.finfo(np.float32).eps), float(np.finfo(np.float64).eps)
EQUAL_MEANS = "the class means must differ, here they are all equal"


Span = tuple[Array, Array]
"""Orthonormal directions of the centred class means (l, r), and their singular values (r,)."""


@dataclass(frozen=True, eq=False)
class Means:
    """Means and sizes of two or more classes."""

    call: str
    classes: Array  # (C,)
    counts: Array  # (C,)
    values: Array  # (C, l) float64
    eps: float

    def error(self, rule: str) -> ParameterError:
        """The error of a broken rule, which names the call."""
        return ParameterError(f"{self.call}: {rule}.")

    @cached_property
    def centre(self) -> Array:
        """h_G with equal weights of the classes: the mean of the class means.  # (l,)"""
        return np.asarray(self.values.mean(axis=0))

    @cached_property
    def sample_centre(self) -> Array:
        """h_G with equal weights of the samples.  # (l,)"""
        return np.asarray(self.counts @ self.values / self.counts.sum())

    @cached_property
    def centred(self) -> Array:
        return self.values - self.centre  # (C, l)

    @cached_property
    def tolerance(self) -> float:
        """The largest length of a centred mean that rounding alone can explain.

        Rounding the input moves the C x l matrix of means by about eps times its norm, and by Weyl's
        inequality no singular value moves further; the same holds for the float64 arithmetic here.
        """
        return float(max(self.eps, max(self.values.shape) * DOUBLE) * np.linalg.norm(self.values))

    @cached_property
    def span(self) -> Span:
        """At most C - 1 directions: those with singular values above the tolerance."""
        _, s, directions = np.linalg.svd(self.centred, full_matrices=False)
        rank = int((s[: len(self.values) - 1] > self.tolerance).sum())
        if rank == 0:
            raise self.error(EQUAL_MEANS)
        return directions[:rank].T, s[:rank]

    @cached_property
    def legacy_span(self) -> Span:
        """At most C directions around the sample mean, truncated as a float32 pseudo-inverse of Sb truncates."""
        if np.linalg.norm(self.centred) <= self.tolerance:
            raise self.error(EQUAL_MEANS)
        _, s, directions = np.linalg.svd(self.values - self.sample_centre, full_matrices=False)
        rank = int((s**2 > self.values.shape[1] * SINGLE * s[0] ** 2).sum())
        return directions[:rank].T, s[:rank]

    def whitening(self, legacy: bool = False) -> Array:
        """Maps x to coordinates in which the sum of squares is x^T Sb^+ x / C.  # (l, r)"""
        directions, lengths = self.legacy_span if legacy else self.span
        return np.asarray(directions / lengths)

    @property
    def legacy_offset(self) -> float:
        """The term that the published centring adds to NC1: h_G^T Sb^+ h_G / C."""
        return float(((self.sample_centre @ self.whitening(legacy=True)) ** 2).sum())

    def head(self, weights: Any) -> Array:
        """The weights of a linear head, checked, in float64, one row per class.  # (C, l)"""
        head = check_matrix(self.call, "weights", weights).astype(np.float64)
        if head.shape != self.values.shape:
            raise self.error(f"weights must have shape {self.values.shape}, got {head.shape}")
        if not np.isfinite(head).all():
            raise self.error("weights must be finite, without NaN or infinity")
        return head


def class_means(rows: GroupedRows) -> Means:
    """The class means in float64; a value that is not finite is an error."""
    sums = rows.class_sums()
    if not np.isfinite(sums).all():
        raise ParameterError(f"{rows.call}: X must be finite, without NaN or infinity.")
    return Means(rows.call, rows.classes, rows.counts, sums / rows.counts[:, None], rows.eps)


@dataclass(frozen=True)
class NC2:
    """Deviations of the centred class means from a simplex equiangular tight frame; all zero on one."""

    equinorm: float
    """Standard deviation of the lengths over their mean."""
    equiangular: float
    """Mean over pairs of classes of |cosine + 1 / (C - 1)|."""
    etf: float
    """Frobenius distance of the Gram matrix to that of the frame, both scaled to norm one."""


@dataclass(frozen=True, eq=False)
class Collapse:
    """The metrics of all rows seen, equal to the functions of the same names; each is computed on access."""

    means: Means
    variances: Array | None = None
    """The mean squared distance of the rows of each class to their mean.  # (C,)"""
    within: Array | None = None
    """Sw, the mean over classes of the class covariances.  # (l, l)"""
    agreement: float | None = None
    """The share of rows on which a classifier and the nearest-mean rule agree."""

    @property
    def nc1(self) -> float:
        return self._projected(self.means.whitening())

    @property
    def nc1_legacy(self) -> float:
        """As `nc1(X, y, legacy=True)`."""
        return self._projected(self.means.whitening(legacy=True)) + self.means.legacy_offset

    @property
    def nc2(self) -> NC2:
        means = self.means
        C, lengths = len(means.classes), np.linalg.norm(means.centred, axis=1)
        if lengths.min() <= means.tolerance:
            raise means.error(f"class {means.classes[lengths.argmin()]} must not have the global mean as its mean")
        unit, scaled = means.centred / lengths[:, None], means.centred / lengths.max()
        cosines, gram = (unit @ unit.T)[np.triu_indices(C, k=1)], scaled @ scaled.T
        frame = (np.eye(C) - 1 / C) / np.sqrt(C - 1)
        return NC2(
            equinorm=float(lengths.std() / lengths.mean()),
            equiangular=float(np.abs(cosines + 1 / (C - 1)).mean()),
            etf=float(np.linalg.norm(gram / np.linalg.norm(gram) - frame)),
        )

    def nc3(self, weights: Any) -> float:
        head = self.means.head(weights)
        length, size = np.linalg.norm(self.means.centred), np.linalg.norm(head)
        if length <= self.means.tolerance:
            raise self.means.error(EQUAL_MEANS)
        if size == 0:
            raise self.means.error("weights must not all be zero")
        return float(np.linalg.norm(head / size - self.means.centred / length) ** 2)

    @property
    def nc4(self) -> float:
        if self.agreement is None:
            raise self.means.error("nc4 needs a second pass, see Accumulator.second_pass")
        return self.agreement

    @property
    def vci(self) -> float:
        """Directions in which St is zero up to rounding do not count."""
        (directions, lengths), C = self.means.span, len(self.means.counts)
        between = directions * (lengths / np.sqrt(C))  # (l, r), Sb = between between^T
        values, vectors = np.linalg.eigh(self._within() + between @ between.T)
        floor = len(values) * DOUBLE * values[-1]
        solid, counted = values > floor, lengths**2 / C > floor
        if not counted.any():
            raise self.means.error(EQUAL_MEANS)
        inside = vectors[:, solid].T @ between[:, counted]
        explained = float((inside**2 / values[solid, None]).sum())
        return 1.0 - explained / int(counted.sum())

    @property
    def cdnv(self) -> float:
        from scipy.spatial.distance import pdist

        distances, variances = pdist(self.means.centred, "sqeuclidean"), np.asarray(self.variances)
        first, second = np.triu_indices(len(variances), k=1)
        closest = int(distances.argmin())
        if np.sqrt(distances[closest]) <= self.means.tolerance:
            pair = f"{self.means.classes[first[closest]]} and {self.means.classes[second[closest]]}"
            raise self.means.error(f"the class means must differ, those of {pair} are equal")
        return float(np.mean((variances[first] + variances[second]) / (2 * distances)))

    def _projected(self, whitening: Array) -> float:
        return float(np.vdot(whitening, self._within() @ whitening))

    def _within(self) -> Array:
        if self.within is None:
            raise self.means.error("nc1 and vci need scatter=True, or a second pass, see Accumulator.second_pass")
        return self.within
