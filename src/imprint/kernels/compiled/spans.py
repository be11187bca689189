"""The loop of `kernels.spans`."""

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled.jit import jit


@jit
def prefix_maxima(
    scores: Array, at: Array, first: Array, size: Array, which: Array, factors: Array, numbers: Array, out: Array
) -> None:
    """Column maxima over the first rows from some `at` on; a prefix goes on from the one before that begins alike."""
    q = scores.shape[1]
    for s in range(len(first)):
        best, done = out[numbers[s]], 0
        if s and first[s] == first[s - 1] and which[s] == which[s - 1]:
            best[:] = out[numbers[s - 1]]
            done = size[s - 1]
        else:
            best[:] = -np.inf
        for r in range(done, size[s]):
            row = scores[at[first[s] + r]]
            if which[s] < 0:
                for i in range(q):
                    best[i] = row[i] if row[i] > best[i] or row[i] != row[i] else best[i]
            else:
                by = factors[which[s], r]
                for i in range(q):
                    score = row[i] * by
                    best[i] = score if score > best[i] or score != score else best[i]
