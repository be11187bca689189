"""From proxies to decisions about test rows: shareable ones together, the others by `Head`."""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

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
from imprint.study.work_graph import Decision, DecisionCounts, QueryGroup, WorkGraph

SCORES = 2**22  # in memory at a time
PROXY_NUMBERS = 2**25  # in memory at a time
BEST = "best"  # by the largest inner product, as `max` does; the other comparisons are in `DISTANCES`
DISTANCES = {
    "cosine": lambda neighbours, Q: neighbours.cosine(),
    "euclidean": lambda neighbours, Q: neighbours.euclidean(None),
    "euclidean to unit queries": lambda neighbours, Q: neighbours.euclidean(lengths(Q)),
}


def decide(graph: WorkGraph, proxies: UnitProxies, queries: Array) -> Iterator[tuple[int, DecisionCounts]]:
    """The index and the result of each decision of a work graph, in any order."""
    extreme = lengths(queries) is None
    known = [] if extreme else np.flatnonzero(is_shareable(graph.methods)).tolist()
    kernel = [i for i in known if type(graph.decisions[i].aggregator) is Kernel]
    shared = KernelDecisions(graph, proxies, queries)
    left_to_head = {i for i in kernel if not shared.can_decide(i)}
    plain = PlainDecisions(graph, proxies, queries)
    for i in sorted({*range(len(graph.decisions))} - {*known} | left_to_head):
        yield i, plain.decide(i)
    by_votes = partial(_together, graph, proxies, queries)
    for compute, numbers in ((shared.count, {*kernel} - left_to_head), (by_votes, {*known} - {*kernel})):
        for group in _groups_in_memory(graph, proxies, sorted(numbers)):
            start = time.process_time()
            results = compute(group)
            each = (time.process_time() - start) / sum(result.proxies for result in results.values())
            yield from ((i, result._replace(seconds=each * result.proxies)) for i, result in results.items())
            proxies.forget_finished()


def _groups_in_memory(graph: WorkGraph, proxies: UnitProxies, numbers: Iterable[int]) -> Iterator[list[int]]:
    """Decisions in groups whose proxies fit into memory, ordered by seed because those of one seed share most."""
    by_spec: dict[int, list[int]] = defaultdict(list)
    for i in numbers:
        by_spec[graph.decisions[i].spec].append(i)
    group: list[int] = []
    blocks: dict[ProxyRows, int] = {}
    for m in sorted(by_spec, key=lambda m: (graph.specs[m].seed or 0, m)):
        group += by_spec[m]
        for split, norm_post in {(d.split, d.norm_post) for d in map(graph.decisions.__getitem__, by_spec[m])}:
            blocks.update((part.block, part.block.rows.size) for part in proxies.parts(m, split, norm_post))
        if sum(blocks.values()) > PROXY_NUMBERS:
            yield group
            group, blocks = [], {}
    if group:
        yield group


@dataclass
class DecisionTable:
    """Decisions of one task split with one comparison of queries and proxies: sets of proxies x votes."""

    split: int
    sets: dict[object, list[ClassProxies]]
    votes: dict[Vote, int]
    numbers: dict[tuple[object, Vote], int]  # the decision of each set and vote
    counts: Any = None

    def indices(self, index: dict[ClassProxies, int]) -> Array:
        """The indices in a stack of the proxies of each set and class.  # (sets, C)"""
        return np.array([[index[part] for part in parts] for parts in self.sets.values()])

    def results(self) -> Iterator[tuple[int, DecisionCounts]]:
        """The index and the result of every decision."""
        first = {key: i * len(self.votes) for i, key in enumerate(self.sets)}
        for (key, vote), number in self.numbers.items():
            proxies = sum(part.size for part in self.sets[key])
            yield number, DecisionCounts.of(self.counts, first[key] + self.votes[vote], proxies)


def _together(graph: WorkGraph, proxies: UnitProxies, queries: Array, numbers: list[int]) -> dict[int, DecisionCounts]:
    """Compute decisions together, one group of test rows and one comparison after the other."""
    tables = _decision_tables(graph, proxies, numbers)
    for batch in graph.query_groups():
        here = [(how, q) for (how, split), q in tables.items() if split in batch.splits]
        if best := [q for how, q in here if how == BEST]:
            _by_best_score(graph, queries, batch, best)
        if near := [(how, q) for how, q in here if how != BEST]:
            _by_neighbours(graph, queries, batch, near)
    return dict(result for q in tables.values() for result in q.results())


