"""The best score per class, without storing every score."""

from typing import Any

import numpy as np

from imprint.core.arrays import is_torch, like
from imprint.core.types import Array
from imprint.kernels.cpu import on_all_cores

QUERIES = 512
PROXIES = 4096


def class_maxima(Q: Any, W: Array, starts: Array) -> Any:
    """Largest inner product of every query with the proxies of every class.  # (q, C)

    The proxies `W` are sorted by class; `starts` are the indices of the first proxy of each class. Products that
    overflow are infinite or not a number.

    >>> class_maxima(np.array([[1.0, 0.0]]), np.array([[2.0, 0.0], [3.0, 0.0], [0.0, 1.0]]), np.array([0, 2]))
    array([[3., 0.]])
    """
    if is_torch(Q):
        from imprint.kernels.tensor import scores

        return scores.class_maxima(Q, like(W, Q), starts)
    best = np.full((len(Q), len(starts)), -np.inf, dtype=np.result_type(Q, W))

    def fill(start: int) -> None:
        queries = Q[start : start + QUERIES]
        for first in range(0, len(W), PROXIES):
            proxies = W[first : first + PROXIES]
            lowest = int(np.searchsorted(starts, first, side="right")) - 1  # the first class among these proxies
            beyond = int(np.searchsorted(starts, first + len(proxies)))
            cuts = np.maximum(starts[lowest:beyond], first) - first
            with np.errstate(over="ignore", invalid="ignore"):
                part = np.maximum.reduceat(queries @ proxies.T, cuts, axis=1)
            out = best[start : start + QUERIES, lowest:beyond]
            np.maximum(out, part, out=out)

    on_all_cores(fill, range(0, len(Q), QUERIES))
    return best
