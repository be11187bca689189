"""Labelled rows: checked once, then read in float64 blocks."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from imprint.core.arrays import Array, to_numpy
from imprint.core.errors import ParameterError
from imprint.kernels.cpu import blocks, on_all_cores

# 2^19 float64 values are 4 MB: a block stays in the cache of a core while it is
# processed.
BLOCK_VALUES = 1 << 19


def check_labels(
    call: str,
    name: str,
    values: ArrayLike,
    count: int,
) -> Array:
    """Return the labels as an array.

    They are refused unless there is one per row, without NaN.
    """
    array = np.asarray(to_numpy(values))
    if array.shape != (count,):
        raise ParameterError(
            f"{call}: {name} must have shape ({count},), got {array.shape}."
        )
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise ParameterError(f"{call}: {name} must not hold NaN.")
    return array


def check_finite(
    call: str,
    name: str,
    values: Array,
) -> None:
    """Refuse values that are not finite."""
    if not np.isfinite(values).all():
        raise ParameterError(f"{call}: {name} must be finite, without NaN or infinity.")


def check_values(
    call: str,
    name: str,
    values: ArrayLike,
    shape: tuple[int, ...],
) -> Array:
    """Return the values in float64.

    They are refused unless they are finite real numbers of this shape.
    """
    array = np.asarray(to_numpy(values))
    is_real = array.dtype.kind in "iuf"
    if array.shape != shape or not is_real:
        raise ParameterError(
            f"{call}: {name} must have shape {shape} and hold real numbers, got"
            f" {array.dtype} of shape {array.shape}."
        )
    check_finite(call, name, array)
    return array.astype(np.float64)


@dataclass(frozen=True, eq=False)
class RowsByClass:
    """Embeddings and the classes of their rows.

    The rows are never moved or converted as a whole.
    """

    call: str  # for error messages
    X: Array  # (n, l)
    classes: Array  # (C,) sorted
    codes: Array  # (n,) for each row, the index of its class
    counts: Array  # (C,)

    @classmethod
    def of(
        cls,
        call: str,
        X: ArrayLike,
        y: ArrayLike,
        min_classes: int = 2,
    ) -> "RowsByClass":
        """Check (X, y).

        That all values are finite is checked later, by `class_means` or `check_finite`.
        """
        X = np.asarray(to_numpy(X))
        if X.ndim != 2 or 0 in X.shape:
            raise ParameterError(
                f"{call}: X must have shape (rows >= 1, width >= 1), got {X.shape}."
            )
        if X.dtype.kind not in "iuf":
            raise ParameterError(f"{call}: X must hold real numbers, got {X.dtype}.")
        labels = check_labels(call, "y", y, len(X))
        try:
            classes, codes = np.unique(labels, return_inverse=True)
        except TypeError as error:
            raise ParameterError(
                f"{call}: the labels in y must be comparable with one another."
            ) from error
        if len(classes) < min_classes:
            raise ParameterError(
                f"{call}: y must hold at least {min_classes} classes, got"
                f" {len(classes)}."
            )
        counts = np.bincount(codes)
        return cls(call, X, classes, codes, counts)

    @property
    def eps(self) -> float:
        """Relative rounding error of the input.

        It is that of float32 for half and single precision, otherwise 0.
        """
        if self.X.dtype in (np.float16, np.float32):
            return float(np.finfo(np.float32).eps)
        return 0.0

    def by_class(self) -> list[Array]:
        """The row indices of each class."""
        # NumPy sorts integers of up to 16 bits by radix, in linear time.
        smallest_type = np.min_scalar_type(len(self.classes))
        order = np.argsort(self.codes.astype(smallest_type), kind="stable")
        ends = np.cumsum(self.counts)
        return np.split(order, ends[:-1])

    def parts(self, index: Array | None = None) -> list[slice]:
        """Slices of all rows, or of some row indices, of about `BLOCK_VALUES` values
        each.
        """
        rows = self.X if index is None else index
        rows_per_block = max(1, BLOCK_VALUES // self.X.shape[1])
        return blocks(len(rows), rows_per_block)

    def class_means(self) -> Array:
        """The mean of each class, in float64.  # (C, l)"""

        def total(index: Array) -> Array:
            sums = np.zeros(self.X.shape[1])
            # Infinity and NaN are refused below, for all classes at once.
            with np.errstate(invalid="ignore", over="ignore"):
                for part in self.parts(index):
                    block = self.X[index[part]].astype(np.float64)
                    # A product with ones is faster than a sum over the first axis.
                    sums += np.ones(len(block)) @ block
            return sums

        sums = np.stack(on_all_cores(total, self.by_class()))
        check_finite(self.call, "X", sums)
        return sums / self.counts[:, None]

    def mean_squares(self, transform: Callable[[Array, Array], Array]) -> Array:
        """The mean over each class of the squared lengths of transformed rows.  # (C,)

        `transform(codes, block)` runs on all cores. It may change its block, a float64
        copy of some rows.
        """

        def squares(part: slice) -> Array:
            block = self.X[part].astype(np.float64)
            rows = transform(self.codes[part], block)
            return np.einsum("ij,ij->i", rows, rows)

        parts = on_all_cores(squares, self.parts())
        squared_lengths = np.concatenate(parts)
        return np.bincount(self.codes, squared_lengths) / self.counts
