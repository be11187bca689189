"""The best score per class, without storing every score."""

from typing import Any

import numpy as np

from imprint.core.arrays import is_torch, like
from imprint.core.types import Array
from imprint.kernels.cpu import on_all_cores, one_blas_thread

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
        queries, out = Q[start : start + QUERIES], best[start : start + QUERIES]
        for first in range(0, len(W), PROXIES):
            cuts, classes = _classes_within(starts, first, min(first + PROXIES, len(W)))
            with np.errstate(over="ignore", invalid="ignore"):
                part = np.maximum.reduceat(queries @ W[first : first + PROXIES].T, cuts, axis=1)
            np.maximum(out[:, classes], part, out=out[:, classes])

    with one_blas_thread():
        on_all_cores(fill, range(0, len(Q), QUERIES))
    return best


def _classes_within(starts: Array, first: int, stop: int) -> tuple[Array, slice]:
    """Where the classes among proxies `first` to `stop` begin, counted from `first`, and which they are."""
    lowest = int(np.searchsorted(starts, first, side="right")) - 1
    beyond = int(np.searchsorted(starts, stop))
    return np.maximum(starts[lowest:beyond], first) - first, slice(lowest, beyond)
