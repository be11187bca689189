"""Inner products in float64 of rows held in float32 or float64."""

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled.jit import jit, jit_sums


@jit_sums
def dot(x: Array, c: Array) -> float:
    """One product.  # c in float64"""
    total = 0.0
    for t in range(x.shape[0]):
        total += np.float64(x[t]) * c[t]
    return total


@jit_sums
def dot_four(x: Array, a: Array, b: Array, c: Array, d: Array) -> tuple[float, float, float, float]:
    """Four products that read `x` once."""
    p = q = r = s = 0.0
    for t in range(x.shape[0]):
        value = np.float64(x[t])
        p += value * a[t]
        q += value * b[t]
        r += value * c[t]
        s += value * d[t]
    return p, q, r, s


@jit
def self_products(X: Array) -> Array:
    """Squared length of every row, rounded as `products_with` rounds."""
    out = np.empty(X.shape[0])
    for i in range(X.shape[0]):
        row = X[i].astype(np.float64)
        out[i] = dot_four(X[i], row, row, row, row)[0]
    return out


@jit
def products_with(X: Array, C: Array, out: Array) -> None:
    """`out[j, i]` = product of row i and centre j; a result depends on its two rows alone."""
    k = C.shape[0]
    for j in range(0, k, 4):
        a, b, c, d = C[j], C[min(j + 1, k - 1)], C[min(j + 2, k - 1)], C[min(j + 3, k - 1)]
        for i in range(X.shape[0]):
            p, q, r, s = dot_four(X[i], a, b, c, d)
            out[j, i] = p
            if j + 1 < k:
                out[j + 1, i] = q
            if j + 2 < k:
                out[j + 2, i] = r
            if j + 3 < k:
                out[j + 3, i] = s


@jit_sums
def squared_distance(x: Array, c: Array) -> float:
    total = 0.0
    for t in range(x.shape[0]):
        delta = np.float64(x[t]) - np.float64(c[t])
        total += delta * delta
    return total
