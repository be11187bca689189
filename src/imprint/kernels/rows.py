"""Row-wise and column-wise sums: float32 data, float64 sums, no float64 copy of the data; tensors where they lie."""

from typing import Any

import numpy as np

from imprint.core.arrays import is_torch
from imprint.core.types import Array
from imprint.kernels import cpu

BLOCK = 1024  # rows turned into float64 at a time


def squared_norms(X: Any) -> Any:
    """Squared Euclidean length of every row.  # (n,) float64"""
    if is_torch(X):
        from imprint.kernels.tensor import rows

        return rows.squared_norms(X)
    out = np.empty(len(X))
    for i in range(0, len(X), BLOCK):
        block = X[i : i + BLOCK].astype(np.float64, copy=False)
        np.einsum("ij,ij->i", block, block, out=out[i : i + BLOCK])
    return out


def squared_distances(X: Any, centres: Array, labels: Array | None = None) -> Array:
    """Squared Euclidean distance of every row to one centre, or to that of its own label.  # (n,) float64"""
    if is_torch(X) and labels is None:
        from imprint.kernels.tensor import rows

        return rows.squared_distances(X, centres)
    if labels is not None and cpu.use_numba(X.size):
        from imprint.kernels.compiled.products import distances_to_own

        return distances_to_own(X, centres, labels.astype(np.int32))
    out = np.empty(len(X))
    for i in range(0, len(X), BLOCK):
        block = slice(i, i + BLOCK)
        apart = X[block].astype(np.float64) - (centres if labels is None else centres[labels[block]])
        np.einsum("ij,ij->i", apart, apart, out=out[block])
    return out


def column_sums(X: Any, weight: Array | None = None) -> Any:
    """Sum of all rows, each times its weight.  # (d,) float64"""
    if is_torch(X):
        from imprint.kernels.tensor import rows

        return rows.column_sums(X, weight)
    if weight is not None:
        return np.einsum("i,ij->j", weight, X, dtype=np.float64)
    return np.asarray(X.sum(axis=0, dtype=np.float64))


def column_means(X: Array) -> Array:
    """Mean of all rows.  # (d,) float64"""
    return column_sums(X) / len(X)


def weighted_means(X: Any, weight: Array | None) -> Any:
    """Mean of all rows, each counted as often as its weight says.  # (d,) float64"""
    return column_means(X) if weight is None else column_sums(X, weight) / weight.sum(dtype=np.float64)


def weighted_rows(X: Array, weight: Array | None) -> Array:
    """Rows whose outer products are those of X times the weights.  # (n, d)"""
    return X if weight is None else np.asarray(X * np.sqrt(weight).astype(X.dtype)[:, None])


def centred_moments(X: Any, weight: Array | None = None) -> tuple[Array, float, float]:
    """Mean of all rows, sum of their squared distances from it, and their number; a row counts as its weight.

    Distances are taken from an approximate mean and corrected by what they sum to, so that a large common offset costs
    no digits.  # (d,) float64
    """
    count = float(len(X)) if weight is None else float(weight.sum(dtype=np.float64))
    if is_torch(X):
        from imprint.kernels.tensor import rows

        near, total, squares = rows.sums_about_mean(X, weight, count)
    else:
        near, total, squares = weighted_means(X, weight), np.zeros(X.shape[1]), 0.0
        for i in range(0, len(X), BLOCK):
            apart = X[i : i + BLOCK].astype(np.float64) - near
            mass = np.ones(len(apart)) if weight is None else weight[i : i + BLOCK]
            total += mass @ apart
            squares += float(mass @ np.einsum("ij,ij->i", apart, apart))
    shift = total / count
    return near + shift, max(squares - float(total @ shift), 0.0), count


def products(X: Any, v: Array) -> Array:
    """Inner product of every row with one vector.  # (n,) float64"""
    if is_torch(X):
        from imprint.kernels.tensor import rows

        return rows.products(X, v)
    out = np.empty(len(X))
    for i in range(0, len(X), BLOCK):
        block = X[i : i + BLOCK].astype(np.float64, copy=False)
        np.einsum("ij,j->i", block, v, out=out[i : i + BLOCK])
    return out


def lengths(X: Array) -> Array | None:
    """What `unit_rows` divides rows by, 1 for a zero row; None where some are too extreme to be squared.  # (n,)"""
    length = np.sqrt(squared_norms(X))
    zero = np.flatnonzero(length == 0)
    length[zero[~X[zero].any(axis=1)]] = 1
    return None if _odd(length).any() else np.asarray(length.astype(X.dtype))


def unit_rows(X: Any) -> Any:
    """Every row over its length; a zero row stays zero.

    Rows too large or too small to be squared are first scaled by their largest entry.
    """
    if is_torch(X):
        from imprint.kernels.tensor import rows

        return rows.unit_rows(X)
    length = np.sqrt(squared_norms(X))
    odd = _odd(length)
    if odd.any():
        X = X.copy()
        peak = np.abs(X[odd]).max(axis=1, keepdims=True)
        X[odd] = np.divide(X[odd], peak, out=np.zeros_like(X[odd]), where=peak > 0)
        length[odd] = np.sqrt(squared_norms(X[odd]))
    length[length == 0] = 1
    return np.asarray(X / length.astype(X.dtype)[:, None])


def _odd(length: Array) -> Array:
    return np.asarray((length < 1e-30) | (length > 1e30))
