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
    rows = np.concatenate(blocks)
    begins = np.cumsum([0, *map(len, blocks)])
    lengths = np.ones_like(rows[:, 0])
    for begin, divisor in zip(begins, divisors):
        if divisor is not None:
            lengths[begin : begin + len(divisor)] = divisor
    block, size, unit = np.array(sets).T
    order = np.lexsort([size, unit, block])  # by block, then by unit, then by size
    stack = ProxyStack(
        rows=rows,
        divisors=lengths,
        first=begins[block[order]],
        size=size[order],
        unit=unit[order].astype(bool),
    )
    return stack, np.argsort(order)


def span_maxima(Q: Array, stack: ProxyStack) -> Array:
    """Largest inner product of every query with the rows of every set.  # (sets, q)"""
    best = np.empty((len(stack.first), len(Q)), dtype=np.result_type(Q, stack.rows))
    factors = (1 / stack.divisors).astype(best.dtype)
    # A multiple of MIN_QUERIES.
    fitting = MAX_SCORES // len(stack.rows)
    step = max(MIN_QUERIES, fitting // MIN_QUERIES * MIN_QUERIES)
    # The caller refuses scores that overflow.
    with cpu.one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        buffer = np.empty((len(stack.rows), min(step, len(Q))), dtype=best.dtype)
        for queries in cpu.blocks(len(Q), step):
            batch = Q[queries]
            out = buffer[:, : len(batch)]
            scores = np.matmul(stack.rows, batch.T, out=out)
            _maxima_of_sets(scores, stack, factors, best[:, queries])
    return best


def _maxima_of_sets(
    scores: Array,
    stack: ProxyStack,
    factors: Array,
    best: Array,
) -> None:
    """Fill in the largest scores among the rows of every set."""
    if cpu.use_numba(scores.size):
        from imprint.kernels.compiled import deciding

        deciding.maxima_of_sets(
            scores,
            stack.first,
            stack.size,
            stack.unit,
            factors,
            best,
        )
        return
    for out, first, size, unit in zip(best, stack.first, stack.size, stack.unit):
        rows = slice(first, first + size)
        scores_of_set = scores[rows]
        if unit:
            scores_of_set = scores_of_set * factors[rows, None]
        np.max(scores_of_set, axis=0, out=out)


class Neighbours:
    """The distances, in float64, of queries to the m nearest rows of every set in a
    stack.

    All are computed from one product, whichever rows are divided by their lengths. The
    columns `starts[s]` to `starts[s + 1]` of a result are the distances to set s,
    nearest first, at most m.
    """

    def __init__(
        self,
        Q: Array,
        stack: ProxyStack,
        m: int,
    ) -> None:
        self.Q = Q
        self.stack = stack
        self.m = m
        self.blocks = cpu.blocks(len(Q), max(1, MAX_DISTANCES // len(stack.rows)))
        ends = np.cumsum(np.minimum(stack.size, m))
        self.starts = np.concatenate([[0], ends])
        self.query_squares = squared_norms(Q)
        self.row_squares = squared_norms(stack.rows)
        with cpu.one_blas_thread():
            # (q, n)
            self.products = Q.astype(np.float64) @ stack.rows.astype(np.float64).T

    def cosine(self) -> Array:
        """Cosine distances; a zero row is at distance one from every row.  # (q,
        starts[-1])
        """
        by_query = _inverse_lengths(self.query_squares)
        by_row = _inverse_lengths(self.row_squares)
        every_set = np.arange(len(self.stack.first))
        out = np.empty((len(self.Q), self.starts[-1]))
        for queries in self.blocks:
            distances = self.products[queries] * by_query[queries, None]
            distances *= by_row
            np.subtract(1, distances, out=distances)
            # The cosine of equal rows may exceed one by rounding.
            np.maximum(distances, 0, out=distances)
            self._fill(out[queries], distances, every_set)
        return out

    def euclidean(self, divisors: Array | None) -> Array:
        """Euclidean distances of the queries, each divided by its divisor if there are
        any.  # (q, starts[-1])
        """
        if divisors is None:
            divisors = np.ones(len(self.Q), dtype=self.Q.dtype)
        Q = self.Q / divisors[:, None]
        by_query = 1 / divisors.astype(np.float64)
        Q_squares = self.query_squares * by_query**2
        out = np.empty((len(self.Q), self.starts[-1]))
        for unit in np.unique(self.stack.unit):
            sets = np.flatnonzero(self.stack.unit == unit)
            W = self.stack.rows
            W_squares = self.row_squares
            if unit:
                W = W / self.stack.divisors[:, None]
                by_row = 1 / self.stack.divisors.astype(np.float64)
                W_squares = W_squares * by_row * by_row
            for queries in self.blocks:
                # |q - w|^2 = |q|^2 + |w|^2 - 2 q w, with the lengths after division
                length_sums = Q_squares[queries, None] + W_squares
                squares = self.products[queries] * (-2 * by_query[queries, None])
                if unit:
                    squares *= by_row
                squares += length_sums
                # The sum cancels where rows are close. That is seldom: one comparison
                # tells that no pair is.
                limit = CLOSE_SHARE * (Q_squares[queries].max() + W_squares.max())
                if not squares.min() > limit:
                    recompute_close(squares, CLOSE_SHARE * length_sums, Q[queries], W)
                self._fill(out[queries], squares, sets)
        return np.sqrt(out, out=out)

    def _fill(
        self,
        out: Array,
        distances: Array,
        sets: Array,
    ) -> None:
        """Fill the columns of some sets with the smallest of the distances, which are
        (queries, rows).
        """
        first = self.stack.first[sets]
        size = self.stack.size[sets]
        starts = self.starts[sets]
        if cpu.use_numba(self.Q.size * len(self.stack.rows)):
            from imprint.kernels.compiled.deciding import smallest

            smallest(distances, first, size, starts, self.m, out)
            return
        for begin, count, column in zip(first, size, starts):
            m = min(count, self.m)
            distances_of_set = distances[:, begin : begin + count]
            ascending = np.sort(distances_of_set, axis=1)
            out[:, column : column + m] = ascending[:, :m]


def _inverse_lengths(squares: Array) -> Array:
    """One over the lengths of rows, 1 for a zero row."""
    lengths = np.sqrt(squares)
    inverse: Array = 1 / np.where(squares == 0, 1, lengths)
    return inverse
