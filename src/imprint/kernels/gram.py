"""Sums of outer products."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from imprint.core.types import Array
from imprint.kernels.engine import cores, one_blas_thread

BLOCK = 2048


def gram(X: Array) -> Array:
    """Sum of the outer products of the rows: blocks in the data's type, their sum in float64.  # (d, d)

    >>> gram(np.array([[1.0, 2.0], [0.0, 1.0]]))
    array([[1., 2.],
           [2., 5.]])
    """
    total = np.zeros((X.shape[1], X.shape[1]))

    def product(start: int) -> Array:
        block = X[start : start + BLOCK]
        with np.errstate(over="ignore"):
            return np.asarray(block.T @ block)

    with one_blas_thread(), ThreadPoolExecutor(cores()) as pool:
        for part in pool.map(product, range(0, len(X), BLOCK)):
            total += part
    return total
