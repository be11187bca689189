"""Evaluates the experiments of a unit: each class is summarised once, each decision
computed once.

Decisions by `max` and `nearest` share one product of test rows and proxies.
`kernel_decisions` has those by `kernel`. Decisions that cannot be shared are computed
by a `Head` each.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeVar

import numpy as np

from imprint.aggregators.kernel import Kernel
from imprint.aggregators.nearest import Nearest
from imprint.core.arrays import Array
from imprint.core.errors import ImprintError, ParameterError
from imprint.core.memory import peak_memory, reset_peak, without_collection
from imprint.kernels.cpu import one_thread
from imprint.kernels.rows import lengths
from imprint.kernels.scores import (
    Counts,
    Vote,
    count_decisions,
    count_many,
    count_votes,
)
from imprint.kernels.stacks import Neighbours, ProxyStack, span_maxima, stacked
from imprint.normalisers.l2 import L2
from imprint.study.kernel_decisions import KernelDecisions
from imprint.study.plan import Unit
from imprint.study.proxies import ProxyRows, UnitProxies
from imprint.study.sharing import KERNEL_ROUNDING, ROUNDING, ProxySpec
from imprint.study.work_graph import (
    CountedDecisions,
    Decision,
    TaskSplit,
    WorkGraph,
    build,
)

COLUMNS = {
    "accuracy": np.float64,
    "macro_f1": np.float64,
    "weighted_f1": np.float64,
    "near_ties": np.int32,
    "proxies": np.int32,
    "test_rows": np.int32,
    "seconds_generation": np.float32,
    "seconds_evaluation": np.float32,
    "peak_memory": np.int64,
}
"""The stored results of an experiment. Seconds are processor time, with an equal part
of shared work.
"""
# all others are reproducible to the bit
MEASUREMENTS = ("seconds_generation", "seconds_evaluation", "peak_memory")
MAX_SCORES = 2**22  # in memory at a time
MAX_PROXY_VALUES = 2**25  # proxies x width, in memory at a time
# how `max` compares queries with proxies; `DISTANCES` are those of `nearest`
INNER_PRODUCT = "inner product"
DISTANCES = {
    "cosine": lambda neighbours, Q: neighbours.cosine(),
    "euclidean": lambda neighbours, Q: neighbours.euclidean(None),
    "euclidean to unit queries": lambda neighbours, Q: neighbours.euclidean(lengths(Q)),
}
Key = TypeVar("Key")


@one_thread()
@without_collection()
def evaluate(unit: Unit) -> dict[str, Array]:
    """The columns of a unit, computed on one core, one row per experiment in the order
    of `unit.experiments`.
    """
    reset_peak()
    data = unit.source.open(unit.backbone, unit.dataset)
    if data.fingerprint != unit.fingerprint:
        raise ImprintError(
            f"{unit}: the embeddings have changed since the study was planned."
        )
    graph = build(unit, data.y, data.y_test)
    proxies = UnitProxies(graph, np.asarray(data.X))
    # by decision
    results = {
        name: np.zeros(len(graph.decisions), dtype) for name, dtype in COLUMNS.items()
    }
    for seconds, (decisions, counts, sizes) in _decide(
        graph, proxies, np.asarray(data.X_test)
    ):
        scores = _scores(counts, decisions[0].split) | {
            "proxies": sizes,
            "seconds_evaluation": seconds,
        }
        for name, values in scores.items():
            results[name][[d.number for d in decisions]] = values
    experiments, spec = (
        np.bincount(graph.decided_by),
        [d.spec.number for d in graph.decisions],
    )
    results["seconds_generation"][:] = (
        proxies.seconds / np.bincount(spec, experiments)
    )[spec]
    results["seconds_evaluation"] /= experiments
    results["peak_memory"][:] = peak_memory()
    return {name: values[graph.decided_by] for name, values in results.items()}


def _scores(counts: Counts, split: TaskSplit) -> dict[str, Array | int]:
    """Accuracy, F1 and counts of decisions about one task split."""
    # test rows of each class
    support = np.bincount(split.truth, minlength=len(split.classes))
    total = support + counts.predicted
    f1 = 2 * counts.correct / np.maximum(total, 1)
    return {
        "accuracy": counts.correct.sum(axis=1) / len(split.truth),
        "macro_f1": f1.sum(axis=1) / (total > 0).sum(axis=1),
        "weighted_f1": (f1 * support).sum(axis=1) / len(split.truth),
        "near_ties": counts.near_ties,
        "test_rows": len(split.truth),
    }


def _decide(
    graph: WorkGraph, proxies: UnitProxies, queries: Array
) -> Iterator[tuple[Array, CountedDecisions]]:
    """The decisions of a work graph, counted, with the processor time of each.

    Shareable decisions are computed together, the others by a `Head` for each.
    """
    kernel = KernelDecisions(proxies, queries)
    # else their squared lengths overflow or underflow
    can_share = lengths(queries) is not None
    by_head, by_kernel, by_votes = list[Decision](), list[Decision](), list[Decision]()
    for decision in graph.decisions:
        if not (can_share and decision.is_shareable):
            by_head.append(decision)
        elif type(decision.aggregator) is not Kernel:
            by_votes.append(decision)
        else:
            (by_kernel if kernel.can_decide(decision) else by_head).append(decision)
    steps = chain(
        (_decide_by_head(proxies, queries, decision) for decision in by_head),
        (kernel.decide(group) for group in groups_in_memory(proxies, by_kernel)),
        (
            _decide_by_votes(graph.splits, proxies, queries, group)
            for group in groups_in_memory(proxies, by_votes)
        ),
    )
    for step in steps:
        start = time.process_time()
        counted = list(step)
        seconds_per_proxy = (time.process_time() - start) / sum(
            sum(c.proxies) for c in counted
        )
        yield from ((seconds_per_proxy * np.array(c.proxies), c) for c in counted)
        proxies.normalised.clear()


def groups_in_memory(
    proxies: UnitProxies, decisions: Iterable[Decision]
) -> Iterator[list[Decision]]:
    """Decisions in groups whose proxies fit into memory, by seed, because decisions of
    one seed share most proxies.
    """
    by_spec: dict[ProxySpec, list[Decision]] = defaultdict(list)
    for decision in decisions:
        by_spec[decision.spec].append(decision)
    group: list[Decision] = []
    blocks: dict[ProxyRows, int] = {}
    for spec in sorted(by_spec, key=lambda spec: (spec.seed or 0, spec.number)):
        group += by_spec[spec]
        for split, norm_post in dict.fromkeys(
            (d.split, d.norm_post) for d in by_spec[spec]
        ):
            blocks.update(
                (part.block, part.block.rows.size)
                for part in proxies.parts(spec, split, norm_post)
            )
        if sum(blocks.values()) > MAX_PROXY_VALUES:
            yield group
            group, blocks = [], {}
    if group:
        yield group


def _decide_by_head(
    proxies: UnitProxies, queries: Array, decision: Decision
) -> Iterator[CountedDecisions]:
    """Compute one decision with a `Head`, which supports every method."""
    head, split = proxies.head(decision), decision.split
    step = max(1, MAX_SCORES // len(split.classes))
    rounding = KERNEL_ROUNDING if type(decision.aggregator) is Kernel else ROUNDING
    counts = Counts.of(1, len(split.classes))
    for i in range(0, len(split.rows), step):
        scores = head.scores(queries[split.rows[i : i + step]])
        if not np.isfinite(scores).all():
            raise ParameterError(
                f"{head.method}: the scores overflow; scale the rows down or use"
                " norm_inf='l2'."
            )
        count_decisions(scores.T, split.truth[i : i + step], rounding, counts)
    yield CountedDecisions([decision], counts, [len(head.proxies.labels)])


def _numbered(keys: Iterable[Key]) -> dict[Key, int]:
    """The distinct keys with their numbers, in order of appearance."""
    return {key: i for i, key in enumerate(dict.fromkeys(keys))}


class DecisionTable:
    """Decisions about one task split that compare queries with proxies in one way: sets
    of proxies x votes.
    """

    def __init__(
        self,
        comparison: str,
        votes: Sequence[tuple[Decision, Vote]],
        proxies: UnitProxies,
    ) -> None:
        self.comparison, self.decisions = (
            comparison,
            [decision for decision, _ in votes],
        )
        self.split = self.decisions[0].split
        row = _numbered((d.spec, d.norm_post) for d in self.decisions)
        column = _numbered(vote for _, vote in votes)
        self.sets = [
            proxies.parts(spec, self.split, norm_post) for spec, norm_post in row
        ]
        self.votes = list(column)
        self.counts = Counts.of(len(row) * len(column), len(self.split.classes))
        self._cells = [(row[d.spec, d.norm_post], column[vote]) for d, vote in votes]

    def counted(self) -> CountedDecisions:
        """The decisions with their counts."""
        cells = [i * len(self.votes) + j for i, j in self._cells]
        sizes = [sum(part.size for part in parts) for parts in self.sets]
        counts = Counts(*(count[cells] for count in self.counts))
        return CountedDecisions(
            self.decisions, counts, [sizes[i] for i, _ in self._cells]
        )


def _decide_by_votes(
    splits: Sequence[TaskSplit],
    proxies: UnitProxies,
    queries: Array,
    decisions: Sequence[Decision],
) -> Iterator[CountedDecisions]:
    """Compute decisions together, one group of test rows and one comparison after the
    other.
    """
    votes: dict[tuple[str, TaskSplit], list[tuple[Decision, Vote]]] = defaultdict(list)
    for decision in decisions:
        comparison, vote = _comparison(decision)
        votes[comparison, decision.split].append((decision, vote))
    tables = [
        DecisionTable(comparison, votes_of_split, proxies)
        for (comparison, _), votes_of_split in votes.items()
    ]
    for rows, splits_of_rows in _query_groups(splits):
        matching = [table for table in tables if table.split in splits_of_rows]
        if by_product := [
            table for table in matching if table.comparison == INNER_PRODUCT
        ]:
            _by_best_score(queries, rows, by_product)
        if by_distance := [
            table for table in matching if table.comparison != INNER_PRODUCT
        ]:
            _by_neighbours(queries, rows, by_distance)
    yield from (table.counted() for table in tables)


def _comparison(decision: Decision) -> tuple[str, Vote]:
    """How a decision compares queries with proxies, and how the nearest proxies
    vote.
    """
    aggregator = decision.aggregator
    if not isinstance(aggregator, Nearest):
        return INNER_PRODUCT, Vote(1, True)
    unit_queries = aggregator.metric == "euclidean" and isinstance(
        decision.norm_inf, L2
    )
    return aggregator.metric + " to unit queries" * unit_queries, Vote(
        aggregator.m, aggregator.weighting == "uniform"
    )


def _query_groups(
    splits: Sequence[TaskSplit],
) -> Iterator[tuple[Array, list[TaskSplit]]]:
    """The test rows, grouped by the task splits that they belong to."""
    last = max(int(split.rows[-1]) for split in splits)
    belongs = np.zeros((last + 1, len(splits)), dtype=bool)
    for i, split in enumerate(splits):
        belongs[split.rows, i] = True
    patterns, pattern = np.unique(belongs, axis=0, return_inverse=True)
    for i, has_split in enumerate(patterns):
        if has_split.any():
            yield (
                np.flatnonzero(pattern.ravel() == i),
                [splits[s] for s in np.flatnonzero(has_split).tolist()],
            )


def _by_best_score(
    queries: Array, rows: Array, tables: Sequence[DecisionTable]
) -> None:
    """Multiply test rows by all proxies once, take the maximum over each set, then
    count for each task split.
    """
    stack, positions = _stack(tables)
    best = span_maxima(queries[rows], stack)
    if not np.isfinite(best).all():
        raise ParameterError(
            "max: the scores overflow; scale the rows down or use norm_pre='l2'."
        )
    for table, indices in zip(tables, positions):
        count_many(best, indices, table.split.truth_of(rows), ROUNDING, table.counts)


def _by_neighbours(
    queries: Array, rows: Array, tables: Sequence[DecisionTable]
) -> None:
    """Multiply test rows by all proxies once for all metrics, some rows at a time, then
    count votes.
    """
    stack, positions = _stack(tables)
    max_neighbours = max(vote.m for table in tables for vote in table.votes)
    step = max(16, MAX_SCORES // len(stack.rows))
    for batch in (rows[i : i + step] for i in range(0, len(rows), step)):
        neighbours = Neighbours(queries[batch], stack, max_neighbours)
        metrics = {table.comparison for table in tables}
        distances = {
            metric: DISTANCES[metric](neighbours, queries[batch]) for metric in metrics
        }
        for table, indices in zip(tables, positions):
            truth, nearest = table.split.truth_of(batch), distances[table.comparison]
            count_votes(
                nearest,
                neighbours.starts,
                indices,
                truth,
                table.votes,
                ROUNDING,
                table.counts,
            )


def _stack(tables: Sequence[DecisionTable]) -> tuple[ProxyStack, list[Array]]:
    """The proxies of some tables as one matrix, and for each table the positions of its
    sets in it.  # (sets, C)
    """
    parts = _numbered(
        part for table in tables for parts in table.sets for part in parts
    )
    blocks = _numbered(part.block for part in parts)
    normalised = {part.block for part in parts if part.is_unit}
    divisors = [block.divisors if block in normalised else None for block in blocks]
    sets = [(blocks[part.block], part.size, part.is_unit) for part in parts]
    stack, position = stacked([block.rows for block in blocks], divisors, sets)
    return stack, [
        position[[[parts[part] for part in row] for row in table.sets]]
        for table in tables
    ]
