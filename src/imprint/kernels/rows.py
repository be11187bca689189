"""Row-wise and column-wise sums of arrays and tensors: float64 sums, without a float64
copy of all float32 rows.

Rows on a GPU are summed there. One number per column comes back as a NumPy array, and
so do distances and products.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from imprint.core.arrays import (
    AnyArray,
    Array,
    cast_like,
    concatenate,
    is_torch,
    like,
    namespace,
    to_numpy,
)
from imprint.core.blocks import column_slices
from imprint.kernels.cpu import blocks

BLOCK_ROWS = 1024  # converted to float64 at a time
BLOCK_PAIRS = 4096  # whose differences are in memory at a time
DEVICE_BLOCK_ROWS = 65536  # rows or pairs at a time on a GPU
# Of the squared lengths; squared distances up to that are computed again, from
# differences. Above it, cancellation loses at most two of the 16 digits of float64.
CLOSE_SHARE = 1e-2
# Lengths that can be divided by in float32, with room for the values of the rows.
MIN_LENGTH = 1e-30
MAX_LENGTH = 1e30


def double(X: Any) -> Any:
    """X in float64, without a copy if it is float64."""
    return X.double() if is_torch(X) else X.astype(np.float64, copy=False)


@contextmanager
def exact_products(x: AnyArray) -> Iterator[None]:
    """In the block, products of tensors have full float32 precision, whatever precision
    the caller has set.
    """
    if not is_torch(x):
        yield
        return
    torch = namespace(x)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _blocks(X: AnyArray) -> list[slice]:
    """Blocks of rows; of no rows, one empty block, so that there is a result."""
    step = DEVICE_BLOCK_ROWS if is_torch(X) else BLOCK_ROWS
    return blocks(max(1, len(X)), step)


def _by_blocks(X: AnyArray, function: Callable[[Any], AnyArray]) -> Any:
    """A function of blocks of rows in float64, with one number per row.  # (n,)"""
    return concatenate([function(double(X[rows])) for rows in _blocks(X)])


def _squares(rows: Any) -> Any:
    """Squared lengths of rows.  # (n,)"""
    if is_torch(rows):
        return rows.square().sum(1)
    return np.einsum("ij,ij->i", rows, rows)


def squared_norms(X: AnyArray) -> Any:
    """Squared Euclidean length of every row, where the rows lie.  # (n,) float64"""
    return _by_blocks(X, _squares)


def squared_distances(X: AnyArray, centre: Array) -> Array:
    """Squared Euclidean distance of every row to a point.  # (n,) float64"""
    point = like(centre, X)
    squares = _by_blocks(X, lambda rows: _squares(rows - point))
    return np.asarray(to_numpy(squares))


def recompute_close(
    squares: Any,
    limits: Any,
    Q: Any,
    W: Any,
) -> None:
    """Compute squared distances up to their limits again, in place, from differences,
    which do not cancel.  # (q, p)
    """
    # a search in one axis takes half the time
    close = namespace(squares).argwhere((squares <= limits).ravel())[:, 0]
    step = DEVICE_BLOCK_ROWS if is_torch(Q) else BLOCK_PAIRS
    for block in blocks(len(close), step):
        q = close[block] // len(W)
        w = close[block] % len(W)
        squares[q, w] = squared_norms(double(Q[q]) - W[w])


def products(X: AnyArray, v: Array) -> Array:
    """Inner product of every row with one vector.  # (n,) float64"""
    vector = like(v, X)
    einsum = namespace(X).einsum
    inner = _by_blocks(X, lambda rows: einsum("ij,j->i", rows, vector))
    return np.asarray(to_numpy(inner))


def column_sums(X: AnyArray, weight: Array | None = None) -> Array:
    """Sum of all rows, each times its weight.  # (d,) float64"""
    mass = None if weight is None else like(weight, X)
    return np.asarray(to_numpy(_column_sums(X, mass)))


def _column_sums(X: Any, mass: Any) -> Any:
    """The same where the rows lie, in float64 without a copy of float32 arrays."""
    if mass is None:
        return X.sum(0, dtype=namespace(X).float64)
    if is_torch(X):
        return X.double().T @ mass.double()
    return np.einsum("i,ij->j", mass, X, dtype=np.float64)


