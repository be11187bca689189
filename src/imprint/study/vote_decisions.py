"""Decisions by `max` and `nearest`, many together: one product of test rows and proxies serves all of them."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from imprint.aggregators.nearest import Nearest
from imprint.core.errors import ParameterError
from imprint.core.types import Array
from imprint.kernels.decisions import Counts, Vote, count_many, count_votes
from imprint.kernels.rows import lengths
from imprint.kernels.stacks import Neighbours, ProxyStack, span_maxima, stacked
from imprint.normalisers.l2 import L2
from imprint.study.proxies import UnitProxies
from imprint.study.sharing import ROUNDING
from imprint.study.work_graph import Counted, Decision, TaskSplit

Key = TypeVar("Key", bound=Hashable)
SCORES = 2**22  # in memory at a time
BEST = "best"  # by the largest inner product, as `max` does; the other comparisons are in `DISTANCES`
DISTANCES = {
    "cosine": lambda neighbours, Q: neighbours.cosine(),
    "euclidean": lambda neighbours, Q: neighbours.euclidean(None),
    "euclidean to unit queries": lambda neighbours, Q: neighbours.euclidean(lengths(Q)),
}


def _numbered(keys: Iterable[Key]) -> dict[Key, int]:
    """The distinct keys with their numbers, in order of appearance."""
    return {key: i for i, key in enumerate(dict.fromkeys(keys))}


class DecisionTable:
    """Decisions about one task split that compare queries with proxies in one way: sets of proxies x votes."""

    def __init__(self, comparison: str, votes: Sequence[tuple[Decision, Vote]], proxies: UnitProxies) -> None:
        self.comparison, self.decisions = comparison, [decision for decision, _ in votes]
        self.split = self.decisions[0].split
        sets, kinds = _numbered((d.spec, d.norm_post) for d in self.decisions), _numbered(vote for _, vote in votes)
        self.sets = [proxies.parts(spec, self.split, norm_post) for spec, norm_post in sets]
        self.votes = list(kinds)
        self.counts = Counts.of(len(sets) * len(kinds), len(self.split.classes))
        self._cells = [(sets[d.spec, d.norm_post], kinds[vote]) for d, vote in votes]

    def counted(self) -> Counted:
        """The decisions with their counts."""
        rows = [i * len(self.votes) + j for i, j in self._cells]
        sizes = [sum(part.size for part in parts) for parts in self.sets]
        return Counted(self.decisions, Counts(*(c[rows] for c in self.counts)), [sizes[i] for i, _ in self._cells])


def decide_by_votes(
    splits: Sequence[TaskSplit], proxies: UnitProxies, queries: Array, decisions: Sequence[Decision]
) -> Iterator[Counted]:
    """Compute decisions together, one group of test rows and one comparison after the other."""
    votes: dict[tuple[str, TaskSplit], list[tuple[Decision, Vote]]] = defaultdict(list)
    for decision in decisions:
        comparison, vote = _comparison(decision)
        votes[comparison, decision.split].append((decision, vote))
    tables = [DecisionTable(comparison, of_split, proxies) for (comparison, _), of_split in votes.items()]
    for rows, of_rows in _query_groups(splits):
        here = [table for table in tables if table.split in of_rows]
        if best := [table for table in here if table.comparison == BEST]:
            _by_best_score(queries, rows, best)
        if near := [table for table in here if table.comparison != BEST]:
            _by_neighbours(queries, rows, near)
    return (table.counted() for table in tables)


def _comparison(decision: Decision) -> tuple[str, Vote]:
    """How a decision compares queries with proxies, and how the nearest of these vote."""
    aggregator = decision.aggregator
    if not isinstance(aggregator, Nearest):
        return BEST, Vote(1, True)
    unit = aggregator.metric == "euclidean" and isinstance(decision.norm_inf, L2)
    return aggregator.metric + " to unit queries" * unit, Vote(aggregator.m, aggregator.weighting == "uniform")


def _query_groups(splits: Sequence[TaskSplit]) -> Iterator[tuple[Array, list[TaskSplit]]]:
    """The test rows, grouped by the task splits that they belong to."""
    last = max(int(split.rows[-1]) for split in splits)
    belongs = np.zeros((last + 1, len(splits)), dtype=bool)
    for i, split in enumerate(splits):
        belongs[split.rows, i] = True
    patterns, pattern = np.unique(np.packbits(belongs, axis=1), axis=0, return_inverse=True)
    for rows in (np.flatnonzero(pattern.ravel() == p) for p in range(len(patterns))):
        if belongs[rows[0]].any():
            yield rows, [splits[i] for i in np.flatnonzero(belongs[rows[0]]).tolist()]


def _by_best_score(queries: Array, rows: Array, tables: Sequence[DecisionTable]) -> None:
    """Compute one product for all proxies and the maxima of every set, then count for each task split."""
    stack, positions = _stack(tables)
    best = span_maxima(queries[rows], stack)
    if not np.isfinite(best).all():
        raise ParameterError("max: the scores overflow; scale the rows down or use norm_pre='l2'.")
    for table, of_sets in zip(tables, positions):
        count_many(best, of_sets, table.split.truth_of(rows), ROUNDING, table.counts)


def _by_neighbours(queries: Array, rows: Array, tables: Sequence[DecisionTable]) -> None:
    """Compute one product for all proxies and metrics, for some test rows at a time; then count votes."""
    stack, positions = _stack(tables)
    deepest = max(vote.m for table in tables for vote in table.votes)
    step = max(16, SCORES // len(stack.rows))
    for some in (rows[i : i + step] for i in range(0, len(rows), step)):
        neighbours = Neighbours(queries[some], stack, deepest)
        distances = {how: DISTANCES[how](neighbours, queries[some]) for how in {t.comparison for t in tables}}
        for table, of_sets in zip(tables, positions):
            truth, lists = table.split.truth_of(some), distances[table.comparison]
            count_votes(lists, neighbours.starts, of_sets, truth, table.votes, ROUNDING, table.counts)


def _stack(tables: Sequence[DecisionTable]) -> tuple[ProxyStack, list[Array]]:
    """The blocks of some tables as one matrix, and for each table the positions of its proxies.  # (sets, C)"""
    parts = _numbered(part for table in tables for parts in table.sets for part in parts)
    blocks = _numbered(part.block for part in parts)
    divided = {part.block for part in parts if part.is_unit}
    divisors = [block.divisors if block in divided else None for block in blocks]
    sets = [(blocks[part.block], part.size, part.is_unit) for part in parts]
    stack, position = stacked([block.rows for block in blocks], divisors, sets)
    return stack, [position[[[parts[part] for part in row] for row in table.sets]] for table in tables]
