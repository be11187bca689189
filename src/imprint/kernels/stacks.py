"""Scores and neighbours of many sets of proxies that share rows: each row is multiplied
with the queries once.

A set consists of consecutive rows, each possibly divided by its length. `span_maxima`
computes the best score of every set, `Neighbours` the distances to its nearest proxies.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from imprint.core.arrays import Array
from imprint.kernels import cpu
from imprint.kernels.rows import CLOSE_SHARE, recompute_close, squared_norms

# in memory at a time; with fewer, BLAS packs the rows again too often
MAX_SCORES = 2**23
MIN_QUERIES = 64  # multiplied at a time, however many rows there are
MAX_DISTANCES = 2**16  # in memory at a time; they stay in the cache


class ProxyStack(NamedTuple):
    """Rows, and sets of consecutive rows; the rows of a set may be divided by their
    lengths.

    Sets with the same first row and the same `unit` follow one another, the smaller
    first.
    """

    rows: Array  # (n, d)
    divisors: Array  # (n,) the length of every row, 1 for a zero row
    first: Array  # (sets,)
    size: Array  # (sets,)
    unit: Array  # (sets,) whether the rows are divided by their lengths


def stacked(
    blocks: Sequence[Array],
    divisors: Sequence[Array | None],
    sets: Sequence[tuple[int, int, bool]],
) -> tuple[ProxyStack, Array]:
    """Blocks of rows as one stack, and the position in it of every set, given as
    (block, size, unit).

    `divisors` are the lengths of the rows of each block, None if no set divides them.
    """
    rows, begins = np.concatenate(blocks), np.cumsum([0, *map(len, blocks)])
    lengths = np.ones_like(rows[:, 0])
    for begin, by in zip(begins, divisors):
        if by is not None:
            lengths[begin : begin + len(by)] = by
    block, size, unit = np.array(sets).T
    order = np.lexsort([size, unit, block])  # by block, then by unit, then by size
    first, size, unit = begins[block[order]], size[order], unit[order].astype(bool)
    return ProxyStack(rows, lengths, first, size, unit), np.argsort(order)


def span_maxima(Q: Array, stack: ProxyStack) -> Array:
    """Largest inner product of every query with the rows of every set.  # (sets, q)"""
    best = np.empty((len(stack.first), len(Q)), dtype=np.result_type(Q, stack.rows))
    factors = (1 / stack.divisors).astype(best.dtype)
    step = max(MIN_QUERIES, MAX_SCORES // len(stack.rows) // MIN_QUERIES * MIN_QUERIES)
    with cpu.one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        buffer = np.empty((len(stack.rows), min(step, len(Q))), dtype=best.dtype)
        for queries in cpu.blocks(len(Q), step):
            scores = np.matmul(
                stack.rows, Q[queries].T, out=buffer[:, : len(Q[queries])]
            )
            _maxima_of_sets(scores, stack, factors, best[:, queries])
    return best


def _maxima_of_sets(
    scores: Array, stack: ProxyStack, factors: Array, best: Array
) -> None:
    """Fill in the largest scores among the rows of every set."""
    if cpu.use_numba(scores.size):
        from imprint.kernels.compiled import deciding

        deciding.maxima_of_sets(
            scores, stack.first, stack.size, stack.unit, factors, best
        )
        return
    for out, first, size, unit in zip(best, stack.first, stack.size, stack.unit):
        rows = slice(first, first + size)
        np.max(
            scores[rows] * factors[rows, None] if unit else scores[rows],
            axis=0,
            out=out,
        )


class Neighbours:
    """The distances, in float64, of queries to the m nearest rows of every set in a
    stack.

    All are computed from one product, whichever rows are divided by their lengths. The
    columns `starts[s]` to `starts[s + 1]` of a result are the distances to set s,
    nearest first, at most m.
    """

    def __init__(self, Q: Array, stack: ProxyStack, m: int) -> None:
        self.Q, self.stack, self.m = Q, stack, m
        self.blocks = cpu.blocks(len(Q), max(1, MAX_DISTANCES // len(stack.rows)))
        self.starts = np.concatenate([[0], np.cumsum(np.minimum(stack.size, m))])
        self.squares = squared_norms(Q), squared_norms(stack.rows)
        with cpu.one_blas_thread():
            # (q, n)
            self.products = Q.astype(np.float64) @ stack.rows.astype(np.float64).T

    def cosine(self) -> Array:
        """Cosine distances; a zero row is at distance one from every row.  # (q,
        starts[-1])
        """
        by_query, by_row = (
            1 / np.where(squares == 0, 1, np.sqrt(squares)) for squares in self.squares
        )
        out = np.empty((len(self.Q), self.starts[-1]))
        for queries in self.blocks:
            distances = self.products[queries] * by_query[queries, None]
            distances *= by_row
            np.subtract(1, distances, out=distances)
            np.maximum(distances, 0, out=distances)
            self._fill(out[queries], distances, np.arange(len(self.stack.first)))
        return out

    def euclidean(self, divisors: Array | None) -> Array:
        """Euclidean distances of the queries, each divided by its divisor if there are
        any.  # (q, starts[-1])
        """
        divisors = (
            np.ones(len(self.Q), dtype=self.Q.dtype) if divisors is None else divisors
        )
        Q, by_query = self.Q / divisors[:, None], 1 / divisors.astype(np.float64)
        Q_squares, out = (
            self.squares[0] * by_query**2,
            np.empty((len(self.Q), self.starts[-1])),
        )
        for unit in np.unique(self.stack.unit):
            W, W_squares, sets = (
                self.stack.rows,
                self.squares[1],
                np.flatnonzero(self.stack.unit == unit),
            )
            if unit:
                W, by_row = (
                    W / self.stack.divisors[:, None],
                    1 / self.stack.divisors.astype(np.float64),
                )
                W_squares = W_squares * by_row * by_row
            for queries in self.blocks:
                length_sums = Q_squares[queries, None] + W_squares
                squares = self.products[queries] * (-2 * by_query[queries, None])
                if unit:
                    squares *= by_row
                squares += length_sums
                limit = CLOSE_SHARE * (Q_squares[queries].max() + W_squares.max())
                if not squares.min() > limit:  # else no pair is close
                    recompute_close(squares, CLOSE_SHARE * length_sums, Q[queries], W)
                self._fill(out[queries], squares, sets)
        return np.sqrt(out, out=out)

    def _fill(self, out: Array, distances: Array, sets: Array) -> None:
        """Fill the columns of some sets with the smallest of the distances, which are
        (queries, rows).
        """
        first, size, starts = (
            self.stack.first[sets],
            self.stack.size[sets],
            self.starts[sets],
        )
        if cpu.use_numba(self.Q.size * len(self.stack.rows)):
            from imprint.kernels.compiled.deciding import smallest

            smallest(distances, first, size, starts, self.m, out)
            return
        for begin, count, column in zip(first, size, starts):
            m = min(count, self.m)
            out[:, column : column + m] = np.sort(
                distances[:, begin : begin + count], axis=1
            )[:, :m]
