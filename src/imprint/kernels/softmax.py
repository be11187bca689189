"""Scores as probabilities."""

from typing import Any

import numpy as np

from imprint.core.arrays import dtype_name, in_type_of, is_torch, like, namespace

TINY = np.finfo(np.float64).tiny


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
    S = S.double() if is_torch(S) else np.asarray(S, dtype=np.float64)
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
