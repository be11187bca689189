"""Quantiles of a growing pool, for `kernels.quantiles`."""

from imprint.core.types import Array
from imprint.kernels.compiled import jit


@jit
def successive_targets(pool: Array, used: int, sizes: Array, levels: Array, targets: Array) -> None:
    """Fill in every target: the quantiles of the pool and of the earlier targets, each counted `sizes` times.

    The first `used` values of the pool are ascending; it has space for all copies of all targets, which are merged into
    it from the end, so that nothing is overwritten.
    """
    d = len(levels)
    for turn in range(len(targets)):
        target, size = targets[turn], sizes[turn]
        for i in range(d):
            position = levels[i] * (used - 1)
            low = int(position)
            share = position - low
            below, above = pool[low], pool[min(low + 1, used - 1)]
            step = above - below
            target[i] = below + step * share if share < 0.5 else above - step * (1 - share)
        last, to = used - 1, used + d * size - 1
        for i in range(d - 1, -1, -1):
            while last >= 0 and pool[last] > target[i]:
                pool[to] = pool[last]
                last -= 1
                to -= 1
            for _ in range(size):
                pool[to] = target[i]
                to -= 1
        used += d * size
