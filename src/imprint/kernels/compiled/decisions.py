"""The loop of `kernels.decisions`."""

from typing import Any

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled.jit import jit


@jit
def decide_many(
    scores: Array, starts: Array, which: Array, columns: Array, truth: Array, rounding: Any, confusion: Array,
    near: Array,
) -> None:  # fmt: skip
    """Count true and claimed classes and close queries of every decision."""
    decisions, n_classes = starts.shape
    n = len(truth)
    best, second, claimed = np.empty(n, scores.dtype), np.empty(n, scores.dtype), np.empty(n, np.int32)
    picked = np.empty(n, scores.dtype)
    for t in range(decisions):
        second[:] = -np.inf
        claimed[:] = 0
        for c in range(n_classes):
            if which[t, c] < 0:
                own = scores[starts[t, c] : starts[t, c] + n]
            else:
                column, first = columns[which[t, c]], np.uint64(starts[t, c])
                for i in range(n):
                    picked[i] = scores[first + column[i]]
                own = picked
            if c == 0:
                best[:] = own
                continue
            for i in range(n):
                second[i] = max(second[i], min(best[i], own[i]))
                claimed[i] = c if own[i] > best[i] else claimed[i]
                best[i] = max(best[i], own[i])
        close = 0
        for i in range(n):
            close += best[i] - second[i] <= rounding * abs(best[i])
        near[t] = close
        counts = confusion[t]
        for i in range(n):
            counts[np.uint64(truth[i]), np.uint64(claimed[i])] += 1
