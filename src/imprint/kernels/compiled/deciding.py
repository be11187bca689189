"""The loops of `kernels.decisions` and `kernels.stacks`."""

from typing import Any

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled import jit
from imprint.kernels.decisions import SMALLEST


@jit
def smallest(D: Array, first: Array, size: Array, starts: Array, m: int, out: Array) -> None:
    """Fill `out` from column `starts[s]` on with the m smallest of the values `first[s]` to `first[s] + size[s]`.

    A set that begins where the one before does, and is no smaller, goes on with its list.
    """
    shortest = np.empty(m)
    for i in range(D.shape[0]):
        held, done = 0, 0
        for s in range(len(first)):
            if s == 0 or first[s] != first[s - 1] or size[s] < size[s - 1]:
                held, done = 0, 0
            for r in range(first[s] + done, first[s] + size[s]):
                distance = D[i, r]
                if held < m:
                    position = held
                    held += 1
                elif distance < shortest[m - 1]:
                    position = m - 1
                else:
                    continue
                while position > 0 and shortest[position - 1] > distance:
                    shortest[position] = shortest[position - 1]
                    position -= 1
                shortest[position] = distance
            done = size[s]
            for j in range(held):
                out[i, starts[s] + j] = shortest[j]


@jit
def vote(lists: Array, starts: Array, rows: Array, truth: Array, ways: Array, rounding: float, counts: Any) -> None:
    """Merge the lists of the classes, nearest first, and decide whenever as many as vote have been seen.

    Each row of `ways` is a vote: its m, whether heads count, and its number. They are sorted by m.
    """
    m, by_heads, number = ways[:, 0], ways[:, 1], ways[:, 2]
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
                votes[label] += 1 / (head[label] + SMALLEST)
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
