"""Distances and eager swaps for `kernels.medoids`."""

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled.jit import jit, jit_sums
from imprint.kernels.compiled.products import squared_distance

LANES = 4  # sums kept side by side, since an addition must wait for the one before it to the same sum


@jit
def to_distances(X: Array, rows: Array, columns: Array, norms: Array, products: Array) -> None:
    """Turn products of rows and columns, in place, into distances; close pairs are computed anew."""
    others = norms[columns]
    for a in range(len(rows)):
        own = norms[rows[a]]
        close = 0
        for b in range(len(columns)):
            both = own + others[b]
            squared = both - 2 * np.float64(products[a, b])
            close += squared < 1e-3 * both
            products[a, b] = np.sqrt(max(squared, 0.0))
        if close:
            for b in range(len(columns)):
                if products[a, b] ** 2 < 1.1e-3 * (own + others[b]):
                    products[a, b] = np.sqrt(squared_distance(X, rows[a], X, columns[b]))


@jit
def rank(M: Array, o: int, near: Array, second: Array) -> None:
    """Slots of the nearest and the second medoid of row `o`.  # M: (k, n)"""
    one, two = 0, 1
    if M[1, o] < M[0, o]:
        one, two = 1, 0
    for j in range(2, M.shape[0]):
        if M[j, o] < M[one, o]:
            one, two = j, one
        elif M[j, o] < M[two, o]:
            two = j
    near[o], second[o] = one, two


@jit
def two_nearest(M: Array, near: Array, second: Array) -> None:
    for o in range(M.shape[1]):
        rank(M, o, near, second)


@jit
def removal_losses(M: Array, weight: Array, near: Array, second: Array, losses: Array) -> float:
    """What the cost grows by when each medoid goes; returns the cost."""
    losses[:] = 0
    cost = 0.0
    for o in range(M.shape[1]):
        first = np.float64(M[near[o], o])
        cost += weight[o] * first
        losses[near[o]] += weight[o] * (np.float64(M[second[o], o]) - first)
    return cost


@jit
def swap(M: Array, slot: int, distances: Array, a: int, near: Array, second: Array) -> None:
    """Replace a medoid by the row at `distances[a]`."""
    for o in range(M.shape[1]):
        M[slot, o] = distances[a, o]
        if near[o] == slot or second[o] == slot:
            rank(M, o, near, second)
        elif M[slot, o] < M[near[o], o]:
            near[o], second[o] = slot, near[o]
        elif M[slot, o] < M[second[o], o]:
            second[o] = slot


@jit_sums
def gains(distances: Array, a: int, weight: Array, first: Array, after: Array, out: Array) -> tuple[float, float]:
    """What a new medoid saves every row in case its own goes, beyond what it saves in any case; the sums of both."""
    shared = own = 0.0
    for o in range(len(out)):
        new = np.float64(distances[a, o])
        shared += weight[o] * min(new - first[o], 0.0)
        out[o] = weight[o] * (max(min(new, after[o]), first[o]) - after[o])
        own += out[o]
    return shared, own


@jit
def best_slot(losses: Array, gain: Array, near: Array, change: Array) -> int:
    """The medoid that a new one replaces best; fills `change[0]` with what the loss of each comes to."""
    k, rest = len(losses), len(gain) % LANES
    change[:] = 0
    change[0] = losses
    for o in range(0, len(gain) - rest, LANES):
        for lane in range(LANES):
            change[lane, near[o + lane]] += gain[o + lane]
    for o in range(len(gain) - rest, len(gain)):
        change[0, near[o]] += gain[o]
    for lane in range(1, LANES):
        for slot in range(k):
            change[0, slot] += change[lane, slot]
    return int(np.argmin(change[0]))


@jit
def eager_swaps(
    distances: Array, start: int, weight: Array, M: Array, medoids: Array, near: Array, second: Array,
    idle: int,
) -> int:  # fmt: skip
    """Try each row of a block as a medoid and swap whenever that lowers the cost; rows since the last swap.

    A row whose gains would not outweigh the least loss even if all of them came together is passed over.
    """
    n, k = M.shape[1], M.shape[0]
    change, losses, gain = np.empty((LANES, k)), np.empty(k), np.empty(n)
    first, after = np.empty(n), np.empty(n)
    fresh = True
    least = enough = 0.0
    for a in range(distances.shape[0]):
        if fresh:
            enough = -1e-10 * removal_losses(M, weight, near, second, losses)
            least = losses.min()
            for o in range(n):
                first[o], after[o] = M[near[o], o], M[second[o], o]
            fresh = False
        if idle >= n:
            break
        idle += 1
        shared, own = gains(distances, a, weight, first, after, gain)
        if least + own + shared >= enough * (1 - 1e-3):
            continue
        slot = best_slot(losses, gain, near, change)
        if change[0, slot] + shared < enough:
            swap(M, slot, distances, a, near, second)
            medoids[slot] = start + a
            fresh, idle = True, 0
    return idle


class CompiledSwaps:
    """Medoids under eager swaps, with the two nearest of every row."""

    def __init__(self, M: Array) -> None:
        self.M = M  # (k, n)
        self.near = np.empty(M.shape[1], dtype=np.int32)
        self.second = np.empty_like(self.near)
        two_nearest(M, self.near, self.second)

    def try_rows(self, distances: Array, start: int, weight: Array, medoids: Array, idle: int) -> int:
        return eager_swaps(distances, start, weight, self.M, medoids, self.near, self.second, idle)
