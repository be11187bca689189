"""Ranks of the values within rows, and quantiles of a growing pool of values."""

from collections.abc import Sequence

import numpy as np

from imprint.core.types import Array
from imprint.kernels import cpu

ROWS = 128  # ranked at a time, so that they stay in the cache


def ranks(X: Array) -> Array:
    """The rank of every value within its row, 0 for the smallest; equal values keep their order.  # (n, d)

    >>> ranks(np.array([[0.5, 0.1, 0.5, 0.3]]))
    array([[2, 0, 3, 1]], dtype=int16)
    """
    out = np.empty(X.shape, dtype=np.int16 if X.shape[1] < 2**15 else np.int32)
    for start in range(0, len(X), ROWS):
        block = slice(start, start + ROWS)
        np.put_along_axis(out[block], _order(X[block]), np.arange(X.shape[1], dtype=out.dtype)[None], axis=1)
    return out


def quantiles(values: Array, levels: Array) -> Array:
    """Linearly interpolated quantiles: the numbers of `numpy.quantile`.

    >>> quantiles(np.array([3.0, 1.0, 2.0]), np.array([0.25, 0.5, 1.0]))
    array([1.5, 2. , 3. ])
    """
    return _quantiles(np.sort(values, axis=None), values[:0].ravel(), np.empty(0, dtype=np.intp), levels)


def targets_in_turn(first: Array, sizes: Sequence[int]) -> Array:
    """The values that each further set of rows gets, one after another, from all sets before it.  # (len(sizes), d)

    Afterwards every row of a set has these d values, in some order. The pool needs no more than that.

    >>> targets_in_turn(np.array([[0.0, 6.0]]), [3])
    array([[1.5, 4.5]])
    """
    d = first.shape[1]
    levels, targets = (np.arange(d) + 0.5) / d, np.empty((len(sizes), d), dtype=first.dtype)
    values = np.sort(first, axis=None)
    if cpu.use_numba(np.inf):  # only studies come here, thousands of times
        from imprint.kernels.compiled import quantiles as compiled

        compiled.targets_in_turn(values, np.array(sizes, dtype=np.int64), levels, targets)
        return targets
    repeated, counts = targets[:0].ravel(), np.empty(0, dtype=np.intp)
    for target, size in zip(targets, sizes):
        target[:] = _quantiles(values, repeated, counts, levels)
        positions = np.searchsorted(repeated, target)
        repeated, counts = np.insert(repeated, positions, target), np.insert(counts, positions, size)
    return targets


def _order(X: Array) -> Array:
    """The stable order of every row; float32 values are sorted with their columns as integers (twice as fast)."""
    if X.dtype != np.float32:
        return np.argsort(X, axis=1, kind="stable")
    bits = (X + np.float32(0)).view(np.int32)  # adding zero makes -0.0 equal to 0.0
    keys = np.where(bits < 0, bits ^ np.int32(0x7FFFFFFF), bits).astype(np.int64) << 32 | np.arange(X.shape[1])
    keys.sort(axis=1)
    return np.asarray(keys & 0xFFFFFFFF)


def _quantiles(values: Array, repeated: Array, counts: Array, levels: Array) -> Array:
    """Quantiles of ascending values and of others, also ascending, each of which counts several times."""
    copies = np.concatenate([[0], np.cumsum(counts)])  # of the repeated values before each one
    starts = np.searchsorted(values, repeated) + copies[:-1]  # rank of the first copy
    total = len(values) + copies[-1]

    def ranked(rank: Array) -> Array:
        i = np.searchsorted(starts + counts, rank, side="right")  # repeated values wholly below the rank
        result = values[np.minimum(rank - copies[i], len(values) - 1)]
        inside = np.append(starts, total)[i] <= rank
        result[inside] = repeated[i[inside]]
        return np.asarray(result)

    position = levels * (total - 1)
    low = position.astype(np.intp)
    share, below, above = position - low, ranked(low), ranked(np.minimum(low + 1, total - 1))
    step = above - below
    return np.asarray(np.where(share < 0.5, below + step * share, above - step * (1 - share)))
