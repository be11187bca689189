"""The loops of `kernels.decisions` and `kernels.stacks`."""

from typing import Any, NamedTuple

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled import jit, jit_sums


class DividedRows(NamedTuple):
    """Rows, what they may be divided by, its inverse in float64, and squared lengths."""

    rows: Array
    divisors: Array
    factors: Array
    squares: Array


class ProxySets(NamedTuple):
    """Sets of rows: the first row, the size, whether rows are divided, and where the lists of each set start."""

    first: Array
    size: Array
    unit: Array
    starts: Array


class Ways(NamedTuple):
    """Ways of voting, by ascending m; `number` says where each is counted."""

    m: Array
    by_heads: Array
    number: Array
    smallest: float  # added to distances before they are inverted


@jit
def _keep(away: Array, count: int, shortest: Array, held: int, m: int) -> int:
    """Put the first of some distances into a sorted list of at most m; how many it holds then."""
    for r in range(count):
        distance = away[r]
        if held == m:
            if distance >= shortest[m - 1]:
                continue
            position = m - 1
        else:
            position = held
            held += 1
        while position > 0 and shortest[position - 1] > distance:
            shortest[position] = shortest[position - 1]
            position -= 1
        shortest[position] = distance
    return held


@jit
def _goes_on(s: int, first: Array, unit: Array) -> bool:
    """Whether a set begins with all of the one before it."""
    return s > 0 and first[s] == first[s - 1] and unit[s] == unit[s - 1]


@jit
def cosine_lists(products: Array, by_query: Array, by_row: Array, sets: ProxySets, out: Array) -> None:
    """Lists of cosine distances of every query and set."""
    first, size, unit, starts = sets
    longest = size.max()
    shortest, away = np.empty(longest), np.empty(longest)
    for i in range(products.shape[0]):
        held, done = 0, 0
        for s in range(len(first)):
            if not _goes_on(s, first, unit):
                held, done = 0, 0
            begin, count = first[s] + done, size[s] - done
            for r in range(count):
                away[r] = max(1 - products[i, begin + r] * by_query[i] * by_row[begin + r], 0.0)
            m = starts[s + 1] - starts[s]
            held, done = _keep(away, count, shortest, held, m), size[s]
            for j in range(m):
                out[i, starts[s] + j] = shortest[j]


@jit_sums
def _difference(Q: Array, i: int, by: Array, W: Array, r: int, divisors: Array, unit: bool) -> float:
    """The squared distance of two rows, each divided by a number of its type; the second only if `unit`."""
    total = 0.0
    for t in range(Q.shape[1]):
        other = W[r, t] / divisors[r] if unit else W[r, t]
        delta = np.float64(Q[i, t] / by[i]) - np.float64(other)
        total += delta * delta
    return total


@jit
def euclidean_lists(
    products: Array, queries: DividedRows, proxies: DividedRows, sets: ProxySets, close: float, out: Array
) -> None:
    """Lists of Euclidean distances of every query and set."""
    first, size, unit, starts = sets
    Q, q_divisors, by_query, q_squares = queries
    W, w_divisors, by_row, w_squares = proxies
    longest = size.max()
    shortest, away = np.empty(longest), np.empty(longest)
    for i in range(products.shape[0]):
        held, done = 0, 0
        for s in range(len(first)):
            if not _goes_on(s, first, unit):
                held, done = 0, 0
            begin, count = first[s] + done, size[s] - done
            near = 0
            for r in range(count):
                by = by_row[begin + r] if unit[s] else 1.0
                both = q_squares[i] + w_squares[begin + r] * by * by
                away[r] = both - 2 * products[i, begin + r] * by_query[i] * by
                near += away[r] <= close * both
            if near:
                for r in range(count):
                    by = by_row[begin + r] if unit[s] else 1.0
                    if away[r] <= close * (q_squares[i] + w_squares[begin + r] * by * by):
                        away[r] = _difference(Q, i, q_divisors, W, begin + r, w_divisors, unit[s])
            m = starts[s + 1] - starts[s]
            held, done = _keep(away, count, shortest, held, m), size[s]
            for j in range(m):
                out[i, starts[s] + j] = np.sqrt(shortest[j])


@jit
def vote(lists: Array, starts: Array, rows: Array, truth: Array, ways: Ways, rounding: float, counts: Any) -> None:
    """Merge the lists of the classes, nearest first, and decide whenever as many as vote have been seen."""
    m, by_heads, number, smallest = ways
    right, claimed, near = counts
    decisions, n_classes = rows.shape
    at, end, head = np.empty(n_classes, np.int64), np.empty(n_classes, np.int64), np.empty(n_classes)
    votes, heads, earliest = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    for i in range(len(truth)):
        for t in range(decisions):
            total = 0
            for c in range(n_classes):
                at[c], end[c] = starts[rows[t, c]], starts[rows[t, c] + 1]
                head[c] = lists[i, at[c]]
                total += end[c] - at[c]
            votes[:], heads[:], earliest[:] = 0, 0, 0
            way = 0
            for j in range(min(total, m[-1])):
                label = 0
                for c in range(1, n_classes):
                    label = c if head[c] < head[label] else label
                votes[label] += 1 / (head[label] + smallest)
                earliest[label] = j if heads[label] == 0 else earliest[label]
                heads[label] += 1
                at[label] += 1
                head[label] = lists[i, at[label]] if at[label] < end[label] else np.inf
                while way < len(m) and m[way] == j + 1:
                    best, second, winner = -1.0, -1.0, 0
                    for c in range(n_classes):
                        score = votes[c]
                        if by_heads[way]:
                            score = heads[c] + (heads[c] > 0) * (m[way] - earliest[c]) / (2 * m[way])
                        if score > best:
                            best, second, winner = score, best, c
                        else:
                            second = max(second, score)
                    decision = t * len(m) + number[way]
                    claimed[decision, winner] += 1
                    right[decision, winner] += winner == truth[i]
                    near[decision] += n_classes > 1 and best - second <= rounding * best
                    way += 1
