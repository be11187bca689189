"""Quantiles of a growing pool, for `kernels.quantiles`."""

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled import jit


@jit
def targets_in_turn(values: Array, sizes: Array, levels: Array, targets: Array) -> None:
    """Fill in every target: the quantiles of ascending values and of the earlier targets, each counted several times.

    The earlier targets are kept in ascending order, with their counts and the number of values below each. In the
    sorted pool, the copies of target j have the ranks from `start[j]` to `stop[j]`.
    """
    d, total = len(levels), len(values)
    repeated = np.empty(targets.size + 1, targets.dtype)
    counts, below, start, stop = np.empty((4, targets.size + 1), np.int64)
    for turn in range(len(targets)):
        target, n = targets[turn], turn * d
        copies = 0
        for j in range(n):
            start[j] = below[j] + copies
            copies += counts[j]
            stop[j] = below[j] + copies
        start[n], stop[n], below[n] = total, total + 1, total - copies  # beyond all ranks
        j = 0
        for i in range(d):
            position = levels[i] * (total - 1)
            low = int(position)
            share = position - low
            while stop[j] <= low:
                j += 1
            lower = repeated[j] if start[j] <= low else values[low - (start[j] - below[j])]
            high, above = min(low + 1, total - 1), j
            while stop[above] <= high:
                above += 1
            upper = repeated[above] if start[above] <= high else values[high - (start[above] - below[above])]
            step = upper - lower
            target[i] = lower + step * share if share < 0.5 else upper - step * (1 - share)
        smaller_values = np.searchsorted(values, target)
        last = n - 1
        for i in range(d - 1, -1, -1):  # merge from the end, so that nothing is overwritten
            while last >= 0 and repeated[last] > target[i]:
                to = last + i + 1
                repeated[to], counts[to], below[to] = repeated[last], counts[last], below[last]
                last -= 1
            to = last + i + 1
            repeated[to], counts[to], below[to] = target[i], sizes[turn], smaller_values[i]
        total += sizes[turn] * d
