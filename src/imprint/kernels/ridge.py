"""Regularised least squares from second moments: Cholesky, never an inverse."""

from collections.abc import Sequence

import numpy as np

from imprint.core.arrays import Array, State
from imprint.kernels.cpu import (
    blocks,
    load_scipy_blas,
    one_blas_thread,
    sum_on_all_cores,
)

BLOCK_ROWS = 2048  # multiplied at a time in the data's type


def gram(X: Array) -> Array:
    """Sum of the outer products of the rows: blocks in the data's type, their sum in
    float64.  # (d, d)
    """

    def product(rows: slice) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(X[rows].T @ X[rows])

    width = X.shape[1]
    total = np.zeros((width, width))
    parts = blocks(len(X), BLOCK_ROWS)
    return np.asarray(sum_on_all_cores(product, parts, total=total))


def moments(X: Array) -> State:
    """The sum of outer products of the rows, or the rows themselves if they take less
    memory.
    """
    n, d = X.shape
    # the bytes of the rows, and of the float64 triangle, both divided by d
    if n * X.itemsize <= (d + 1) / 2 * 8:
        return {"data": X.copy()}
    return {"gram": pack(gram(X))}


def add_moments(state: State, X: Array) -> State:
    """The moments after more rows."""
    if "data" in state:
        return moments(np.concatenate([state["data"], X]))
    return {"gram": state["gram"] + pack(gram(X))}


def merge_moments(parts: Sequence[State]) -> State:
    """The moments of the rows of several parts."""
    data = [part["data"] for part in parts if "data" in part]
    grams = [part["gram"] for part in parts if "gram" in part]
    rows = moments(np.concatenate(data)) if data else {}
    if not grams:
        return rows
    if "data" in rows:
        grams.append(pack(gram(rows["data"])))
    elif "gram" in rows:
        grams.append(rows["gram"])
    return {"gram": np.sum(grams, axis=0)}


def packed_moments(state: State) -> State:
    """The state with the sum of outer products in place of the rows."""
    if "data" not in state:
        return state
    rest = {name: array for name, array in state.items() if name != "data"}
    return {**rest, "gram": pack(gram(state["data"]))}


def remove_moments(state: State, X: Array) -> State:
    """The moments without some rows."""
    if "gram" in state:
        return {"gram": state["gram"] - pack(gram(X))}
    removed = {row.tobytes() for row in X}
    rest = [i for i, row in enumerate(state["data"]) if row.tobytes() not in removed]
    return {"data": state["data"][rest]}


def total_gram(states: Sequence[State]) -> Array:
    """The sum over classes, in the order given.  # (d, d) float64"""
    parts = (gram(s["data"]) if "data" in s else unpack(s["gram"]) for s in states)
    total = next(parts).copy()
    # sums that overflowed; `solve_ridge` refuses them
    with np.errstate(invalid="ignore"):
        for part in parts:
            total += part
    return total


def pack(G: Array) -> Array:
    """The upper triangle of a symmetric matrix.  # (d (d + 1) / 2,)"""
    return np.asarray(G[np.triu_indices(len(G))])


def unpack(packed: Array) -> Array:
    """The symmetric matrix back.  # (d, d)"""
    # the positive solution of d (d + 1) / 2 = length
    d = int((np.sqrt(8 * len(packed) + 1) - 1) / 2)
    G = np.empty((d, d))
    upper = np.triu_indices(d)
    G[upper] = packed
    G.T[upper] = packed
    return G


def solve_ridge(
    G: Array,
    M: Array,
    reg: float,
) -> Array | None:
    """Rows w with (G + reg I) w = m for the rows m of M; None if G + reg I is not
    positive definite in float64.

    The result does not depend on how many threads BLAS may use.
    """
    A = G.copy()
    A.flat[:: len(A) + 1] += reg
    if not np.isfinite(A).all():
        return None
    load_scipy_blas()
    from scipy import linalg

    try:
        with one_blas_thread():
            factor = linalg.cho_factor(A, lower=True, overwrite_a=True)
            solution = linalg.cho_solve(factor, M.T)
    except np.linalg.LinAlgError:
        return None
    return np.asarray(solution.T)
