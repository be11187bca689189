"""Exact distances of rows and centres, and the bounds on them that short images of rows (sketches) give.

Rows are named by index: a view of a row costs as much as a short sum.
"""

from typing import NamedTuple

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled import jit, jit_sums

ROUNDOFF64 = 2.0**-53  # the unit roundoff: largest relative error of rounding to float64
ROUNDOFF32 = 2.0**-24


class RowArrays(NamedTuple):
    """The rows of one data set, and bounds on their distances to centres.

    Products p of row i and centre j are approximated by those of sketches, about the mean of the rows, or by means of
    inner products of rows (the Gram matrix), about zero. The squared distance is then `squares[i] + squares[j] - 2 p`,
    up to `2 (blurs[i] blurs[j] + tails[i] tails[j])`.
    """

    X: Array  # (n, d)
    weight: Array  # (n,)
    norms: Array  # (n,) squared lengths
    squares: Array  # (n,) squared lengths about the mean or about zero
    blurs: Array  # (n,)
    tails: Array  # (n,)
    mean: Array  # (d,)
    directions: Array  # (d, r)
    sketches: Array  # (r, n) float32, rows about the mean projected on the directions
    gram: Array  # (n, n) float32, or (0, 0) where sketches are used


class CentreArrays(NamedTuple):
    """The same bounds for centres."""

    squares: Array  # (k,)
    scales: Array  # (k,) factors of products
    blurs: Array  # (k,)
    tails: Array  # (k,)


@jit_sums
def dot(X: Array, i: int, C: Array, j: int) -> float:
    """The product of row `i` and row `j` of `C`, in float64."""
    total = 0.0
    for t in range(X.shape[1]):
        total += np.float64(X[i, t]) * C[j, t]
    return total


@jit_sums
def squared_distance(X: Array, i: int, C: Array, j: int) -> float:
    """Between row `i` and row `j` of `C`, by differences in float64."""
    total = 0.0
    for t in range(X.shape[1]):
        delta = np.float64(X[i, t]) - np.float64(C[j, t])
        total += delta * delta
    return total


@jit
def distances_to_assigned(X: Array, C: Array, labels: Array) -> Array:
    """Squared distance of every row to its centre."""
    out = np.empty(X.shape[0])
    for i in range(X.shape[0]):
        out[i] = squared_distance(X, i, C, labels[i])
    return out


@jit
def squared_distances(X: Array, centre: Array) -> Array:
    """Squared distance of every row to a point."""
    return distances_to_assigned(X, centre.reshape(1, -1), np.zeros(X.shape[0], dtype=np.int32))


@jit
def squared_lengths(X: Array) -> Array:
    """Squared length of every row."""
    return squared_distances(X, np.zeros(X.shape[1]))


@jit
def sketch(C: Array, rows: RowArrays) -> tuple[Array, CentreArrays]:
    """The sketches of centres in float32, and their bounds.  # (k, r)"""
    offset = C - rows.mean
    short = np.dot(offset, rows.directions)
    squares = squared_lengths(offset)
    lengths = np.sqrt(squares)
    tails = np.sqrt(np.maximum(squares * (1 + 1e-12) - squared_lengths(short), 0)) + 1e-7 * lengths
    return short.astype(np.float32), CentreArrays(squares, np.ones(len(C)), lengths, tails)
