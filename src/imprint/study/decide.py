"""From proxies to decisions about test rows: many together where the sharing knows them, others by `Head`."""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from imprint.aggregators.kernel import Kernel
from imprint.aggregators.nearest import Nearest
from imprint.core.errors import ParameterError
from imprint.core.types import Array
from imprint.head import Head
from imprint.kernels.decisions import Counts, Vote, count_decisions, count_many, count_votes
from imprint.kernels.rows import lengths
from imprint.kernels.stacks import Neighbours, ProxyStack, span_maxima, stacked
from imprint.method import ClassState
from imprint.normalisers.l2 import L2
from imprint.study.kernel_decisions import KernelDecisions
from imprint.study.proxies import ClassProxies, ProxyRows, UnitProxies
from imprint.study.sharing import ROUNDING, is_shareable, rounding_of
from imprint.study.work_graph import Decision, QueryGroup, WorkGraph

SCORES = 2**22  # held at a time
HELD = 2**25  # numbers in the proxies that are held at a time
BEST = "best"  # comparing by the largest inner product, as `max` does; the other ways are in `DISTANCES`
DISTANCES = {
    "cosine": lambda neighbours, Q: neighbours.cosine(),
    "euclidean": lambda neighbours, Q: neighbours.euclidean(None),
    "euclidean to unit queries": lambda neighbours, Q: neighbours.euclidean(lengths(Q)),
}


class DecisionCounts(NamedTuple):
    """What came of one decision about all test rows of its task split."""

    right: Array  # (C,) of every class how many of its test rows were given to it
    claimed: Array  # (C,) how many test rows were given to every class
    near: int  # test rows whose two best scores lie within rounding
    proxies: int
    seconds: float


def decide(graph: WorkGraph, proxies: UnitProxies, queries: Array) -> Iterator[tuple[int, DecisionCounts]]:
    """What came of each decision of a graph, with its number, in any order."""
    extreme = lengths(queries) is None
    known = [] if extreme else np.flatnonzero(is_shareable(graph.methods)).tolist()
    kernel = [i for i in known if type(graph.decisions[i].aggregator) is Kernel]
    shared = KernelDecisions(graph, proxies, queries)
    left_to_head = {i for i in kernel if not shared.can_decide(i)}
    plain = PlainDecisions(graph, proxies, queries)
    for i in sorted({*range(len(graph.decisions))} - {*known} | left_to_head):
        yield i, plain.decide(i)
    for numbers in _held_together(graph, proxies, sorted({*kernel} - left_to_head)):
        start = time.process_time()
        counts = shared.count(numbers)
        each = (time.process_time() - start) / sum(size for _, size in counts.values())
        for i, ((right, claimed, near), size) in counts.items():
            yield i, DecisionCounts(right[0], claimed[0], int(near[0]), size, each * size)
        proxies.forget_finished()
    for numbers in _held_together(graph, proxies, sorted({*known} - {*kernel})):
        start = time.process_time()
        found = _together(graph, proxies, queries, numbers)
        each = (time.process_time() - start) / sum(one.proxies for one in found.values())
        yield from ((i, one._replace(seconds=each * one.proxies)) for i, one in found.items())
        proxies.forget_finished()


def _held_together(graph: WorkGraph, proxies: UnitProxies, numbers: Iterable[int]) -> Iterator[list[int]]:
    """Decisions in groups whose proxies fit into memory; those of one seed after each other, as they share most."""
    by_spec: dict[int, list[int]] = defaultdict(list)
    for i in numbers:
        by_spec[graph.decisions[i].spec].append(i)
    group: list[int] = []
    blocks: dict[ProxyRows, int] = {}
    for m in sorted(by_spec, key=lambda m: (graph.specs[m].seed or 0, m)):
        group += by_spec[m]
        for split, norm_post in {(d.split, d.norm_post) for d in map(graph.decisions.__getitem__, by_spec[m])}:
            blocks.update((part.block, part.block.rows.size) for part in proxies.parts(m, split, norm_post))
        if sum(blocks.values()) > HELD:
            yield group
            group, blocks = [], {}
    if group:
        yield group


@dataclass
class DecisionTable:
    """Decisions of one task split that compare queries and proxies in one way: sets of proxies x ways of voting."""

    split: int
    sets: dict[object, list[ClassProxies]]
    votes: dict[Vote, int]
    numbers: dict[tuple[object, Vote], int]  # the decision that a set and a way of voting answer
    counts: Any = None

    def places(self, place: dict[ClassProxies, int]) -> Array:
        """Where the proxies of each set and class stand in a stack.  # (sets, C)"""
        return np.array([[place[part] for part in parts] for parts in self.sets.values()])

    def answers(self) -> Iterator[tuple[int, DecisionCounts]]:
        """Every decision and what came of it."""
        first = {key: i * len(self.votes) for i, key in enumerate(self.sets)}
        for (key, vote), number in self.numbers.items():
            right, claimed, near = (column[first[key] + self.votes[vote]] for column in self.counts)
            yield number, DecisionCounts(right, claimed, int(near), sum(part.size for part in self.sets[key]), 0.0)


def _together(graph: WorkGraph, proxies: UnitProxies, queries: Array, numbers: list[int]) -> dict[int, DecisionCounts]:
    """Make decisions together: test rows that take part in the same task splits, one way of comparing after another."""
    tables = _decision_tables(graph, proxies, numbers)
    for batch in graph.query_groups():
        here = [(how, q) for (how, split), q in tables.items() if split in batch.splits]
        if best := [q for how, q in here if how == BEST]:
            _by_best_score(graph, queries, batch, best)
        if near := [(how, q) for how, q in here if how != BEST]:
            _by_neighbours(graph, queries, batch, near)
    return dict(answer for q in tables.values() for answer in q.answers())


