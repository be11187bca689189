"""Numbers for values that come again and again."""

import numpy as np

from imprint.core.types import Array


def numbered(codes: Array) -> tuple[Array, Array]:
    """Distinct codes numbered in the order in which they come: where each first stands, and the number of every code.

    >>> [found.tolist() for found in numbered(np.array([7, 7, 3, 7, 3]))]
    [[0, 2], [0, 0, 1, 0, 1]]
    """
    _, first, sorted_number = np.unique(codes, return_index=True, return_inverse=True)
    number = np.argsort(np.argsort(first))
    return np.sort(first), number[sorted_number]
