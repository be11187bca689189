"""Row-wise and column-wise sums: float32 data, float64 sums, no float64 copy of the data."""

import numpy as np

from imprint.core.types import Array

BLOCK = 1024  # rows turned into float64 at a time


def squared_norms(X: Array) -> Array:
    """Squared Euclidean length of every row.  # (n,) float64"""
    out = np.empty(len(X))
    for i in range(0, len(X), BLOCK):
        block = X[i : i + BLOCK].astype(np.float64, copy=False)
        np.einsum("ij,ij->i", block, block, out=out[i : i + BLOCK])
    return out


def column_sums(X: Array) -> Array:
    """Sum of all rows.  # (d,) float64"""
    return np.asarray(X.sum(axis=0, dtype=np.float64))


def column_means(X: Array) -> Array:
    """Mean of all rows.  # (d,) float64"""
    return column_sums(X) / len(X)


def products(X: Array, v: Array) -> Array:
    """Inner product of every row with one vector.  # (n,) float64"""
    out = np.empty(len(X))
    for i in range(0, len(X), BLOCK):
        block = X[i : i + BLOCK].astype(np.float64, copy=False)
        np.einsum("ij,j->i", block, v, out=out[i : i + BLOCK])
    return out


def lengths(X: Array) -> Array | None:
    """What `unit_rows` divides every row by; None where some rows are too large or too small to be squared.  # (n,)"""
    length = np.sqrt(squared_norms(X))
    if _odd(length).any():
        return None
    return np.asarray(length.astype(X.dtype))


def unit_rows(X: Array) -> Array:
    """Every row over its length; a zero row stays zero.

    Rows too large or too small to be squared are first scaled by their largest entry.
    """
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
