"""Class means and the directions they span."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from imprint.collapse.rows import GroupedRows
from imprint.core.errors import ParameterError
from imprint.core.types import Array

SINGLE, DOUBLE = float(np.finfo(np.float32).eps), float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Span:
    """Orthonormal directions of the centred class means, with the singular value of each."""

    directions: Array  # (l, r)
    lengths: Array  # (r,)

    @property
    def whitening(self) -> Array:
        """Maps x to coordinates in which the sum of squares is x^T Sb^+ x / C.  # (l, r)"""
        return self.directions / self.lengths


@dataclass(frozen=True, eq=False)
class Means:
    """Means and sizes of two or more classes."""

    call: str
    classes: Array  # (C,)
    counts: Array  # (C,)
    values: Array  # (C, l) float64
    eps: float

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
            raise ParameterError(f"{self.call}: the class means must differ, here they are all equal.")
        return Span(directions[:rank].T, s[:rank])

    @cached_property
    def legacy_span(self) -> Span:
        """At most C directions around the sample mean, truncated as a float32 pseudo-inverse of Sb truncates."""
        if np.linalg.norm(self.centred) <= self.tolerance:
            raise ParameterError(f"{self.call}: the class means must differ, here they are all equal.")
        _, s, directions = np.linalg.svd(self.values - self.sample_centre, full_matrices=False)
        rank = int((s**2 > self.values.shape[1] * SINGLE * s[0] ** 2).sum())
        return Span(directions[:rank].T, s[:rank])


def class_means(rows: GroupedRows) -> Means:
    """The class means in float64; refused if a value is not finite."""
    sums = rows.class_sums()
    if not np.isfinite(sums).all():
        raise ParameterError(f"{rows.call}: X must be finite, without NaN or infinity.")
    return Means(rows.call, rows.classes, rows.counts, sums / rows.counts[:, None], rows.eps)
