"""Sums over two rows. Rows are named by index: a view of a row costs as much as a short sum."""

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled.jit import jit, jit_sums


@jit_sums
def dot_two(X: Array, i: int, C: Array, a: int, b: int) -> tuple[float, float]:
    """Products of row `i` and two rows of `C`, held and summed in float64."""
    p = q = 0.0
    for t in range(X.shape[1]):
        value = np.float64(X[i, t])
        p += value * C[a, t]
        q += value * C[b, t]
    return p, q


@jit_sums
def squared_distance(X: Array, i: int, C: Array, j: int) -> float:
    """Between row `i` and row `j` of `C`, by differences in float64."""
    total = 0.0
    for t in range(X.shape[1]):
        delta = np.float64(X[i, t]) - np.float64(C[j, t])
        total += delta * delta
    return total


@jit
def squared_lengths(X: Array) -> Array:
    """Squared length of every row."""
    origin = np.zeros((1, X.shape[1]))
    out = np.empty(X.shape[0])
    for i in range(X.shape[0]):
        out[i] = squared_distance(X, i, origin, 0)
    return out


@jit
def distances_to_own(X: Array, C: Array, labels: Array) -> Array:
    """Squared distance of every row to its centre."""
    out = np.empty(X.shape[0])
    for i in range(X.shape[0]):
        out[i] = squared_distance(X, i, C, labels[i])
    return out


@jit
def nearer(
    X: Array,
    C: Array,
    products: Array,
    about: Array,
    blurs: Array,
    tails: Array,
    squared: Array,
    lengths: Array,
    centre_tails: Array,
    closest: Array,
    out: Array,
) -> None:
    """Squared distances to a few rows, or `closest` where that is less; whole rows only where sketches allow less."""
    for i in range(X.shape[0]):
        blur, tail = 2 * blurs[i], 2 * tails[i]
        for j in range(C.shape[0]):
            out[j, i] = closest[i]
            half = lengths[j] * blur + centre_tails[j] * tail
            if about[i] + squared[j] - 2 * np.float64(products[i, j]) - half < closest[i]:
                out[j, i] = min(closest[i], squared_distance(X, i, C, j))
