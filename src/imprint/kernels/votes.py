"""Votes of neighbours, sorted by distance, for their classes."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from imprint.core.inkind import is_torch
from imprint.core.types import Array
from imprint.kernels import cpu
from imprint.kernels.decisions import Counts, count_decisions

SMALLEST = 1e-10  # added to distances before they are inverted


class Vote(NamedTuple):
    """How many neighbours vote, and whether by heads or by distance."""

    m: int
    heads: bool


def by_distance(distances: Any, labels: Any, n_classes: int) -> Any:
    """Every neighbour votes with the inverse of its distance; shares of all votes.  # (m, q) twice -> (n_classes, q)

    >>> by_distance(np.array([[1.0], [3.0]]), np.array([[0], [1]]), 2).round(2).tolist()
    [[0.75], [0.25]]
    """
    votes, queries = _empty(labels, n_classes)
    for away, label in zip(distances, labels):
        votes[label, queries] += 1 / (away + SMALLEST)
    return votes / votes.sum(axis=0)


def by_heads(labels: Any, n_classes: int) -> Any:
    """Every neighbour has one vote; of equal counts the class of the nearest has a little more.

    >>> by_heads(np.array([[1], [0]]), 2).tolist()
    [[0.625], [0.75]]
    """
    votes, queries = _empty(labels, n_classes)
    m = len(labels)
    for j, label in enumerate(labels):
        first = votes[label, queries] == 0
        votes[label, queries] += 1 + first * (m - j) / (2 * m)
    return votes / m


def _empty(labels: Any, n_classes: int) -> tuple[Any, Any]:
    if not is_torch(labels):
        return np.zeros((n_classes, labels.shape[1])), np.arange(labels.shape[1])
    votes = labels.new_zeros((n_classes, labels.shape[1])).double()
    return votes, labels.new_ones(labels.shape[1]).cumsum(0) - 1


def count_votes(
    lists: Array, starts: Array, rows: Array, truth: Array, votes: Sequence[Vote], rounding: float, counts: Counts
) -> None:
    """Let the nearest proxies of several classes vote in several ways, and count what they decide.

    List s stands in the columns of `lists` from `starts[s]` to `starts[s + 1]`: the sorted distances of every query to
    one set of proxies. In decision t class c has list `rows[t, c]`; way v of voting is counted as decision
    `t * len(votes) + v`, unless there are fewer proxies than vote.
    """
    if cpu.compiled(lists.size * len(rows)):
        from imprint.kernels.compiled.deciding import vote

        order = sorted(range(len(votes)), key=lambda v: votes[v].m)
        ms, by_count = (np.array([votes[v][j] for v in order]) for j in range(2))
        vote(lists, starts, rows, truth, ms, by_count, np.array(order), SMALLEST, rounding, *counts)
        return
    for t, own in enumerate(rows):
        together = np.concatenate([lists[:, starts[s] : starts[s + 1]] for s in own], axis=1).T
        labels = np.repeat(np.arange(len(own)), starts[own + 1] - starts[own])
        nearest = np.argsort(together, axis=0, kind="stable")
        distances, labels = np.take_along_axis(together, nearest, axis=0), labels[nearest]
        for v, (m, heads) in enumerate(votes):
            if m <= len(labels):
                scores = by_heads(labels[:m], len(own)) if heads else by_distance(distances[:m], labels[:m], len(own))
                one = slice(t * len(votes) + v, t * len(votes) + v + 1)
                count_decisions(scores, truth, rounding, Counts(*(column[one] for column in counts)))
