"""Sums of outer products."""

import numpy as np

from imprint.core.types import Array


def gram(X: Array) -> Array:
    """Sum of the outer products of the rows, in float64.  # (d, d)

    >>> gram(np.array([[1.0, 2.0], [0.0, 1.0]]))
    array([[1., 2.],
           [2., 5.]])
    """
    X = X.astype(np.float64, copy=False)
    return np.asarray(X.T @ X)
