"""Ranks of the values within rows, and quantiles of a growing pool of values."""

from collections.abc import Sequence

import numpy as np

from imprint.core.arrays import Array
from imprint.kernels import cpu

BLOCK_ROWS = 128  # ranked at a time; they stay in the cache

# The positions of wider rows do not fit into 16 bits.
MAX_INT16_WIDTH = 2**15


def ranks(X: Array) -> Array:
    """The rank of every value within its row, 0 for the smallest; equal values keep
    their order.  # (n, d)
    """
    width = X.shape[1]
    dtype = np.int16 if width < MAX_INT16_WIDTH else np.int32
    out = np.empty(X.shape, dtype=dtype)
    positions = np.arange(width, dtype=dtype)
    for block in cpu.blocks(len(X), BLOCK_ROWS):
        for ranks_of_row, order in zip(out[block], _order(X[block])):
            ranks_of_row[order] = positions
    return out


def quantiles(values: Array, levels: Array) -> Array:
    """Linearly interpolated quantiles of ascending values: the numbers of
    `numpy.quantile`.
    """
    last = len(values) - 1
    position = levels * last
    low = position.astype(np.intp)
    below = values[low]
    above = values[np.minimum(low + 1, last)]
    share = position - low
    step = above - below
    # From the nearer end, as NumPy does, so that the last bit is the same.
    from_below = below + step * share
    from_above = above - step * (1 - share)
    return np.asarray(np.where(share < 0.5, from_below, from_above))


def successive_targets(first: Array, sizes: Sequence[int]) -> Array:
    """The quantiles to which each further set of rows is matched, given all sets before
    it.  # (len(sizes), d)

    A matched row has these d values, in some order, so that only the sizes of the sets
    matter.
    """
    d = first.shape[1]
    levels = (np.arange(d) + 0.5) / d
    targets = np.empty((len(sizes), d), dtype=first.dtype)
    pool = np.sort(first, axis=None)
    if cpu.use_numba(np.inf):  # only studies come here, thousands of times
        from imprint.kernels.compiled import deciding

        # The pool, and room for a value of each target: it holds a value once, with
        # the number of its copies.
        room = np.empty_like(targets, shape=targets.size)
        space = np.concatenate([pool, room])
        counts = np.ones(len(space), dtype=np.int64)
        set_sizes = np.array(sizes, dtype=np.int64)
        deciding.successive_targets(
            space,
            counts,
            len(pool),
            set_sizes,
            levels,
            targets,
        )
        return targets
    for target, size in zip(targets, sizes):
        target[:] = quantiles(pool, levels)
        # Each matched row adds every value of the target once.
        positions = np.repeat(np.searchsorted(pool, target), size)
        pool = np.insert(pool, positions, np.repeat(target, size))
    return targets


def _order(X: Array) -> Array:
    """The stable order of every row; float32 values are sorted with their columns as
    integers (twice as fast).
    """
    if X.dtype != np.float32:
        return np.argsort(X, axis=1, kind="stable")
    bits = (X + np.float32(0)).view(np.int32)  # adding zero makes -0.0 equal to 0.0
    # As integers, the bits of positive floats ascend with them, those of negative ones
    # descend: flipping all but the sign makes them ascend too.
    is_negative = bits >> 31
    bits ^= is_negative & np.int32(0x7FFFFFFF)
    # The value in the upper 32 bits, the column in the lower: the sort is stable, and
    # what is left of the keys is the order.
    keys = bits.astype(np.int64)
    keys <<= 32
    keys |= np.arange(X.shape[1])
    keys.sort(axis=1)
    keys &= 0xFFFFFFFF
    return keys
