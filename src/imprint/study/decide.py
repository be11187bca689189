"""From proxies to decisions about test rows: many together where the sharing knows them, others by `Head`."""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from imprint.aggregators.nearest import Nearest
from imprint.core.errors import ParameterError
from imprint.core.types import Array, State
from imprint.head import Head
from imprint.kernels.decisions import Counts, Vote, count_decisions, count_many, count_votes
from imprint.kernels.rows import lengths
from imprint.kernels.stacks import Neighbours, Stack, span_maxima, stacked
from imprint.method import ClassState, Method
from imprint.normalisers.l2 import L2
from imprint.study.proxies import Block, Part, UnitProxies
from imprint.study.sharing import is_known
from imprint.study.tree import Batch, Decision, Tree

ROUNDING = 8 * float(np.finfo(np.float32).eps)
"""Two best scores that differ by less than this share of the best may change places by float32 rounding alone."""
SCORES = 2**22  # held at a time
HELD = 2**25  # numbers in the proxies that are held at a time
BEST = "best"  # comparing by the largest inner product, as `max` does; the other ways are in `DISTANCES`
DISTANCES = {
    "cosine": lambda neighbours, Q: neighbours.cosine(),
    "euclidean": lambda neighbours, Q: neighbours.euclidean(None),
    "euclidean to unit queries": lambda neighbours, Q: neighbours.euclidean(lengths(Q)),
}


class Decided(NamedTuple):
    """What came of one decision about all test rows of its line-up."""

    right: Array  # (C,) of every class how many of its test rows were given to it
    claimed: Array  # (C,) how many test rows were given to every class
    near: int  # test rows whose two best scores lie within rounding
    proxies: int
    seconds: float


def decide(tree: Tree, proxies: UnitProxies, queries: Array) -> Iterator[tuple[int, Decided]]:
    """What came of each decision of a tree, with its number, in any order."""
    extreme = lengths(queries) is None
    known = [] if extreme else np.flatnonzero(is_known(tree.methods)).tolist()
    plain = Plain(tree, proxies, queries)
    for i in sorted({*range(len(tree.decisions))} - {*known}):
        yield i, plain.decide(i)
    for numbers in _held_together(tree, proxies, known):
        start = time.process_time()
        found = _together(tree, proxies, queries, numbers)
        each = (time.process_time() - start) / sum(one.proxies for one in found.values())
        yield from ((i, one._replace(seconds=each * one.proxies)) for i, one in found.items())
        proxies.forget_finished()


def _held_together(tree: Tree, proxies: UnitProxies, numbers: Iterable[int]) -> Iterator[list[int]]:
    """Decisions in groups whose proxies fit into memory; those of one seed after each other, as they share most."""
    by_maker: dict[int, list[int]] = defaultdict(list)
    for i in numbers:
        by_maker[tree.decisions[i].maker].append(i)
    group: list[int] = []
    blocks: dict[Block, int] = {}
    for m in sorted(by_maker, key=lambda m: (tree.makers[m].seed or 0, m)):
        group += by_maker[m]
        for lineup, norm_post in {(d.lineup, d.norm_post) for d in map(tree.decisions.__getitem__, by_maker[m])}:
            blocks.update((part.block, part.block.rows.size) for part in proxies.parts(m, lineup, norm_post))
        if sum(blocks.values()) > HELD:
            yield group
            group, blocks = [], {}
    if group:
        yield group


@dataclass
class Question:
    """Decisions of one line-up that compare queries and proxies in one way: sets of proxies x ways of voting."""

    lineup: int
    sets: dict[object, list[Part]]
    votes: dict[Vote, int]
    numbers: dict[tuple[object, Vote], int]  # the decision that a set and a way of voting answer
    counts: Any = None

    def places(self, place: dict[Part, int]) -> Array:
        """Where the proxies of each set and class stand in a stack.  # (sets, C)"""
        return np.array([[place[part] for part in parts] for parts in self.sets.values()])

    def answers(self) -> Iterator[tuple[int, Decided]]:
        """Every decision and what came of it."""
        first = {key: i * len(self.votes) for i, key in enumerate(self.sets)}
        for (key, vote), number in self.numbers.items():
            right, claimed, near = (column[first[key] + self.votes[vote]] for column in self.counts)
            yield number, Decided(right, claimed, int(near), sum(part.size for part in self.sets[key]), 0.0)


def _together(tree: Tree, proxies: UnitProxies, queries: Array, numbers: list[int]) -> dict[int, Decided]:
    """Make decisions together: test rows that take part in the same line-ups, one way of comparing after another."""
    questions = _questions(tree, proxies, numbers)
    for batch in tree.batches():
        here = [(how, q) for (how, lineup), q in questions.items() if lineup in batch.lineups]
        if best := [q for how, q in here if how == BEST]:
            _by_best_score(tree, queries, batch, best)
        if near := [(how, q) for how, q in here if how != BEST]:
            _by_neighbours(tree, queries, batch, near)
    return dict(answer for q in questions.values() for answer in q.answers())


