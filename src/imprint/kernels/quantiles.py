"""Ranks, and many quantiles of one growing pool of values."""

from collections.abc import Sequence

import numpy as np

from imprint.core.types import Array

ROWS = 128  # ranked at a time, so that they stay in the cache


def quantiles(values: Array, q: Array) -> Array:
    """Linearly interpolated quantiles: the numbers of `numpy.quantile`.

    >>> quantiles(np.array([3.0, 1.0, 2.0]), np.array([0.25, 0.5, 1.0]))
    array([1.5, 2. , 3. ])
    """
    return Pool(values).quantiles(q)


def targets_in_turn(first: Array, sizes: Sequence[int]) -> Array:
    """The quantile-normalised values of classes that are imprinted one after another, after a first.  # (classes, d)

    The values of a class are the quantiles (i + 1/2) / d of all values before it; n rows add them n times.

    >>> targets_in_turn(np.array([[0.0, 4.0], [2.0, 6.0]]), [1])
    array([[1.5, 4.5]])
    """
    d = first.shape[1]
    levels = (np.arange(d) + 0.5) / d
    targets = np.empty((len(sizes), d), dtype=first.dtype)
    pool = Pool(first)
    for target, size in zip(targets, sizes):
        target[:] = pool.quantiles(levels)
        pool.add(target, size)
    return targets


def ranks(X: Array) -> Array:
    """The rank of every value within its row, 0 for the smallest; equal values keep their order.  # (n, d)

    >>> ranks(np.array([[0.5, 0.1, 0.5, 0.3]]))
    array([[2, 0, 3, 1]], dtype=int16)
    """
    out = np.empty(X.shape, dtype=np.int16 if X.shape[1] < 2**15 else np.int32)
    for start in range(0, len(X), ROWS):
        _rank(X[start : start + ROWS], out[start : start + ROWS])
    return out


def values_at(ranks: Array, values: Array, out: Array) -> None:
    """Fill `out` with the value of every rank; `values` ascend."""
    values.take(ranks, mode="clip", out=out)


def _rank(X: Array, out: Array) -> None:
    """Ranks by sorting; float32 values are packed with their positions into integers (5 times faster)."""
    if X.dtype != np.float32:
        order = np.argsort(X, axis=1, kind="stable")
    else:
        bits = (X + np.float32(0)).view(np.int32)  # there is one zero only
        order = np.where(bits < 0, bits ^ np.int32(0x7FFFFFFF), bits).astype(np.int64)
        order <<= 32
        order |= np.arange(X.shape[1])
        order.sort(axis=1)
        order &= 0xFFFFFFFF
    np.put_along_axis(out, order, np.arange(X.shape[1], dtype=out.dtype)[None], axis=1)


class Pool:
    """A growing pool of values, some of them many times; copies of a value are sorted once.

    >>> pool = Pool(np.array([1.0, 5.0]))
    >>> pool.add(np.array([2.0, 3.0]), times=4)
    >>> pool.quantiles(np.array([0.0, 0.5, 1.0]))
    array([1. , 2.5, 5. ])
    """

    def __init__(self, values: Array) -> None:
        self.once = np.sort(values, axis=None)
        self.many = np.empty(0, dtype=self.once.dtype)  # sorted
        self.times = np.empty(0, dtype=np.intp)

    def add(self, values: Array, times: int) -> None:
        """Add values, each `times` times."""
        many = np.concatenate([self.many, values])
        count = np.concatenate([self.times, np.full(len(values), times, dtype=np.intp)])
        order = np.argsort(many, kind="stable")
        self.many, self.times = many[order], count[order]

    def quantiles(self, q: Array) -> Array:
        """Linearly interpolated quantiles of all values in the pool."""
        total = len(self.once) + int(self.times.sum())
        position = q * (total - 1)
        low = position.astype(np.intp)
        share = position - low
        below, above = self._ranked(low), self._ranked(np.minimum(low + 1, total - 1))
        step = above - below
        return np.asarray(np.where(share < 0.5, below + step * share, above - step * (1 - share)))

    def _ranked(self, ranks: Array) -> Array:
        """The values at these positions of the sorted pool."""
        before = np.concatenate([[0], np.cumsum(self.times)])  # copies below the j-th of the many
        first = np.searchsorted(self.once, self.many) + before[:-1]
        j = np.searchsorted(first, ranks, side="right") - 1  # the last of the many that starts at or below the rank
        values = self.once[np.clip(ranks - before[j + 1], 0, len(self.once) - 1)]
        inside = j >= 0
        inside[inside] = ranks[inside] < first[j[inside]] + self.times[j[inside]]
        values[inside] = self.many[j[inside]]
        return np.asarray(values)
