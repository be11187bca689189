"""Row-wise arithmetic: float32 data, float64 sums."""

import numpy as np

from imprint.core.types import Array


def squared_norms(X: Array) -> Array:
    """Squared Euclidean length of every row, summed in float64.  # (n,)"""
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def unit_rows(X: Array) -> Array:
    """Every row over its length; a zero row stays zero.

    Rows too large or too small for their square are scaled by their largest entry first.
    """
    length = np.sqrt(squared_norms(X))
    odd = (length < 1e-150) | (length > 1e150)
    if odd.any():
        X = X.copy()
        peak = np.abs(X[odd]).max(axis=1, keepdims=True)
        X[odd] = np.divide(X[odd], peak, out=np.zeros_like(X[odd]), where=peak > 0)
        length[odd] = np.sqrt(squared_norms(X[odd]))
    length[length == 0] = 1
    return np.divide(X, length.astype(X.dtype)[:, None])