def _decision_tables(
    graph: WorkGraph, proxies: UnitProxies, numbers: list[int]
) -> dict[tuple[str, int], DecisionTable]:
    """Decisions by how they compare queries with proxies, and by task split."""
    found: dict[tuple[str, int], DecisionTable] = {}
    for i in numbers:
        d = graph.decisions[i]
        how, vote = _comparison(d)
        q = found.setdefault((how, d.split), DecisionTable(d.split, {}, {}, {}))
        key = d.spec, d.norm_post
        if key not in q.sets:
            q.sets[key] = proxies.parts(d.spec, d.split, d.norm_post)
        q.votes.setdefault(vote, len(q.votes))
        q.numbers[key, vote] = i
    for q in found.values():
        q.counts = Counts.of(len(q.sets) * len(q.votes), len(graph.splits[q.split].classes))
    return found


def _comparison(decision: Decision) -> tuple[str, Vote]:
    """How a decision compares queries with proxies, and how the nearest of these vote; with `max` the best alone."""
    aggregator = decision.aggregator
    if not isinstance(aggregator, Nearest):
        return BEST, Vote(1, True)
    unit = aggregator.metric == "euclidean" and isinstance(decision.norm_inf, L2)
    return aggregator.metric + " to unit queries" * unit, Vote(aggregator.m, aggregator.weighting == "uniform")


def _by_best_score(graph: WorkGraph, queries: Array, batch: QueryGroup, tables: list[DecisionTable]) -> None:
    """One product for all proxies, maxima for every set of them, then one task split after the other."""
    stack, place = _stack(tables)
    best = span_maxima(queries[batch.rows], stack)
    if not np.isfinite(best).all():
        raise ParameterError("max: the scores overflow; scale the rows down or use norm_pre='l2'.")
    for q in tables:
        count_many(best, q.places(place), graph.splits[q.split].truth_of(batch.rows), ROUNDING, q.counts)


def _by_neighbours(
    graph: WorkGraph, queries: Array, batch: QueryGroup, tables: list[tuple[str, DecisionTable]]
) -> None:
    """One product for all proxies and metrics, some test rows at a time; then the nearest proxies vote."""
    stack, place = _stack([q for _, q in tables])
    deepest = max(vote.m for _, q in tables for vote in q.votes)
    step = max(16, SCORES // len(stack.rows))
    for rows in (batch.rows[i : i + step] for i in range(0, len(batch.rows), step)):
        neighbours = Neighbours(queries[rows], stack, deepest)
        for how in dict.fromkeys(how for how, _ in tables):
            lists = DISTANCES[how](neighbours, queries[rows])
            for q in (q for other, q in tables if other == how):
                truth, votes = graph.splits[q.split].truth_of(rows), list(q.votes)
                count_votes(lists, neighbours.starts, q.places(place), truth, votes, ROUNDING, q.counts)


def _stack(tables: Sequence[DecisionTable]) -> tuple[ProxyStack, dict[ClassProxies, int]]:
    """The blocks of some tables below each other, and the place of every part among the sets of rows in it."""
    parts = list(dict.fromkeys(part for q in tables for row in q.sets.values() for part in row))
    blocks = {block: i for i, block in enumerate(dict.fromkeys(part.block for part in parts))}
    divided = {part.block for part in parts if part.unit}
    divisors = [b.divisors if b in divided else None for b in blocks]
    sets = [(blocks[part.block], part.size, part.unit) for part in parts]
    stack, place = stacked([b.rows for b in blocks], divisors, sets)
    return stack, dict(zip(parts, place.tolist()))


class PlainDecisions:
    """Decisions as a fresh `Head` makes them, from states of classes that experiments share."""

    def __init__(self, graph: WorkGraph, proxies: UnitProxies, queries: Array) -> None:
        self.graph, self.proxies, self.queries = graph, proxies, queries

    def decide(self, number: int) -> DecisionCounts:
        """What came of one decision."""
        start = time.process_time()
        head, split = self.head(number), self.graph.splits[self.graph.split[number]]
        step, rounding = max(1, SCORES // len(split.classes)), rounding_of(head.aggregator)
        total = Counts.of(1, len(split.classes))
        for i in range(0, len(split.rows), step):
            scores = head.scores(self.queries[split.rows[i : i + step]])
            if not np.isfinite(scores).all():
                raise ParameterError(f"{head.method}: the scores overflow; scale the rows down or use norm_inf='l2'.")
            count_decisions(scores.T, split.truth[i : i + step], rounding, total)
        count = len(head.proxies.labels)
        return DecisionCounts(total.right[0], total.claimed[0], int(total.near[0]), count, time.process_time() - start)

    def head(self, number: int) -> Head:
        """The head that makes one decision."""
        decision, method = self.graph.decisions[number], self.graph.methods[number]
        classes = self.graph.splits[decision.split].classes
        labels = tuple(self.graph.classes[c].label for c in classes)
        states = tuple(
            ClassState(self.proxies.states[c, decision.spec], self.proxies.row_statistics(method, c)) for c in classes
        )
        return Head(method, self.graph.specs[decision.spec].seed or 0, self.queries.dtype, labels, states)
