"""Lloyd's iteration with Elkan's bounds; sums change only by the rows that move."""

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled.jit import jit
from imprint.kernels.compiled.products import dot, squared_distance


@jit
def first_assignment(products: Array, norms: Array, halves: Array, rounding: float) -> tuple[Array, Array, Array]:
    """Labels, upper and lower bounds from all products.  # (n,), (n,), (n, k)"""
    k, n = products.shape
    labels = np.empty(n, dtype=np.int32)
    upper = np.empty(n)
    lower = np.empty((n, k))
    for i in range(n):
        best = 0
        for j in range(k):
            if halves[j] - products[j, i] < halves[best] - products[best, i]:
                best = j
            squared = norms[i] + 2 * (halves[j] - products[j, i])
            lower[i, j] = np.sqrt(max(squared - rounding, 0.0))
        labels[i] = best
        upper[i] = np.sqrt(max(norms[i] + 2 * (halves[best] - products[best, i]), 0.0) + rounding)
    return labels, upper, lower


@jit
def assign(
    X: Array,
    norms: Array,
    C: Array,
    halves: Array,
    drift: Array,
    step: float,
    rounding: float,
    labels: Array,
    upper: Array,
    lower: Array,
    gate: Array,
    moved: Array,
) -> int:
    """Give every row its nearest centre; fill `moved` with the rows that changed and their old labels.

    Bounds are stored relative to the total `drift` of their centre, so that only rows in doubt are touched:
    `upper + drift` of the own centre and `lower - drift` of another one bound the distances. `gate` bounds the
    nearest other centre and sinks by the largest `step` of any centre.
    """
    count = 0
    k = C.shape[0]
    for i in range(X.shape[0]):
        own = labels[i]
        gate[i] -= step
        reach = upper[i] + drift[own]
        if reach < gate[i]:
            continue
        others = np.inf
        for j in range(k):
            if j != own:
                others = min(others, lower[i, j] - drift[j])
        gate[i] = others
        if reach < others:
            continue
        score = halves[own] - dot(X[i], C[own])
        squared = norms[i] + 2 * score
        reach = np.sqrt(max(squared, 0.0) + rounding)
        upper[i] = reach - drift[own]
        if reach < others:
            continue
        lower[i, own] = np.sqrt(max(squared - rounding, 0.0)) + drift[own]
        best = own
        for j in range(k):
            if j == own or lower[i, j] - drift[j] > reach:
                continue
            candidate = halves[j] - dot(X[i], C[j])
            squared = norms[i] + 2 * candidate
            lower[i, j] = np.sqrt(max(squared - rounding, 0.0)) + drift[j]
            if candidate < score or (candidate == score and j < best):
                best, score = j, candidate
                reach = np.sqrt(max(squared, 0.0) + rounding)
        others = np.inf
        for j in range(k):
            if j != best:
                others = min(others, lower[i, j] - drift[j])
        gate[i] = others
        upper[i] = reach - drift[best]
        if best != own:
            moved[0, count] = i
            moved[1, count] = own
            labels[i] = best
            count += 1
    return count


@jit
def add_rows(X: Array, weight: Array, labels: Array, sums: Array, total: Array) -> None:
    """Sum of every cluster, in the order of the rows."""
    for i in range(X.shape[0]):
        j, w = labels[i], weight[i]
        total[j] += w
        for t in range(X.shape[1]):
            sums[j, t] += w * np.float64(X[i, t])


@jit
def move_rows(X: Array, weight: Array, labels: Array, moved: Array, count: int, sums: Array, total: Array) -> None:
    """Take each moved row out of its old cluster and add it to the new one."""
    for m in range(count):
        i, old = moved[0, m], moved[1, m]
        new, w = labels[i], weight[i]
        total[old] -= w
        total[new] += w
        for t in range(X.shape[1]):
            part = w * np.float64(X[i, t])
            sums[old, t] -= part
            sums[new, t] += part


@jit
def distances_to_own(X: Array, C: Array, labels: Array) -> Array:
    """Squared distance of every row to its centre."""
    out = np.empty(X.shape[0])
    for i in range(X.shape[0]):
        out[i] = squared_distance(X[i], C[labels[i]])
    return out
