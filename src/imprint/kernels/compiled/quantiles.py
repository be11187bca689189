"""Loops of `kernels.quantiles`: ranks, and the targets of classes imprinted one after another."""

from typing import Any

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled.jit import jit


@jit
def invert(order: Array, out: Array) -> None:
    """The place of everything in the order of its row."""
    for r in range(order.shape[0]):
        for i in range(order.shape[1]):
            out[r, order[r, i]] = i


@jit
def targets_in_turn(once: Array, sizes: Array, levels: Array, targets: Array) -> None:
    """Fill in the quantiles of a growing pool: sorted values at first, then every target so many times.

    `many` holds the targets so far, sorted, with how many times each counts and how many of `once` lie below it.
    """
    d = len(levels)
    many, times, below = np.empty(targets.size, targets.dtype), np.empty(targets.size), np.empty(targets.size)
    other, other_times, other_below = np.empty_like(many), np.empty_like(times), np.empty_like(below)
    total = len(once)
    for turn in range(len(targets)):
        held, target = turn * d, targets[turn]
        j, copies = 0, 0.0  # the many that lie wholly below the rank, and how many values they are
        for i in range(d):
            place = levels[i] * (total - 1)
            low = int(place)
            share = place - low
            while j < held and below[j] + copies + times[j] <= low:
                copies += times[j]
                j += 1
            first = _ranked(once, many, times, below, held, j, copies, low)
            second = _ranked(once, many, times, below, held, j, copies, min(low + 1, total - 1))
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


@jit
def _ranked(
    once: Array, many: Array, times: Array, below: Array, held: int, j: int, copies: float, rank: int
) -> Any:  # fmt: skip
    """The value at a place of the sorted pool, at or just above the j-th of the many."""
    while j < held and below[j] + copies + times[j] <= rank:
        copies += times[j]
        j += 1
    if j < held and below[j] + copies <= rank:
        return many[j]
    return once[int(rank - copies)]
