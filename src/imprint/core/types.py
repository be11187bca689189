"""The few types that cross module boundaries."""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
State: TypeAlias = dict[str, Array]
"""What a generator keeps of one class: named arrays, enough to extend the class and to save it."""


class Proxies(NamedTuple):
    """Weights of a classifier: one row per proxy, and the class each row belongs to."""

    weights: Array  # (p, d)
    labels: NDArray[np.intp]  # (p,) index into the classes, ascending