def _questions(tree: Tree, proxies: UnitProxies, numbers: list[int]) -> dict[tuple[str, int], Question]:
    """Decisions by how they compare queries with proxies, and by line-up."""
    found: dict[tuple[str, int], Question] = {}
    for i in numbers:
        d = tree.decisions[i]
        how, vote = _comparison(d)
        q = found.setdefault((how, d.lineup), Question(d.lineup, {}, {}, {}))
        key = d.maker, d.norm_post
        if key not in q.sets:
            q.sets[key] = proxies.parts(d.maker, d.lineup, d.norm_post)
        q.votes.setdefault(vote, len(q.votes))
        q.numbers[key, vote] = i
    for q in found.values():
        q.counts = Counts.of(len(q.sets) * len(q.votes), len(tree.lineups[q.lineup].classes))
    return found


def _comparison(decision: Decision) -> tuple[str, Vote]:
    """How a decision compares queries with proxies, and how the nearest of these vote; with `max` the best alone."""
    aggregator = decision.aggregator
    if not isinstance(aggregator, Nearest):
        return BEST, Vote(1, True)
    unit = aggregator.metric == "euclidean" and isinstance(decision.norm_inf, L2)
    return aggregator.metric + " to unit queries" * unit, Vote(aggregator.m, aggregator.weighting == "uniform")


def _by_best_score(tree: Tree, queries: Array, batch: Batch, questions: list[Question]) -> None:
    """One product for all proxies, maxima for every set of them, then one line-up after the other."""
    stack, place = _stack(questions)
    best = span_maxima(queries[batch.rows], stack)
    if not np.isfinite(best).all():
        raise ParameterError("max: the scores overflow; scale the rows down or use norm_pre='l2'.")
    for q in questions:
        count_many(best, q.places(place), tree.lineups[q.lineup].truth_of(batch.rows), ROUNDING, q.counts)


def _by_neighbours(tree: Tree, queries: Array, batch: Batch, questions: list[tuple[str, Question]]) -> None:
    """One product for all proxies and metrics, some test rows at a time; then the nearest proxies vote."""
    stack, place = _stack([q for _, q in questions])
    deepest = max(vote.m for _, q in questions for vote in q.votes)
    step = max(16, SCORES // len(stack.rows))
    for rows in (batch.rows[i : i + step] for i in range(0, len(batch.rows), step)):
        neighbours = Neighbours(queries[rows], stack, deepest)
        for how in dict.fromkeys(how for how, _ in questions):
            lists = DISTANCES[how](neighbours, queries[rows])
            for q in (q for other, q in questions if other == how):
                truth, votes = tree.lineups[q.lineup].truth_of(rows), list(q.votes)
                count_votes(lists, neighbours.starts, q.places(place), truth, votes, ROUNDING, q.counts)


def _stack(questions: Sequence[Question]) -> tuple[Stack, dict[Part, int]]:
    """The blocks of some questions below each other, and the place of every part among the sets of rows in it."""
    parts = list(dict.fromkeys(part for q in questions for row in q.sets.values() for part in row))
    blocks = {block: i for i, block in enumerate(dict.fromkeys(part.block for part in parts))}
    divided = {part.block for part in parts if part.unit}
    divisors = [b.divisors if b in divided else None for b in blocks]
    sets = [(blocks[part.block], part.size, part.unit) for part in parts]
    stack, place = stacked([b.rows for b in blocks], divisors, sets)
    return stack, dict(zip(parts, place.tolist()))


class Plain:
    """Decisions as a fresh `Head` makes them, from states of classes that experiments share."""

    def __init__(self, tree: Tree, proxies: UnitProxies, queries: Array) -> None:
        self.tree, self.proxies, self.queries = tree, proxies, queries
        self._sums: dict[object, State] = {}

    def decide(self, number: int) -> Decided:
        """What came of one decision."""
        start = time.process_time()
        head, lineup = self.head(number), self.tree.lineups[self.tree.lineup[number]]
        step = max(1, SCORES // len(lineup.classes))
        total = Counts.of(1, len(lineup.classes))
        for i in range(0, len(lineup.rows), step):
            scores = head.scores(self.queries[lineup.rows[i : i + step]])
            if not np.isfinite(scores).all():
                raise ParameterError(f"{head.method}: the scores overflow; scale the rows down or use norm_inf='l2'.")
            count_decisions(scores.T, lineup.truth[i : i + step], ROUNDING, total)
        count = len(head.proxies.labels)
        return Decided(total.right[0], total.claimed[0], int(total.near[0]), count, time.process_time() - start)

    def head(self, number: int) -> Head:
        """The head that makes one decision."""
        decision, method = self.tree.decisions[number], self.tree.methods[number]
        classes = self.tree.lineups[decision.lineup].classes
        labels = tuple(self.tree.classes[c].label for c in classes)
        states = tuple(ClassState(self.proxies.states[c, decision.maker], self._sums_of(method, c)) for c in classes)
        return Head(method, self.tree.makers[decision.maker].seed or 0, self.queries.dtype, labels, states)

    def _sums_of(self, method: Method, c: int) -> State:
        """What an aggregator wants to know of the rows of a class."""
        key = method.aggregator, method.norm_pre, method.norm_inf, c
        if key not in self._sums:
            X = self.proxies.X[self.tree.classes[c].rows]
            self._sums[key] = method.sums(X, method.norm_pre.apply(X))
        return self._sums[key]
