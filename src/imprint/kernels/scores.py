"""Scores of classes by their best or nearest proxies, scores as probabilities, and
counts of decisions by scores.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from imprint.core.arrays import (
    AnyArray,
    Array,
    cast_like,
    concatenate,
    dtype_name,
    is_torch,
    like,
    namespace,
)
from imprint.kernels import cpu
from imprint.kernels.rows import exact_products

# Whose products are in memory at a time, per core: 8 MB of float32 scores.
BLOCK_QUERIES = 512
BLOCK_PROXIES = 4096
MAX_DEVICE_SCORES = 2**27  # in memory at a time on a GPU
MIN_TEMPERATURE = np.finfo(np.float64).tiny
DISTANCE_OFFSET = 1e-10  # added to distances before they are inverted
# multiplications that take as long as NumPy takes to compare one score
COMPARISON_COST = 20


def class_maxima(
    Q: AnyArray,
    W: Array,
    starts: Array,
) -> Any:
    """Largest inner product of every query with the proxies of every class.  # (q, C)

    The proxies `W` are sorted by class; `starts` are the indices of the first proxy of
    each class. Products that overflow are infinite or not a number.
    """
    if is_torch(Q):
        return _tensor_maxima(Q, like(W, Q), starts)
    best = np.full((len(Q), len(starts)), -np.inf, dtype=np.result_type(Q, W))

    def fill(queries: slice) -> None:
        for proxies in cpu.blocks(len(W), BLOCK_PROXIES):
            # the first class of these proxies
            first = int(np.searchsorted(starts, proxies.start, side="right")) - 1
            end = int(np.searchsorted(starts, proxies.stop))
            cuts = np.maximum(starts[first:end], proxies.start) - proxies.start
            with np.errstate(over="ignore", invalid="ignore"):
                part = np.maximum.reduceat(Q[queries] @ W[proxies].T, cuts, axis=1)
            out = best[queries, first:end]
            np.maximum(out, part, out=out)

    cpu.on_all_cores(fill, cpu.blocks(len(Q), BLOCK_QUERIES))
    return best


def _tensor_maxima(
    Q: Any,
    W: Any,
    starts: Array,
) -> Any:
    """The same for tensors, on their device."""
    sizes = np.diff(np.append(starts, len(W))).tolist()

    def maxima(scores: Any) -> Any:
        if len(set(sizes)) == 1:
            return scores.view(len(scores), len(sizes), -1).amax(2)
        parts = scores.split(sizes, dim=1)
        return namespace(Q).stack([part.amax(1) for part in parts], dim=1)

    queries_at_once = max(1, MAX_DEVICE_SCORES // len(W))
    with exact_products(Q):
        batches = Q.split(queries_at_once)
        return concatenate([maxima(batch @ W.T) for batch in batches])


def distance_votes(
    distances: AnyArray,
    labels: AnyArray,
    n_classes: int,
) -> Any:
    """Shares of the votes, each the inverse of a neighbour's distance.  # (m, q), (m,
    q) -> (n_classes, q)
    """
    votes = _sums_by_class(1 / (distances + DISTANCE_OFFSET), labels, n_classes)
    return votes / votes.sum(axis=0)


def uniform_votes(labels: AnyArray, n_classes: int) -> Any:
    """Shares of the votes, one per neighbour; on a tie the class of the nearest
    neighbour has a little more.
    """
    m = len(labels)
    votes = []
    for j, label in enumerate(labels):
        # The first neighbour of a class has up to half a vote more, the nearer the
        # more: less than one vote, so that only ties change.
        is_first = (labels[:j] != label).all(axis=0)
        votes.append(1 + is_first * (m - j) / (2 * m))
    return _sums_by_class(votes, labels, n_classes) / m


def _sums_by_class(
    votes: Any,
    labels: Any,
    n_classes: int,
) -> Any:
    """The sum of the votes of the neighbours of each class.  # (m, q), (m, q) ->
    (n_classes, q) float64
    """
    shape = (n_classes, labels.shape[1])
    if is_torch(labels):
        sums = labels.new_zeros(shape).double()
        for vote, label in zip(votes, labels):
            sums.scatter_add_(0, label[None], vote.to(sums.dtype)[None])
        return sums
    sums = np.zeros(shape)
    queries = np.arange(labels.shape[1])
    for vote, label in zip(votes, labels):
        sums[label, queries] += vote
    return sums


def softmax(Z: Any, temperature: float = 1.0) -> Any:
    """The softmax of every row divided by a temperature, in float64.  # (n, C)

    Finite for finite scores, however small the temperature.
    """
    temperature = max(temperature, MIN_TEMPERATURE)
    if is_torch(Z):
        return (Z.double() / temperature).softmax(1)
    scores = np.asarray(Z, dtype=np.float64)
    with np.errstate(over="ignore"):  # what is too far below the largest becomes zero
        below_largest = scores - scores.max(axis=1, keepdims=True)
        E = np.exp(below_largest / temperature)
    return np.asarray(E / E.sum(axis=1, keepdims=True))


def keep_winners(P: Any, S: Any) -> Any:
    """Probabilities in the type of the scores, adjusted so that rounding does not
    change the predicted class.
    """
    xp = namespace(S)
    P = cast_like(P, S)
    winners = S.argmax(axis=1)
    changed = xp.where(P.argmax(axis=1) != winners)[0]
    if len(changed):
        P = P + 0  # a copy: the caller's array does not change
        # The next larger number after the largest probability, towards 2.
        towards = like(np.array(2, dtype_name(S)), S)
        largest = xp.amax(P[changed], axis=1)
        P[changed, winners[changed]] = xp.nextafter(largest, towards)
    return P


class Counts(NamedTuple):
    """Counts of many decisions among the same classes; the functions below add queries
    to them.
    """

    correct: Array  # (decisions, C) queries of each class that were assigned to it
    predicted: Array  # (decisions, C) queries that were assigned to each class
    # (decisions,) queries whose two best scores differ by less than rounding error
    near_ties: Array

    @classmethod
    def of(cls, decisions: int, n_classes: int) -> "Counts":
        """Counts of zero queries."""
        correct, predicted = np.zeros((2, decisions, n_classes), dtype=np.int64)
        return cls(correct, predicted, np.zeros(decisions, dtype=np.int64))


def count_decisions(
    scores: Array,
    truth: Array,
    rounding: float,
    counts: Counts,
) -> None:
    """Assign every query to the class with the largest score, the first on a tie, and
    count, as one decision.

    A query is a near tie if its two best scores differ by at most `rounding` times the
    best.  # (C, q), (q,)
    """
    count_many(
        np.ascontiguousarray(scores),
        np.arange(len(scores))[None],
        truth,
        rounding,
        counts,
    )


def count_many(
    scores: Array,
    rows: Array,
    truth: Array,
    rounding: float,
    counts: Counts,
) -> None:
    """Count many decisions as `count_decisions` does; in decision t, the scores of
    class c are `scores[rows[t, c]]`.
    """
    if cpu.use_numba(COMPARISON_COST * rows.size * len(truth)):
        from imprint.kernels.compiled import deciding

        deciding.count_many(scores, rows, truth, scores.dtype.type(rounding), counts)
        return
    queries = np.arange(len(truth))
    for t, class_rows in enumerate(rows):
        others = scores[class_rows]  # (C, q), a copy
        winner = others.argmax(axis=0)
        best = others[winner, queries]
        others[winner, queries] = -np.inf
        n_classes = len(class_rows)
        is_correct = winner == truth
        gap = best - others.max(axis=0)
        is_near_tie = gap <= rounding * np.abs(best)
        counts.predicted[t] += np.bincount(winner, minlength=n_classes)
        counts.correct[t] += np.bincount(truth[is_correct], minlength=n_classes)
        counts.near_ties[t] += is_near_tie.sum()


class Vote(NamedTuple):
    """How many neighbours vote, and whether the votes are equal or the inverse of the
    distances.
    """

    m: int
    is_uniform: bool


def count_votes(
    lists: Array,
    starts: Array,
    rows: Array,
    truth: Array,
    votes: Sequence[Vote],
    rounding: float,
    counts: Counts,
) -> None:
    """Let the nearest proxies of several classes vote in several ways, and count the
    decisions.

    The columns `starts[s]` to `starts[s + 1]` of `lists` are list s: the sorted
    distances of every query to one set of proxies. In decision t the proxies of class c
    are list `rows[t, c]`. Vote v is counted as decision `t * len(votes) + v`, if there
    are enough proxies.
    """
    if cpu.use_numba(lists.size * len(rows)):
        from imprint.kernels.compiled.deciding import vote

        ballots = []
        for number, (m, is_uniform) in enumerate(votes):
            ballots.append((m, is_uniform, number))
        by_size = np.array(sorted(ballots))
        vote(lists, starts, rows, truth, by_size, rounding, counts)
        return
    for t, class_lists in enumerate(rows):
        distances, labels = _merged_lists(lists, starts, class_lists)
        for v, (m, is_uniform) in enumerate(votes):
            if m > len(labels):
                continue
            if is_uniform:
                scores = uniform_votes(labels[:m], len(class_lists))
            else:
                scores = distance_votes(distances[:m], labels[:m], len(class_lists))
            decision = t * len(votes) + v
            of_decision = slice(decision, decision + 1)
            part = Counts(*(count[of_decision] for count in counts))
            count_decisions(scores, truth, rounding, part)


def _merged_lists(
    lists: Array,
    starts: Array,
    class_lists: Array,
) -> tuple[Array, Array]:
    """Distances of all proxies of a decision, nearest first, and their classes.  # (p,
    q), (p, q)
    """
    columns = [lists[:, starts[s] : starts[s + 1]] for s in class_lists]
    merged = np.concatenate(columns, axis=1).T
    sizes = starts[class_lists + 1] - starts[class_lists]
    labels = np.repeat(np.arange(len(class_lists)), sizes)
    nearest = np.argsort(merged, axis=0, kind="stable")
    return np.take_along_axis(merged, nearest, axis=0), labels[nearest]
