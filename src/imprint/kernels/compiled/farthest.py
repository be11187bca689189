"""The loop of `kernels.farthest`."""

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled import jit
from imprint.kernels.compiled.products import squared_distance


@jit
def traverse(X: Array, chosen: Array, nearest: Array) -> None:
    """Fill `chosen` from its first entry on; `nearest` holds the squared distances to what is chosen so far."""
    for step in range(len(chosen)):
        row = chosen[step]
        for i in range(X.shape[0]):
            nearest[i] = min(nearest[i], squared_distance(X, i, X, row))
        nearest[row] = -1
        if step + 1 < len(chosen):
            chosen[step + 1] = np.argmax(nearest)
