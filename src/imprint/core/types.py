"""The few types that cross module boundaries."""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
State: TypeAlias = dict[str, Array]
"""What a generator keeps of one class: named arrays, enough to extend the class and to save it."""


class Proxies(NamedTuple):
    """What a classifier compares queries with: one row per proxy, whose it is, and what it stands for."""

    weights: Array  # (p, d)
    labels: NDArray[np.intp]  # (p,) index into the classes, ascending; every class has at least one
    mass: Array  # (p,) how many rows each stands for
    spread: Array  # (p,) mean squared distance of those rows to it; 0 where it stands for itself alone

    @property
    def n_classes(self) -> int:
        """How many classes they belong to."""
        return int(self.labels[-1]) + 1 if len(self.labels) else 0

    @property
    def starts(self) -> Array:
        """The first proxy of every class.  # (n_classes,)"""
        return np.searchsorted(self.labels, np.arange(self.n_classes))
