"""Many quantiles of one pool of values, by sorting instead of many selections."""

import numpy as np

from imprint.core.types import Array


def quantiles(values: Array, q: Array) -> Array:
    """Linearly interpolated quantiles: the numbers of `numpy.quantile`.

    >>> quantiles(np.array([3.0, 1.0, 2.0]), np.array([0.25, 0.5, 1.0]))
    array([1.5, 2. , 3. ])
    """
    return Pool(values).quantiles(q)


def ranks(X: Array) -> Array:
    """The place of every value among those of its row, from the smallest on; equal values keep their order.  # (n, d)

    >>> ranks(np.array([[0.5, 0.1, 0.5, 0.3]]))
    array([[2, 0, 3, 1]], dtype=int32)
    """
    out = np.empty(X.shape, dtype=np.int32)
    np.put_along_axis(out, _stable_order(X), np.arange(X.shape[1], dtype=np.int32)[None, :], axis=1)
    return out


def _stable_order(X: Array) -> Array:
    """`argsort` along rows, for float32 by plain sorting of values and places packed into one integer."""
    if X.dtype != np.float32:
        return np.argsort(X, axis=1, kind="stable")
    bits = (X + np.float32(0)).view(np.int32)  # there is one zero only
    packed = np.where(bits < 0, bits ^ np.int32(0x7FFFFFFF), bits).astype(np.int64)
    packed <<= 32
    packed |= np.arange(X.shape[1])
    packed.sort(axis=1)
    packed &= 0xFFFFFFFF
    return packed


class Pool:
    """A growing pool of values of which some came many times: those are sorted once, not once for each time.

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
        """Put in more values, each so many times."""
        many = np.concatenate([self.many, values])
        count = np.concatenate([self.times, np.full(len(values), times, dtype=np.intp)])
        order = np.argsort(many, kind="stable")
        self.many, self.times = many[order], count[order]

    def quantiles(self, q: Array) -> Array:
        """Linearly interpolated quantiles of all values in the pool."""
        total = len(self.once) + int(self.times.sum())
        place = q * (total - 1)
        low = place.astype(np.intp)
        share = place - low
        below, above = self._ranked(low), self._ranked(np.minimum(low + 1, total - 1))
        step = above - below
        return np.asarray(np.where(share < 0.5, below + step * share, above - step * (1 - share)))

    def _ranked(self, ranks: Array) -> Array:
        """The values at these places of the sorted pool."""
        before = np.concatenate([[0], np.cumsum(self.times)])  # copies below the j-th of the many
        first = np.searchsorted(self.once, self.many) + before[:-1]
        j = np.searchsorted(first, ranks, side="right") - 1  # the last of the many that starts at or below the rank
        found = self.once[np.clip(ranks - before[j + 1], 0, len(self.once) - 1)]
        inside = j >= 0
        inside[inside] = ranks[inside] < first[j[inside]] + self.times[j[inside]]
        found[inside] = self.many[j[inside]]
        return np.asarray(found)
