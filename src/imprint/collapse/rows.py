"""Labelled rows: checked once, then read in float64 blocks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from imprint.core.arrays import to_numpy
from imprint.core.errors import ParameterError
from imprint.core.types import Array
from imprint.kernels.cpu import on_all_cores, one_blas_thread

BLOCK = 1 << 19
"""Numbers in one block: 4 MB of float64, so that a block stays in the cache between its steps."""


def as_array(values: Any) -> Array:
    """An array, a list or a torch tensor (from any device; torch is not imported) as a NumPy array.

    >>> as_array([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    return np.asarray(to_numpy(values))


def check_matrix(call: str, name: str, values: Any) -> Array:
    """A matrix of real numbers that is not empty."""
    array = as_array(values)
    if array.ndim != 2 or 0 in array.shape:
        raise ParameterError(f"{call}: {name} must have shape (rows >= 1, width >= 1), got {array.shape}.")
    if array.dtype.kind not in "iuf":
        raise ParameterError(f"{call}: {name} must hold real numbers, got {array.dtype}.")
    return array


def check_labels(call: str, name: str, values: Any, count: int) -> Array:
    """One label per row, of any type that can be sorted."""
    array = as_array(values)
    if array.shape != (count,):
        raise ParameterError(f"{call}: {name} must have shape ({count},), got {array.shape}.")
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise ParameterError(f"{call}: {name} must not hold NaN.")
    return array


def block_slices(rows: int, width: int) -> list[slice]:
    """Slices of a matrix of this shape, each of about `BLOCK` numbers."""
    step = max(1, BLOCK // width)
    return [slice(start, start + step) for start in range(0, rows, step)]


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """Embeddings with an index that sorts them by class; the rows themselves are not moved."""

    call: str
    X: Array  # (n, l)
    classes: Array  # (C,) sorted
    codes: Array  # (n,) for each row, the index of its class
    order: Array  # (n,) row indices, sorted by class
    counts: Array  # (C,)

    @property
    def eps(self) -> float:
        """Relative rounding error of the input: that of float32 for half and single precision, otherwise none."""
        return float(np.finfo(np.float32).eps) if self.X.dtype in (np.float16, np.float32) else 0.0

    def by_class(self) -> Iterator[Array]:
        """The rows of each class, copied in their own type."""
        return (self.X[index] for index in self._indices())

    def class_sums(self) -> Array:
        """The sums of the rows of each class, in float64.  # (C, l)"""

        def total(index: Array) -> Array:
            blocks = (self.X[index[part]].astype(np.float64) for part in block_slices(len(index), self.X.shape[1]))
            with np.errstate(invalid="ignore", over="ignore"):
                return np.asarray(sum(np.ones(len(block)) @ block for block in blocks))

        with one_blas_thread():
            return np.stack(on_all_cores(total, self._indices()))

    def class_averages(self, values: Callable[[Array, Array], Array]) -> Array:
        """The mean over each class of one value per row.  # (C,)

        `values(codes, block)` computes it on all cores from float64 copies of the rows.
        """
        with one_blas_thread():
            computed = on_all_cores(
                lambda part: values(self.codes[part], self.X[part].astype(np.float64)), block_slices(*self.X.shape)
            )
        return np.bincount(self.codes, np.concatenate(computed)) / self.counts

    def residuals(self, means: Array) -> Iterator[tuple[Array, Array]]:
        """Blocks of rows minus the means of their classes, with the classes of the rows."""
        for part in block_slices(*self.X.shape):
            yield self.codes[part], self.X[part].astype(np.float64) - means[self.codes[part]]

    def _indices(self) -> list[Array]:
        """The row indices of each class."""
        return np.split(self.order, np.cumsum(self.counts)[:-1])


def group(call: str, X: Any, y: Any, at_least: int = 2) -> GroupedRows:
    """Check (X, y) and sort the row indices by class."""
    X = check_matrix(call, "X", X)
    y = check_labels(call, "y", y, len(X))
    try:
        classes, codes = np.unique(y, return_inverse=True)
    except TypeError as error:
        raise ParameterError(f"{call}: the labels in y must be comparable with one another.") from error
    if len(classes) < at_least:
        raise ParameterError(f"{call}: y must hold at least {at_least} classes, got {len(classes)}.")
    order = np.argsort(codes.astype(np.min_scalar_type(len(classes))), kind="stable")  # small integers sort faster
    return GroupedRows(call, X, classes, codes, order, np.bincount(codes, minlength=len(classes)))
