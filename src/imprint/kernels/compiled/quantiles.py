"""Loops of `kernels.quantiles`: ranks, and the targets of classes imprinted one after another."""

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled import jit


@jit
def pack(X: Array) -> Array:
    """Every float32 value with its position in its row as one integer, in the order of values, then of positions."""
    n, d = X.shape
    out, bits = np.empty((n, d), np.int64), np.empty(d, np.float32)
    for r in range(n):
        for i in range(d):
            bits[i] = X[r, i] + np.float32(0)  # there is one zero only
        whole = bits.view(np.int32)
        for i in range(d):
            sortable = whole[i] ^ np.int32(0x7FFFFFFF) if whole[i] < 0 else whole[i]
            out[r, i] = (np.int64(sortable) << 32) | i
    return out


@jit
def invert(packed: Array, out: Array) -> None:
    """The rank of every position from sorted values and positions."""
    for r in range(packed.shape[0]):
        for i in range(packed.shape[1]):
            out[r, packed[r, i] & 0xFFFFFFFF] = i


@jit
def values_at(ranks: Array, values: Array, out: Array) -> None:
    """The value that goes with every rank."""
    for r in range(ranks.shape[0]):
        for i in range(ranks.shape[1]):
            out[r, i] = values[np.uint64(ranks[r, i])]


@jit
def targets_in_turn(once: Array, sizes: Array, levels: Array, targets: Array) -> None:
    """Fill in the quantiles of a growing pool: sorted values at first, then every target so many times.

    `many` holds the targets so far, sorted, with how many times each counts and how many of `once` lie below it; its
    copies stand in the sorted pool from `start` to `stop`, after `copies` of those before it.
    """
    d, room = len(levels), targets.size + 1
    many, times, below = np.empty(room, targets.dtype), np.empty(room, np.int64), np.empty(room, np.int64)
    other, other_times, other_below = np.empty_like(many), np.empty_like(times), np.empty_like(below)
    start, stop, copies = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    total, beyond = len(once), np.iinfo(np.int64).max
    for turn in range(len(targets)):
        held, target = turn * d, targets[turn]
        before = 0
        for j in range(held):
            copies[j] = before
            start[j] = below[j] + before
            stop[j] = start[j] + times[j]
            before += times[j]
        start[held] = stop[held] = beyond
        copies[held] = before
        j = 0
        for i in range(d):
            position = levels[i] * (total - 1)
            low = int(position)
            share = position - low
            while stop[j] <= low:
                j += 1
            first = many[j] if start[j] <= low else once[low - copies[j]]
            high, next_j = min(low + 1, total - 1), j
            while stop[next_j] <= high:
                next_j += 1
            second = many[next_j] if start[next_j] <= high else once[high - copies[next_j]]
            step = second - first
            target[i] = first + step * share if share < 0.5 else second - step * (1 - share)
        a, lowest = 0, np.searchsorted(once, target)
        for i in range(d):
            while a < held and many[a] <= target[i]:
                other[a + i], other_times[a + i], other_below[a + i] = many[a], times[a], below[a]
                a += 1
            other[a + i], other_times[a + i], other_below[a + i] = target[i], sizes[turn], lowest[i]
        for rest in range(a, held):
            other[rest + d], other_times[rest + d], other_below[rest + d] = many[rest], times[rest], below[rest]
        many, other = other, many
        times, other_times = other_times, times
        below, other_below = other_below, below
        total += sizes[turn] * d
