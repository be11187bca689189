"""Scores and neighbours of many sets of proxies that share rows: each row is multiplied with the queries once.

A set consists of consecutive rows, each possibly divided by its length. `span_maxima` computes the best score of every
set, `Neighbours` the distances to its nearest proxies.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from imprint.core.types import Array
from imprint.kernels import cpu
from imprint.kernels.rows import squared_norms

SCORES = 2**23  # products held at a time: fewer, and BLAS packs the rows again too often
LEAST = 64  # queries multiplied at a time, however many rows there are
CLOSE = 1e-2
"""Squared distances below this share of the squared lengths are computed again, from differences."""
PAIRS = 4096  # differences held at a time


class ProxyStack(NamedTuple):
    """Rows, and sets of consecutive rows; the rows of a set may be divided by their lengths.

    Sets with the same first row and the same `unit` follow one another, the smaller first.
    """

    rows: Array  # (n, d)
    divisors: Array  # (n,) the length of every row, 1 for a zero row
    first: Array  # (sets,)
    size: Array  # (sets,)
    unit: Array  # (sets,) whether the rows are divided by their lengths


def stacked(
    blocks: Sequence[Array], divisors: Sequence[Array | None], sets: Sequence[tuple[int, int, bool]]
) -> tuple[ProxyStack, Array]:
    """Blocks of rows as one stack, and the position in it of every set, given as (block, size, unit).

    `divisors` are the lengths of the rows of each block, None if no set divides them.
    """
    begins, rows = np.cumsum([0, *map(len, blocks)]), np.concatenate(blocks)
    lengths = np.ones(len(rows), dtype=rows.dtype)
    for begin, by in zip(begins, divisors):
        if by is not None:
            lengths[begin : begin + len(by)] = by
    order = sorted(range(len(sets)), key=lambda i: (sets[i][0], sets[i][2], sets[i][1]))
    block, size, unit = (np.array([sets[i][j] for i in order]) for j in range(3))
    position = np.empty(len(sets), dtype=np.intp)
    position[order] = np.arange(len(sets))
    return ProxyStack(rows, lengths, begins[block], size, unit.astype(bool)), position


def span_maxima(Q: Array, stack: ProxyStack) -> Array:
    """Largest inner product of every query with the rows of every set.  # (sets, q)

    >>> rows = np.array([[2.0, 0.0], [3.0, 0.0]])
    >>> stack, _ = stacked([rows], [np.array([2.0, 3.0])], [(0, 1, False), (0, 2, False), (0, 2, True)])
    >>> span_maxima(np.array([[1.0, 1.0]]), stack).ravel().tolist()
    [2.0, 3.0, 1.0]
    """
    best = np.empty((len(stack.first), len(Q)), dtype=np.result_type(Q, stack.rows))
    factors = (1 / stack.divisors).astype(best.dtype)
    step = max(LEAST, SCORES // len(stack.rows) // LEAST * LEAST)
    with cpu.one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        held = np.empty((len(stack.rows), min(step, len(Q))), dtype=best.dtype)
        for start in range(0, len(Q), step):
            queries = Q[start : start + step]
            scores = np.matmul(stack.rows, queries.T, out=held[:, : len(queries)])
            _maxima(scores, stack, factors, best[:, start : start + step])
    return best


def _maxima(scores: Array, stack: ProxyStack, factors: Array, best: Array) -> None:
    """Maxima over the rows of every set."""
    for out, first, size, unit in zip(best, stack.first, stack.size, stack.unit):
        rows = slice(first, first + size)
        np.max(scores[rows] * factors[rows, None] if unit else scores[rows], axis=0, out=out)


class Neighbours:
    """The distances, in float64, of queries to the m nearest rows of every set in a stack.

    All are computed from one product, whichever rows are divided by their lengths. The columns `starts[s]` to
    `starts[s + 1]` of a result are the distances to set s, nearest first, at most m.
    """

    def __init__(self, Q: Array, stack: ProxyStack, m: int) -> None:
        self.Q, self.stack, self.m = Q, stack, m
        self.starts = np.concatenate([[0], np.cumsum(np.minimum(stack.size, m))])
        self.squares = squared_norms(Q), squared_norms(stack.rows)
        with cpu.one_blas_thread():
            self.products = Q.astype(np.float64) @ stack.rows.astype(np.float64).T  # (q, n)

    def euclidean(self, divisors: Array | None) -> Array:
        """Euclidean distances of the queries, each divided by its divisor if there are any.  # (q, starts[-1])"""
        return self._lists(_Euclidean(self, np.ones(len(self.Q), dtype=self.Q.dtype) if divisors is None else divisors))

    def cosine(self) -> Array:
        """Cosine distances; a zero row is at distance one from every row.  # (q, starts[-1])"""
        return self._lists(_Cosine(self))

    def _lists(self, away: "_Euclidean | _Cosine") -> Array:
        out = np.empty((len(self.Q), self.starts[-1]))
        if cpu.use_numba(self.Q.size * len(self.stack.rows)):
            away.fill(out)
            return out
        for s, (first, size, unit) in enumerate(zip(*self.stack[2:])):
            D = np.sort(away.between(slice(first, first + size), bool(unit)), axis=1)
            out[:, self.starts[s] : self.starts[s + 1]] = D[:, : self.m]
        return out


class _Cosine:
    def __init__(self, of: Neighbours) -> None:
        self.of = of
        by_query, by_row = (1 / np.where(squares == 0, 1, np.sqrt(squares)) for squares in of.squares)
        self.factors = by_query, by_row

    def between(self, rows: slice, unit: bool) -> Array:
        by_query, by_row = self.factors
        return np.maximum(1 - self.of.products[:, rows] * by_query[:, None] * by_row[rows], 0)

    def fill(self, out: Array) -> None:
        from imprint.kernels.compiled.deciding import ProxySets, cosine_lists

        cosine_lists(self.of.products, *self.factors, ProxySets(*self.of.stack[2:], self.of.starts), out)


class _Euclidean:
    def __init__(self, of: Neighbours, divisors: Array) -> None:
        self.of, self.divisors = of, divisors
        self.by_query = 1 / divisors.astype(np.float64)
        self.by_row = 1 / of.stack.divisors.astype(np.float64)
        self.squares = of.squares[0] * self.by_query**2

    def between(self, rows: slice, unit: bool) -> Array:
        by_row = self.by_row[rows] if unit else np.ones(rows.stop - rows.start)
        both = self.squares[:, None] + self.of.squares[1][rows] * by_row**2
        D = both - 2 * self.of.products[:, rows] * self.by_query[:, None] * by_row
        Q = self.of.Q / self.divisors[:, None]
        W = self.of.stack.rows[rows] / (self.of.stack.divisors[rows, None] if unit else 1)
        queries, others = np.nonzero(CLOSE * both >= D)
        for i in range(0, len(queries), PAIRS):
            q, w = queries[i : i + PAIRS], others[i : i + PAIRS]
            D[q, w] = squared_norms(Q[q].astype(np.float64) - W[w])
        return np.sqrt(D)

    def fill(self, out: Array) -> None:
        from imprint.kernels.compiled.deciding import DividedRows, ProxySets, euclidean_lists

        stack, of = self.of.stack, self.of
        queries = DividedRows(of.Q, self.divisors, self.by_query, self.squares)
        proxies = DividedRows(stack.rows, stack.divisors, self.by_row, of.squares[1])
        euclidean_lists(of.products, queries, proxies, ProxySets(*stack[2:], of.starts), CLOSE, out)
