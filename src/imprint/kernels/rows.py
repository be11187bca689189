"""Row-wise and column-wise sums of arrays and tensors: float64 sums, without a float64 copy of all float32 rows.

Rows on a GPU are summed there. One number per column comes back as a NumPy array, and so do distances and products.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from imprint.core.arrays import in_type_of, is_torch, joined, like, namespace, to_numpy
from imprint.core.types import Array
from imprint.kernels.cpu import blocks

BLOCK = 1024  # rows turned into float64 at a time
PAIRS = 4096  # differences held at a time
DEVICE_BLOCK = 65536  # both on a GPU
CLOSE_SHARE = 1e-2
"""Squared distances up to this share of the squared lengths are computed again, from differences."""


def double(X: Any) -> Any:
    """The numbers of X as float64; not a copy if they are."""
    return X.double() if is_torch(X) else X.astype(np.float64, copy=False)


@contextmanager
def exact_products(x: Any) -> Iterator[None]:
    """Products of float32 tensors like x keep all their bits inside, whatever the caller has allowed outside."""
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
    step = DEVICE_BLOCK if is_torch(X) else BLOCK
    return blocks(max(1, len(X)), step)


def _by_blocks(X: Any, function: Callable[[Any], Any]) -> Any:
    """A function of blocks of rows in float64, with one number per row.  # (n,)"""
    return joined([function(double(X[rows])) for rows in _blocks(X)])


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
    """Compute squared distances up to their limits again, in place, from differences, which do not cancel.  # (q, p)"""
    pairs, step = namespace(squares).argwhere(squares <= limits), DEVICE_BLOCK if is_torch(Q) else PAIRS
    for block in blocks(len(pairs), step):
        q, w = pairs[block].T
        squares[q, w] = squared_norms(double(Q[q]) - W[w])


def products(X: Any, v: Array) -> Array:
    """Inner product of every row with one vector.  # (n,) float64"""
    vector = like(v, X)
    return np.asarray(to_numpy(_by_blocks(X, lambda rows: namespace(X).einsum("ij,j->i", rows, vector))))


def column_sums(X: Any, weight: Array | None = None) -> Array:
    """Sum of all rows, each times its weight.  # (d,) float64"""
    return np.asarray(to_numpy(_column_sums(X, None if weight is None else like(weight, X))))


def _column_sums(X: Any, mass: Any) -> Any:
    if mass is None:
        return X.sum(0, dtype=namespace(X).float64)
    return X.double().T @ mass.double() if is_torch(X) else np.einsum("i,ij->j", mass, X, dtype=np.float64)


def column_means(X: Any, weight: Array | None = None) -> Array:
    """Mean of all rows, each counted as often as its weight says.  # (d,) float64"""
    return column_sums(X, weight) / (len(X) if weight is None else weight.sum(dtype=np.float64))


def weighted_rows(X: Array, weight: Array | None) -> Array:
    """Rows whose outer products are those of X times the weights.  # (n, d)"""
    return X if weight is None else np.asarray(X * np.sqrt(weight).astype(X.dtype)[:, None])


def centred_moments(X: Any, weight: Array | None = None) -> tuple[Array, float, float]:
    """Mean of all rows, sum of their squared distances from it, and their number; a row counts as its weight.

    Distances are taken from an approximate mean and corrected by what they sum to, so that a large common offset costs
    no digits. A GPU copies its sums to the host once.  # (d,) float64
    """
    count = float(len(X)) if weight is None else float(weight.sum(dtype=np.float64))
    mass = like(np.ones(len(X)) if weight is None else np.asarray(weight, dtype=np.float64), X)
    near = _column_sums(X, None if weight is None else mass) / count
    total, squares = near * 0, near[:1] * 0
    for rows in _blocks(X):
        apart = double(X[rows]) - near
        total += mass[rows] @ apart
        squares += mass[rows] @ _squares(apart)
    near, total, squares = np.split(to_numpy(joined([near, total, squares])), [X.shape[1], 2 * X.shape[1]])
    shift = total / count
    return near + shift, max(float(squares[0] - total @ shift), 0.0), count


def lengths(X: Array) -> Array | None:
    """What `unit_rows` divides rows by, 1 for a zero row; None where some are too extreme to be squared.  # (n,)"""
    length = np.sqrt(squared_norms(X))
    zero = np.flatnonzero(length == 0)
    length[zero[~X[zero].any(axis=1)]] = 1
    return None if _odd(length).any() else np.asarray(length.astype(X.dtype))


def unit_rows(X: Any) -> Any:
    """Every row over its length; a zero row stays zero.

    Rows too large or too small to be squared are first scaled by their largest entry; on a GPU all are.
    """
    if is_torch(X):
        return _unit_rows_by_peak(X)
    length = np.sqrt(squared_norms(X))
    odd = _odd(length)
    length[odd] = 1
    unit = np.asarray(X / length.astype(X.dtype)[:, None])
    if odd.any():
        unit[odd] = _unit_rows_by_peak(X[odd])
    return unit


def _unit_rows_by_peak(X: Any) -> Any:
    xp = namespace(X)
    peak = xp.amax(abs(X), axis=1, keepdims=True)
    scaled = X / xp.where(peak > 0, peak, 1)
    length = in_type_of(xp.sqrt(squared_norms(scaled)), X)[:, None]
    return scaled / xp.where(length > 0, length, 1)


def _odd(length: Array) -> Array:
    return np.asarray((length < 1e-30) | (length > 1e30))
