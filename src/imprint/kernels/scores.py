"""Scores of classes by their best proxy, and scores as probabilities."""

from typing import Any

import numpy as np

from imprint.core.arrays import dtype_name, in_type_of, is_torch, joined, like, namespace
from imprint.core.types import Array
from imprint.kernels.cpu import blocks, on_all_cores
from imprint.kernels.rows import double, exact_products

QUERIES, PROXIES = 512, 4096  # whose products are held at a time by every core
DEVICE_SCORES = 2**27  # products held at a time on a GPU
TINY = np.finfo(np.float64).tiny


def class_maxima(Q: Any, W: Array, starts: Array) -> Any:
    """Largest inner product of every query with the proxies of every class.  # (q, C)

    The proxies `W` are sorted by class; `starts` are the indices of the first proxy of each class. Products that
    overflow are infinite or not a number.

    >>> class_maxima(np.array([[1.0, 0.0]]), np.array([[2.0, 0.0], [3.0, 0.0], [0.0, 1.0]]), np.array([0, 2]))
    array([[3., 0.]])
    """
    if is_torch(Q):
        return _tensor_maxima(Q, like(W, Q), starts)
    best = np.full((len(Q), len(starts)), -np.inf, dtype=np.result_type(Q, W))

    def fill(queries: slice) -> None:
        for proxies in blocks(len(W), PROXIES):
            lowest = int(np.searchsorted(starts, proxies.start, side="right")) - 1  # the first of their classes
            beyond = int(np.searchsorted(starts, proxies.stop))
            cuts = np.maximum(starts[lowest:beyond], proxies.start) - proxies.start
            with np.errstate(over="ignore", invalid="ignore"):
                part = np.maximum.reduceat(Q[queries] @ W[proxies].T, cuts, axis=1)
            out = best[queries, lowest:beyond]
            np.maximum(out, part, out=out)

    on_all_cores(fill, blocks(len(Q), QUERIES))
    return best


def _tensor_maxima(Q: Any, W: Any, starts: Array) -> Any:
    """The same for tensors, on their device."""
    sizes = np.diff(np.append(starts, len(W))).tolist()

    def maxima(scores: Any) -> Any:
        if len(set(sizes)) == 1:
            return scores.view(len(scores), len(sizes), -1).amax(2)
        return namespace(Q).stack([part.amax(1) for part in scores.split(sizes, dim=1)], dim=1)

    with exact_products(Q):
        return joined([maxima(queries @ W.T) for queries in Q.split(max(1, DEVICE_SCORES // len(W)))])


def softmax(Z: Any, temperature: float = 1.0) -> Any:
    """The softmax of every row over a temperature, in float64.  # (n, C)

    Finite for finite scores, however small the temperature.

    >>> softmax(np.array([[0.0, 0.0]]))
    array([[0.5, 0.5]])
    """
    if is_torch(Z):
        return (Z.double() / max(temperature, TINY)).softmax(1)
    E = np.asarray(Z, dtype=np.float64)
    with np.errstate(over="ignore"):  # what is too far below the largest becomes zero
        E = np.exp((E - E.max(axis=1, keepdims=True)) / max(temperature, TINY))
    return np.asarray(E / E.sum(axis=1, keepdims=True))


def shares(S: Any) -> Any:
    """Every row over its sum, in float64.

    >>> shares(np.array([[1.0, 3.0]]))
    array([[0.25, 0.75]])
    """
    S = double(S)
    return S / S.sum(axis=1, keepdims=True)


def keep_winners(P: Any, S: Any) -> Any:
    """Probabilities in the type of the scores; rounding never gives the largest to another class than the winner's.

    >>> int(keep_winners(np.array([[0.5, 0.5]]), np.array([[0.0, 1e-20]])).argmax())
    1
    """
    xp, P, winners = namespace(S), in_type_of(P, S), S.argmax(axis=1)
    lost = xp.where(P.argmax(axis=1) != winners)[0]
    if len(lost):
        P = P + 0  # the caller's array stays as it was
        P[lost, winners[lost]] = xp.nextafter(xp.amax(P[lost], axis=1), like(np.array(2, dtype_name(S)), S))
    return P
