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
# of the squared lengths; squared distances up to that are computed again, from
# differences
CLOSE_SHARE = 1e-2


def double(X: Any) -> Any:
    """X in float64, without a copy if it is float64."""
    return X.double() if is_torch(X) else X.astype(np.float64, copy=False)


@contextmanager
def exact_products(x: Any) -> Iterator[None]:
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


def _blocks(X: Any) -> list[slice]:
    step = DEVICE_BLOCK_ROWS if is_torch(X) else BLOCK_ROWS
    return blocks(max(1, len(X)), step)


def _by_blocks(X: Any, function: Callable[[Any], Any]) -> Any:
    """A function of blocks of rows in float64, with one number per row.  # (n,)"""
    return concatenate([function(double(X[rows])) for rows in _blocks(X)])


def _squares(rows: Any) -> Any:
    return rows.square().sum(1) if is_torch(rows) else np.einsum("ij,ij->i", rows, rows)


def squared_norms(X: Any) -> Any:
    """Squared Euclidean length of every row, where the rows lie.  # (n,) float64"""
    return _by_blocks(X, _squares)


def squared_distances(X: Any, centre: Array) -> Array:
    """Squared Euclidean distance of every row to a point.  # (n,) float64"""
    point = like(centre, X)
    return np.asarray(to_numpy(_by_blocks(X, lambda rows: _squares(rows - point))))


def recompute_close(squares: Any, limits: Any, Q: Any, W: Any) -> None:
    """Compute squared distances up to their limits again, in place, from differences,
    which do not cancel.  # (q, p)
    """
    # a search in one axis takes half the time
    close = namespace(squares).argwhere((squares <= limits).ravel())[:, 0]
    step = DEVICE_BLOCK_ROWS if is_torch(Q) else BLOCK_PAIRS
    for block in blocks(len(close), step):
        q, w = close[block] // len(W), close[block] % len(W)
        squares[q, w] = squared_norms(double(Q[q]) - W[w])


def products(X: Any, v: Array) -> Array:
    """Inner product of every row with one vector.  # (n,) float64"""
    vector = like(v, X)
    return np.asarray(
        to_numpy(
            _by_blocks(X, lambda rows: namespace(X).einsum("ij,j->i", rows, vector))
        )
    )


def column_sums(X: Any, weight: Array | None = None) -> Array:
    """Sum of all rows, each times its weight.  # (d,) float64"""
    return np.asarray(
        to_numpy(_column_sums(X, None if weight is None else like(weight, X)))
    )


def _column_sums(X: Any, mass: Any) -> Any:
    if mass is None:
        return X.sum(0, dtype=namespace(X).float64)
    return (
        X.double().T @ mass.double()
        if is_torch(X)
        else np.einsum("i,ij->j", mass, X, dtype=np.float64)
    )


def column_means(X: Any, weight: Array | None = None) -> Array:
    """Weighted mean of all rows.  # (d,) float64"""
    return column_sums(X, weight) / (
        len(X) if weight is None else weight.sum(dtype=np.float64)
    )


def weighted_rows(X: Array, weight: Array | None) -> Array:
    """Rows times the square root of their weights; their outer products are weighted.
    # (n, d)
    """
    return (
        X
        if weight is None
        else np.asarray(X * np.sqrt(weight).astype(X.dtype)[:, None])
    )


def centred_moments(X: Any, weight: Array | None = None) -> tuple[Array, float, float]:
    """Mean of all rows, sum of their squared distances from it, and their number; a row
    counts as its weight.

    Rows are centred at an approximate mean, and the rounding of that mean is corrected,
    so that a large common offset loses no digits. A GPU copies its sums to the host
    once.  # (d,) float64
    """
    count = float(len(X)) if weight is None else float(weight.sum(dtype=np.float64))
    mass = like(
        np.ones(len(X)) if weight is None else np.asarray(weight, dtype=np.float64), X
    )
    centre = _column_sums(X, None if weight is None else mass) / count
    total, squares = centre * 0, centre[:1] * 0
    for rows in _blocks(X):
        centred = double(X[rows]) - centre
        total += mass[rows] @ centred
        squares += mass[rows] @ _squares(centred)
    centre, total, squares = np.split(
        to_numpy(concatenate([centre, total, squares])), [X.shape[1], 2 * X.shape[1]]
    )
    shift = total / count
    return centre + shift, max(float(squares[0] - total @ shift), 0.0), count


def lengths(X: Array) -> Array | None:
    """The lengths of rows, 1 for a zero row; None if some are too large or too small to
    be squared.  # (n,)
    """
    length = np.sqrt(squared_norms(X))
    zero = np.flatnonzero(length == 0)
    length[zero[~X[zero].any(axis=1)]] = 1
    return None if _is_extreme(length).any() else np.asarray(length.astype(X.dtype))


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


def _unit_rows_by_peak(X: Any) -> Any:
    xp = namespace(X)
    peak = xp.amax(abs(X), axis=1, keepdims=True)
    scaled = X / xp.where(peak > 0, peak, 1)
    length = cast_like(xp.sqrt(squared_norms(scaled)), X)[:, None]
    return scaled / xp.where(length > 0, length, 1)


def _is_extreme(length: Array) -> Array:
    return np.asarray((length < 1e-30) | (length > 1e30))
