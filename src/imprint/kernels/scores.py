"""Scores of classes by their best proxy, and scores as probabilities."""

from typing import Any

import numpy as np

from imprint.core.arrays import Array, cast_like, concatenate, dtype_name, is_torch, like, namespace
from imprint.kernels.cpu import blocks, on_all_cores
from imprint.kernels.rows import exact_products

BLOCK_QUERIES, BLOCK_PROXIES = 512, 4096  # whose products are in memory at a time, per core
MAX_DEVICE_SCORES = 2**27  # in memory at a time on a GPU
MIN_TEMPERATURE = np.finfo(np.float64).tiny


def class_maxima(Q: Any, W: Array, starts: Array) -> Any:
    """Largest inner product of every query with the proxies of every class.  # (q, C)

    The proxies `W` are sorted by class; `starts` are the indices of the first proxy of each class. Products that
    overflow are infinite or not a number.
    """
    if is_torch(Q):
        return _tensor_maxima(Q, like(W, Q), starts)
    best = np.full((len(Q), len(starts)), -np.inf, dtype=np.result_type(Q, W))

    def fill(queries: slice) -> None:
        for proxies in blocks(len(W), BLOCK_PROXIES):
            first = int(np.searchsorted(starts, proxies.start, side="right")) - 1  # the first class of these proxies
            end = int(np.searchsorted(starts, proxies.stop))
            cuts = np.maximum(starts[first:end], proxies.start) - proxies.start
            with np.errstate(over="ignore", invalid="ignore"):
                part = np.maximum.reduceat(Q[queries] @ W[proxies].T, cuts, axis=1)
            out = best[queries, first:end]
            np.maximum(out, part, out=out)

    on_all_cores(fill, blocks(len(Q), BLOCK_QUERIES))
    return best


def _tensor_maxima(Q: Any, W: Any, starts: Array) -> Any:
    """The same for tensors, on their device."""
    sizes = np.diff(np.append(starts, len(W))).tolist()

    def maxima(scores: Any) -> Any:
        if len(set(sizes)) == 1:
            return scores.view(len(scores), len(sizes), -1).amax(2)
        return namespace(Q).stack([part.amax(1) for part in scores.split(sizes, dim=1)], dim=1)

    with exact_products(Q):
        return concatenate([maxima(queries @ W.T) for queries in Q.split(max(1, MAX_DEVICE_SCORES // len(W)))])


def softmax(Z: Any, temperature: float = 1.0) -> Any:
    """The softmax of every row divided by a temperature, in float64.  # (n, C)

    Finite for finite scores, however small the temperature.
    """
    if is_torch(Z):
        return (Z.double() / max(temperature, MIN_TEMPERATURE)).softmax(1)
    E = np.asarray(Z, dtype=np.float64)
    with np.errstate(over="ignore"):  # what is too far below the largest becomes zero
        E = np.exp((E - E.max(axis=1, keepdims=True)) / max(temperature, MIN_TEMPERATURE))
    return np.asarray(E / E.sum(axis=1, keepdims=True))


def keep_winners(P: Any, S: Any) -> Any:
    """Probabilities in the type of the scores, adjusted so that rounding does not change the predicted class."""
    xp, P = namespace(S), cast_like(P, S)
    winners = S.argmax(axis=1)
    changed = xp.where(P.argmax(axis=1) != winners)[0]
    if len(changed):
        P = P + 0  # a copy: the caller's array does not change
        P[changed, winners[changed]] = xp.nextafter(xp.amax(P[changed], axis=1), like(np.array(2, dtype_name(S)), S))
    return P