def column_means(X: AnyArray, weight: Array | None = None) -> Array:
    """Weighted mean of all rows.  # (d,) float64"""
    total = len(X) if weight is None else weight.sum(dtype=np.float64)
    return column_sums(X, weight) / total


def weighted_rows(X: Array, weight: Array | None) -> Array:
    """Rows times the square root of their weights; their outer products are weighted.
    # (n, d)
    """
    if weight is None:
        return X
    roots = np.sqrt(weight).astype(X.dtype)
    return np.asarray(X * roots[:, None])


def centred_moments(X: Any, weight: Array | None = None) -> tuple[Array, float, float]:
    """Mean of all rows, sum of their squared distances from it, and their number; a row
    counts as its weight.

    Rows are centred at an approximate mean, and the rounding of that mean is corrected,
    so that a large common offset loses no digits. A GPU copies its sums to the host
    once.  # (d,) float64
    """
    width = X.shape[1]
    count = float(len(X))
    mass = like(np.ones(len(X)), X)
    # without weights, sums of rows take no products
    given_mass = None
    if weight is not None:
        count = float(weight.sum(dtype=np.float64))
        mass = like(np.asarray(weight, dtype=np.float64), X)
        given_mass = mass
    centre = _column_sums(X, given_mass) / count
    total = centre * 0
    squares = centre[:1] * 0
    for rows in _blocks(X):
        centred = double(X[rows]) - centre
        total += mass[rows] @ centred
        squares += mass[rows] @ _squares(centred)
    sums = to_numpy(concatenate([centre, total, squares]))
    centre, total, squares = np.split(sums, [width, 2 * width])
    # the mean of the centred rows, zero but for rounding
    shift = total / count
    scatter = max(float(squares[0] - total @ shift), 0.0)
    return centre + shift, scatter, count


def lengths(X: Array) -> Array | None:
    """The lengths of rows, 1 for a zero row; None if some are too large or too small to
    be squared.  # (n,)
    """
    length = np.sqrt(squared_norms(X))
    # the squares of a tiny row underflow: it is not zero, but its length is
    zero = np.flatnonzero(length == 0)
    is_zero_row = ~X[zero].any(axis=1)
    length[zero[is_zero_row]] = 1
    if _is_extreme(length).any():
        return None
    return np.asarray(length.astype(X.dtype))


def unit_blocks(X: Array, widths: Sequence[int]) -> Array:
    """Unit rows in which every block has the same length; without blocks, unit rows.

    A block that is zero stays zero.
    """
    if not widths:
        return np.asarray(unit_rows(X))
    parts = [unit_rows(X[:, columns]) for columns in column_slices(widths)]
    return np.asarray(unit_rows(np.concatenate(parts, axis=1)))


def unit_rows(X: Any) -> Any:
    """Every row divided by its length; a zero row stays zero.

    Rows too large or too small to be squared are first scaled by their largest entry;
    on a GPU all are.
    """
    if is_torch(X):
        return _unit_rows_by_peak(X)
    length = np.sqrt(squared_norms(X))
    extreme = _is_extreme(length)
    length[extreme] = 1
    unit = np.asarray(X / length.astype(X.dtype)[:, None])
    if extreme.any():
        unit[extreme] = _unit_rows_by_peak(X[extreme])
    return unit


def _unit_rows_by_peak(X: AnyArray) -> Any:
    """Unit rows of any length: no square of a row with peak 1 overflows."""
    xp = namespace(X)
    peak = xp.amax(abs(X), axis=1, keepdims=True)
    scaled = X / xp.where(peak > 0, peak, 1)
    length = cast_like(xp.sqrt(squared_norms(scaled)), X)[:, None]
    return scaled / xp.where(length > 0, length, 1)


def _is_extreme(length: Array) -> Array:
    """Whether lengths are near the limits of float32, 1e-38 and 3e38."""
    return np.asarray((length < MIN_LENGTH) | (length > MAX_LENGTH))
