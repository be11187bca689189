"""Types that cross module boundaries."""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
State: TypeAlias = dict[str, Array]
"""The state of one class: named arrays, sufficient to extend the class and to save it."""


class Proxies(NamedTuple):
    """Proxies (prototypes): one row each, with the class and the rows that each represents."""

    weights: Array  # (p, d)
    labels: NDArray[np.intp]  # (p,) index into the classes, ascending; every class has at least one
    mass: Array  # (p,) number, or total weight, of the rows that each represents
    spread: Array  # (p,) mean squared distance of those rows to the proxy; 0 for a single row

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.labels[-1]) + 1 if len(self.labels) else 0

    @property
    def starts(self) -> Array:
        """Index of the first proxy of every class.  # (n_classes,)"""
        return np.searchsorted(self.labels, np.arange(self.n_classes))
