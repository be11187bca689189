"""Best scores of many sets of proxies that share rows: each row is multiplied once, then maxima are taken."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from imprint.core.types import Array
from imprint.kernels import cpu
from imprint.kernels.cpu import one_blas_thread

SCORES = 2**23  # products held at a time: fewer, and BLAS packs the rows again too often
LEAST = 64  # queries multiplied at a time, however many rows there are


class Stack(NamedTuple):
    """Rows below each other, and sets of them: each begins at a row, has a size, and may be divided by its lengths.

    Sets that begin at the same row and are divided alike stand one after another, the smaller first.
    """

    rows: Array  # (n, d)
    divisors: Array  # (n,) the length of every row, 1 for a zero row
    first: Array  # (sets,)
    size: Array  # (sets,)
    unit: Array  # (sets,) whether the rows count divided by their lengths


def stacked(
    blocks: Sequence[Array], divisors: Sequence[Array | None], sets: Sequence[tuple[int, int, bool]]
) -> tuple[Stack, Array]:
    """Blocks of rows as one stack, and the place in it of every set (block, size, whether divided).

    `divisors` are the lengths of the rows of each block, None where no set divides them.
    """
    begins, rows = np.cumsum([0, *map(len, blocks)]), np.concatenate(blocks)
    lengths = np.ones(len(rows), dtype=rows.dtype)
    for begin, by in zip(begins, divisors):
        if by is not None:
            lengths[begin : begin + len(by)] = by
    order = sorted(range(len(sets)), key=lambda i: (sets[i][0], sets[i][2], sets[i][1]))
    block, size, unit = (np.array([sets[i][j] for i in order]) for j in range(3))
    place = np.empty(len(sets), dtype=np.intp)
    place[order] = np.arange(len(sets))
    return Stack(rows, lengths, begins[block], size, unit.astype(bool)), place


def span_maxima(Q: Array, stack: Stack) -> Array:
    """Largest inner product of every query with the rows of every set.  # (sets, q)

    >>> rows = np.array([[2.0, 0.0], [3.0, 0.0]])
    >>> stack, _ = stacked([rows], [np.array([2.0, 3.0])], [(0, 1, False), (0, 2, False), (0, 2, True)])
    >>> span_maxima(np.array([[1.0, 1.0]]), stack).ravel().tolist()
    [2.0, 3.0, 1.0]
    """
    best = np.empty((len(stack.first), len(Q)), dtype=np.result_type(Q, stack.rows))
    factors = (1 / stack.divisors).astype(best.dtype)
    step = max(LEAST, SCORES // len(stack.rows) // LEAST * LEAST)
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        held = np.empty((len(stack.rows), min(step, len(Q))), dtype=best.dtype)
        for start in range(0, len(Q), step):
            queries = Q[start : start + step]
            scores = np.matmul(stack.rows, queries.T, out=held[:, : len(queries)])
            _maxima(scores, stack, factors, best[:, start : start + step])
    return best


def _maxima(scores: Array, stack: Stack, factors: Array, best: Array) -> None:
    """Maxima over the rows of every set; a set goes on from the smaller one before it that begins alike."""
    if cpu.compiled(stack.rows.size * scores.shape[1]):
        from imprint.kernels.compiled.deciding import prefix_maxima

        prefix_maxima(scores, stack.first, stack.size, stack.unit, factors, best)
        return
    for out, first, size, unit in zip(best, stack.first, stack.size, stack.unit):
        rows = slice(first, first + size)
        np.max(scores[rows] * factors[rows, None] if unit else scores[rows], axis=0, out=out)
