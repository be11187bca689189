"""The farthest-point traversal, from several first rows side by side."""

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled.jit import jit, jit_sums
from imprint.kernels.compiled.products import squared_distance, squared_lengths

LONGEST = 1e30  # squared length from which products may overflow


@jit_sums
def product(X: Array, i: int, j: int) -> float:
    """Of two rows, summed in the type they are held in."""
    total = np.float32(0)
    for t in range(X.shape[1]):
        total += X[i, t] * X[j, t]
    return np.float64(total)


@jit
def traverse(X: Array, chosen: Array, nearest: Array) -> None:
    """Fill each row of `chosen` from its first entry on; `nearest` holds infinities.  # (s, k), (s, n)

    A distance is computed only where a bound by the product of the rows leaves it below the nearest so far.
    """
    squared = squared_lengths(X)
    length = np.sqrt(squared)
    rough = squared.max() < LONGEST
    slack = (X.shape[1] + 8) * 2.0**-23  # relative error of twice a product in float32
    for step in range(chosen.shape[1]):
        for i in range(X.shape[0]):
            for s in range(chosen.shape[0]):
                row = chosen[s, step]
                if rough and step > 0:
                    both = (squared[i] + squared[row]) * (1 - 1e-12)
                    error = slack * (length[i] * length[row] + 1e-36)
                    if both - 2 * product(X, i, row) - error >= nearest[s, i]:
                        continue
                nearest[s, i] = min(nearest[s, i], squared_distance(X, i, X, row))
        for s in range(chosen.shape[0]):
            nearest[s, chosen[s, step]] = -1
            if step + 1 < chosen.shape[1]:
                chosen[s, step + 1] = np.argmax(nearest[s])
