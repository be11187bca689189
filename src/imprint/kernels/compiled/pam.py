"""Eager swaps for `kernels.medoids`."""

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled import jit, jit_sums

# Every choice in a loop over rows is between two values: LLVM 22 vectorises choices within choices wrongly.


@jit
def rank(M: Array, near: Array, away: Array) -> None:
    """The nearest medoid of every row, the first on a tie, and the distances to it and to the second.  # M: (k, n)"""
    near[:] = 0
    away[0], away[1] = M[0], np.inf
    for j in range(1, M.shape[0]):
        slot = np.int32(j)
        for o in range(M.shape[1]):
            new, one, first, after = M[j, o], near[o], away[0, o], away[1, o]
            leads = new < first
            runner_up = new if new < after else after
            near[o] = slot if leads else one
            away[0, o] = new if leads else first
            away[1, o] = first if leads else runner_up


@jit
def sums_by_medoid(values: Array, near: Array, sums: Array) -> None:
    """Fill `sums` with the sum of the values of each medoid's rows."""
    sums[:] = 0
    for o in range(len(values)):
        sums[near[o]] += values[o]


@jit_sums
def cost(weight: Array, away: Array) -> float:
    """The weighted sum of the distances to the nearest medoids."""
    total = 0.0
    for o in range(len(weight)):
        total += weight[o] * np.float64(away[0, o])
    return total


@jit_sums
def changes(distances: Array, a: int, weight: Array, away: Array, out: Array) -> float:
    """What every row loses when a new medoid replaces its nearest; returns what the new one changes in any case."""
    shared = 0.0
    for o in range(len(out)):
        new, first, after = np.float64(distances[a, o]), np.float64(away[0, o]), np.float64(away[1, o])
        shared += weight[o] * min(new - first, 0.0)
        out[o] = weight[o] * (max(min(new, after), first) - first)
    return shared


@jit
def eager_swaps(
    distances: Array, start: int, weight: Array, M: Array, medoids: Array, near: Array, away: Array, idle: int
) -> int:
    """Try each row of a block as a medoid and swap whenever that lowers the cost; rows since the last swap.

    A block of all rows is repeated until a whole round changes nothing.
    """
    n, k = M.shape[1], M.shape[0]
    sums, values = np.empty(k), np.empty(n)
    enough = -1e-10 * cost(weight, away)
    while idle < n:
        for a in range(distances.shape[0]):
            if idle >= n:
                break
            idle += 1
            shared = changes(distances, a, weight, away, values)
            sums_by_medoid(values, near, sums)
            slot = int(np.argmin(sums))
            if sums[slot] + shared < enough:
                M[slot] = distances[a]
                rank(M, near, away)
                medoids[slot] = start + a
                enough, idle = -1e-10 * cost(weight, away), 0
        if distances.shape[0] < n:
            break
    return idle