def _decision_tables(
    graph: WorkGraph, proxies: UnitProxies, numbers: list[int]
) -> dict[tuple[str, int], DecisionTable]:
    """Decisions by their comparison of queries with proxies, and by task split."""
    tables: dict[tuple[str, int], DecisionTable] = {}
    for i in numbers:
        d = graph.decisions[i]
        how, vote = _comparison(d)
        q = tables.setdefault((how, d.split), DecisionTable(d.split, {}, {}, {}))
        key = d.spec, d.norm_post
        if key not in q.sets:
            q.sets[key] = proxies.parts(d.spec, d.split, d.norm_post)
        q.votes.setdefault(vote, len(q.votes))
        q.numbers[key, vote] = i
    for q in tables.values():
        q.counts = Counts.of(len(q.sets) * len(q.votes), len(graph.splits[q.split].classes))
    return tables


def _comparison(decision: Decision) -> tuple[str, Vote]:
    """How a decision compares queries with proxies, and how the nearest of these vote."""
    aggregator = decision.aggregator
    if not isinstance(aggregator, Nearest):
        return BEST, Vote(1, True)
    unit = aggregator.metric == "euclidean" and isinstance(decision.norm_inf, L2)
    return aggregator.metric + " to unit queries" * unit, Vote(aggregator.m, aggregator.weighting == "uniform")


def _by_best_score(graph: WorkGraph, queries: Array, batch: QueryGroup, tables: list[DecisionTable]) -> None:
    """Compute one product for all proxies and the maxima of every set, then count for each task split."""
    stack, index = _stack(tables)
    best = span_maxima(queries[batch.rows], stack)
    if not np.isfinite(best).all():
        raise ParameterError("max: the scores overflow; scale the rows down or use norm_pre='l2'.")
    for q in tables:
        count_many(best, q.indices(index), graph.splits[q.split].truth_of(batch.rows), ROUNDING, q.counts)


def _by_neighbours(
    graph: WorkGraph, queries: Array, batch: QueryGroup, tables: list[tuple[str, DecisionTable]]
) -> None:
    """Compute one product for all proxies and metrics, for some test rows at a time; then count votes."""
    stack, index = _stack([q for _, q in tables])
    deepest = max(vote.m for _, q in tables for vote in q.votes)
    step = max(16, SCORES // len(stack.rows))
    for rows in (batch.rows[i : i + step] for i in range(0, len(batch.rows), step)):
        neighbours = Neighbours(queries[rows], stack, deepest)
        for how in dict.fromkeys(how for how, _ in tables):
            lists = DISTANCES[how](neighbours, queries[rows])
            for q in (q for other, q in tables if other == how):
                truth, votes = graph.splits[q.split].truth_of(rows), list(q.votes)
                count_votes(lists, neighbours.starts, q.indices(index), truth, votes, ROUNDING, q.counts)


def _stack(tables: Sequence[DecisionTable]) -> tuple[ProxyStack, dict[ClassProxies, int]]:
    """The blocks of some tables as one matrix, and the index of every part in it."""
    parts = list(dict.fromkeys(part for q in tables for row in q.sets.values() for part in row))
    blocks = {block: i for i, block in enumerate(dict.fromkeys(part.block for part in parts))}
    divided = {part.block for part in parts if part.unit}
    divisors = [b.divisors if b in divided else None for b in blocks]
    sets = [(blocks[part.block], part.size, part.unit) for part in parts]
    stack, indices = stacked([b.rows for b in blocks], divisors, sets)
    return stack, dict(zip(parts, indices.tolist()))


class PlainDecisions:
    """Decisions by a `Head` for each, from shared class states."""

    def __init__(self, graph: WorkGraph, proxies: UnitProxies, queries: Array) -> None:
        self.graph, self.proxies, self.queries = graph, proxies, queries

    def decide(self, number: int) -> DecisionCounts:
        """The result of one decision."""
        start = time.process_time()
        head, split = self.head(number), self.graph.splits[self.graph.split[number]]
        step, rounding = max(1, SCORES // len(split.classes)), rounding_of(head.aggregator)
        total = Counts.of(1, len(split.classes))
        for i in range(0, len(split.rows), step):
            scores = head.scores(self.queries[split.rows[i : i + step]])
            if not np.isfinite(scores).all():
                raise ParameterError(f"{head.method}: the scores overflow; scale the rows down or use norm_inf='l2'.")
            count_decisions(scores.T, split.truth[i : i + step], rounding, total)
        result = DecisionCounts.of(total, 0, len(head.proxies.labels))
        return result._replace(seconds=time.process_time() - start)

    def head(self, number: int) -> Head:
        """The head of one decision."""
        decision, method = self.graph.decisions[number], self.graph.methods[number]
        classes = self.graph.splits[decision.split].classes
        labels = tuple(self.graph.classes[c].label for c in classes)
        states = tuple(
            ClassState(self.proxies.states[c, decision.spec], self.proxies.row_statistics(method, c)) for c in classes
        )
        return Head(method, self.graph.specs[decision.spec].seed or 0, self.queries.dtype, labels, states)
