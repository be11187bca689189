"""Sums over two rows. Rows are named by index: a view of a row costs as much as a short sum."""

from typing import NamedTuple

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled import jit, jit_sums


class SketchArrays(NamedTuple):
    """Rows about their mean, projected on a few directions; see `kernels.compiled.kmeans.sketch`."""

    mean: Array  # (d,)
    directions: Array  # (d, r)
    images: Array  # (n, r) float32
    about: Array  # (n,) squared distances to the mean
    blurs: Array  # (n,) bounds on the rounding of images
    tails: Array  # (n,) bounds on the length of what images leave out


class CentreArrays(NamedTuple):
    """Centres about the mean of the rows, by their lengths; `halves` are half the squared lengths about zero."""

    halves: Array  # (k,)
    squared: Array
    lengths: Array
    tails: Array  # lengths of what sketches leave out


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
def traverse(X: Array, chosen: Array, nearest: Array) -> None:
    """The loop of `kernels.medoids.farthest_points`, from one chosen row; `nearest` holds squared distances."""
    for step in range(len(chosen)):
        row = chosen[step]
        for i in range(X.shape[0]):
            nearest[i] = min(nearest[i], squared_distance(X, i, X, row))
        nearest[row] = -1
        if step + 1 < len(chosen):
            chosen[step + 1] = np.argmax(nearest)


@jit
def sketch_centres(C: Array, sketch: SketchArrays) -> tuple[Array, CentreArrays]:
    """The projections of centres, in float32, and their lengths.  # (k, r)"""
    k, d = C.shape
    centres = CentreArrays(np.empty(k), np.empty(k), np.empty(k), np.empty(k))
    offset = C - sketch.mean
    short = np.dot(offset, sketch.directions)
    origin, none = np.zeros((1, d)), np.zeros((1, short.shape[1]))
    for j in range(k):
        squared = squared_distance(offset, j, origin, 0)
        centres.halves[j] = squared_distance(C, j, origin, 0) / 2
        centres.squared[j] = squared
        centres.lengths[j] = np.sqrt(squared)
        left = squared * (1 + 1e-12) - squared_distance(short, j, none, 0)
        centres.tails[j] = np.sqrt(max(left, 0.0)) + 1e-7 * centres.lengths[j]
    return short.astype(np.float32), centres


@jit
def nearer(X: Array, candidates: Array, sketch: SketchArrays, closest: Array, out: Array) -> None:
    """Squared distances to a few rows, or `closest` where that is less; whole rows only where sketches allow less."""
    C = X[candidates].astype(np.float64)
    short, centres = sketch_centres(C, sketch)
    products = np.dot(short, sketch.images.T)  # (candidates, n)
    about, blurs, tails = sketch.about, sketch.blurs, sketch.tails
    for j in range(len(candidates)):
        squared, length, tail = centres.squared[j], centres.lengths[j], centres.tails[j]
        for i in range(X.shape[0]):
            out[j, i] = closest[i]
            half = 2 * (length * blurs[i] + tail * tails[i])
            if about[i] + squared - 2 * np.float64(products[j, i]) - half < closest[i]:
                out[j, i] = min(closest[i], squared_distance(X, i, C, j))
