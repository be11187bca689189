"""The loop of `kernels.decisions`."""

from typing import Any

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled.jit import jit


@jit
def decide(scores: Array, truth: Array, rounding: Any, confusion: Array) -> int:
    """Count true and claimed classes in `confusion`; the number of close decisions."""
    n_classes, n = scores.shape
    best, second = scores[0].copy(), np.full(n, -np.inf, scores.dtype)
    claimed = np.zeros(n, dtype=np.int32)
    for c in range(1, n_classes):
        for i in range(n):
            score = scores[c, i]
            second[i] = max(second[i], min(best[i], score))
            claimed[i] = c if score > best[i] else claimed[i]
            best[i] = max(best[i], score)
    near = 0
    for i in range(n):
        confusion[truth[i], claimed[i]] += 1
        near += best[i] - second[i] <= rounding * abs(best[i])
    return near
