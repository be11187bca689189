"""Labelled rows: checked once, then read in float64 blocks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from imprint.core.arrays import Array, to_numpy
from imprint.core.errors import ParameterError
from imprint.kernels.cpu import blocks, on_all_cores

# 4 MB of float64: a block stays in the cache while it is processed
BLOCK_VALUES = 1 << 19


def check_labels(call: str, name: str, values: Any, count: int) -> Array:
    """Return the labels as an array; refuse them unless there is one per row, without
    NaN.
    """
    array = np.asarray(to_numpy(values))
    if array.shape != (count,):
        raise ParameterError(
            f"{call}: {name} must have shape ({count},), got {array.shape}."
        )
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise ParameterError(f"{call}: {name} must not hold NaN.")
    return array


def check_finite(call: str, name: str, values: Array) -> None:
    """Refuse values that are not finite."""
    if not np.isfinite(values).all():
        raise ParameterError(f"{call}: {name} must be finite, without NaN or infinity.")


def check_values(call: str, name: str, values: Any, shape: tuple[int, ...]) -> Array:
    """Return the values in float64; refuse them unless they are finite real numbers of
    this shape.
    """
    array = np.asarray(to_numpy(values))
    if array.shape != shape or array.dtype.kind not in "iuf":
        got = f"{array.dtype} of shape {array.shape}"
        raise ParameterError(
            f"{call}: {name} must have shape {shape} and hold real numbers, got {got}."
        )
    check_finite(call, name, array)
    return array.astype(np.float64)


@dataclass(frozen=True, eq=False)
class RowsByClass:
    """Embeddings and the classes of their rows. The rows are never moved or converted
    as a whole.
    """

    call: str  # for error messages
    X: Array  # (n, l)
    classes: Array  # (C,) sorted
    codes: Array  # (n,) for each row, the index of its class
    counts: Array  # (C,)

    @classmethod
    def of(cls, call: str, X: Any, y: Any, min_classes: int = 2) -> "RowsByClass":
        """Check (X, y). That all values are finite is checked later, by `class_means`
        or `check_finite`.
        """
        X = np.asarray(to_numpy(X))
        if X.ndim != 2 or 0 in X.shape:
            raise ParameterError(
                f"{call}: X must have shape (rows >= 1, width >= 1), got {X.shape}."
            )
        if X.dtype.kind not in "iuf":
            raise ParameterError(f"{call}: X must hold real numbers, got {X.dtype}.")
        y = check_labels(call, "y", y, len(X))
        try:
            classes, codes = np.unique(y, return_inverse=True)
        except TypeError as error:
            raise ParameterError(
                f"{call}: the labels in y must be comparable with one another."
            ) from error
        if len(classes) < min_classes:
            raise ParameterError(
                f"{call}: y must hold at least {min_classes} classes, got"
                f" {len(classes)}."
            )
        return cls(call, X, classes, codes, np.bincount(codes))

    @property
    def eps(self) -> float:
        """Relative rounding error of the input: that of float32 for half and single
        precision, otherwise 0.
        """
        return (
            float(np.finfo(np.float32).eps)
            if self.X.dtype in (np.float16, np.float32)
            else 0.0
        )

    def by_class(self) -> list[Array]:
        """The row indices of each class."""
        # sorts faster
        order = np.argsort(
            self.codes.astype(np.min_scalar_type(len(self.classes))), kind="stable"
        )
        return np.split(order, np.cumsum(self.counts)[:-1])

    def parts(self, index: Array | None = None) -> list[slice]:
        """Slices of all rows, or of some row indices, each of about `BLOCK_VALUES`
        values.
        """
        return blocks(
            len(self.X if index is None else index),
            max(1, BLOCK_VALUES // self.X.shape[1]),
        )

    def class_means(self) -> Array:
        """The mean of each class, in float64.  # (C, l)"""

        def total(index: Array) -> Array:
            rows_in_parts = (
                self.X[index[part]].astype(np.float64) for part in self.parts(index)
            )
            with np.errstate(invalid="ignore", over="ignore"):
                return np.asarray(
                    sum(np.ones(len(rows)) @ rows for rows in rows_in_parts)
                )

        sums = np.stack(on_all_cores(total, self.by_class()))
        check_finite(self.call, "X", sums)
        return sums / self.counts[:, None]

    def mean_squares(self, transform: Callable[[Array, Array], Array]) -> Array:
        """The mean over each class of the squared lengths of transformed rows.  # (C,)

        `transform(codes, block)` runs on all cores. It may change its block, a float64
        copy of some rows.
        """

        def squares(part: slice) -> Array:
            rows = transform(self.codes[part], self.X[part].astype(np.float64))
            return np.einsum("ij,ij->i", rows, rows)

        squared_lengths = np.concatenate(on_all_cores(squares, self.parts()))
        return np.bincount(self.codes, squared_lengths) / self.counts
