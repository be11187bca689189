"""Ranks of the values within rows, and quantiles of a growing pool of values."""

from collections.abc import Sequence

import numpy as np

from imprint.core.arrays import Array
from imprint.kernels import cpu

BLOCK_ROWS = 128  # ranked at a time; they stay in the cache


def ranks(X: Array) -> Array:
    """The rank of every value within its row, 0 for the smallest; equal values keep
    their order.  # (n, d)
    """
    out = np.empty(X.shape, dtype=np.int16 if X.shape[1] < 2**15 else np.int32)
    positions = np.arange(X.shape[1], dtype=out.dtype)
    for block in cpu.blocks(len(X), BLOCK_ROWS):
        for ranks_of_row, order in zip(out[block], _order(X[block])):
            ranks_of_row[order] = positions
    return out


def quantiles(values: Array, levels: Array) -> Array:
    """Linearly interpolated quantiles of ascending values: the numbers of
    `numpy.quantile`.
    """
    position = levels * (len(values) - 1)
    low = position.astype(np.intp)
    below, above = values[low], values[np.minimum(low + 1, len(values) - 1)]
    share, step = position - low, above - below
    return np.asarray(
        np.where(share < 0.5, below + step * share, above - step * (1 - share))
    )


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

        space = np.concatenate([pool, np.empty_like(targets, shape=targets.size)])
        counts = np.ones(len(space), dtype=np.int64)
        deciding.successive_targets(
            space, counts, len(pool), np.array(sizes, dtype=np.int64), levels, targets
        )
        return targets
    for target, size in zip(targets, sizes):
        target[:] = quantiles(pool, levels)
        positions = np.searchsorted(pool, target)
        pool = np.insert(pool, np.repeat(positions, size), np.repeat(target, size))
    return targets


def _order(X: Array) -> Array:
    """The stable order of every row; float32 values are sorted with their columns as
    integers (twice as fast).
    """
    if X.dtype != np.float32:
        return np.argsort(X, axis=1, kind="stable")
    bits = (X + np.float32(0)).view(np.int32)  # adding zero makes -0.0 equal to 0.0
    bits ^= bits >> 31 & np.int32(0x7FFFFFFF)  # so that negative values ascend, too
    keys = bits.astype(np.int64)
    keys <<= 32
    keys |= np.arange(X.shape[1])
    keys.sort(axis=1)
    keys &= 0xFFFFFFFF
    return keys
