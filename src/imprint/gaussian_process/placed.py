"""Rows of a model file in the metric, which are computed in parts when they are
needed.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from imprint.core.arrays import Array
from imprint.gaussian_process.gaussian import SLICE_ROWS, lift_proxies
from imprint.kernels.cpu import blocks


class PlacedRows:
    """Rows in the metric.

    A first prediction computes them in parts and keeps none, so that it takes little
    memory; whoever needs `array` keeps them.

    Parameters
    ----------
    count : int
        Their number.
    take : callable
        The rows at some indices, or those of a slice.  # (k, d)
    max_exponent : float
        The largest negative exponent of the kernel of a row and the centre, which says
        whether float32 is precise enough.
    """

    def __init__(
        self,
        count: int,
        take: Callable[[Any], Array],
        max_exponent: float,
    ) -> None:
        self.count = count
        self.take = take
        self.max_exponent = max_exponent

    def __len__(self) -> int:
        return self.count

    @cached_property
    def array(self) -> Array:
        """All rows.  # (count, d)"""
        return self.take(slice(None))

    def lifted(
        self,
        part: slice,
        centre: Array,
        rate: float,
        dtype: str,
    ) -> Array:
        """The rows of a slice as lifted proxies.  # (k, d + 2)"""
        start, stop, _ = part.indices(self.count)
        out = np.empty((stop - start, len(centre) + 2), dtype=dtype)
        for rows in blocks(stop - start, SLICE_ROWS):
            first = start + rows.start
            last = min(start + rows.stop, stop)
            chosen = self.take(slice(first, last))
            out[rows] = lift_proxies(chosen, centre, rate, dtype)
        return out
