"""Evaluates the experiments of a unit: each class is summarised once, each decision
computed once.

Decisions by `max` and `nearest` share one product of test rows and proxies.
`kernel_decisions` has those by `kernel`. Decisions that cannot be shared are computed
by a `Head` each, and so are those of a shared step that fails: an experiment fails
alone.
"""

import time
from collections import defaultdict
from collections.abc import (
    Callable,
    Generator,
    Hashable,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import suppress
from typing import NamedTuple, TypeAlias, TypeVar

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
from imprint.kernels.stacks import (
    Neighbours,
    ProxyStack,
    span_maxima,
    stacked,
)
from imprint.normalisers.l2 import L2
from imprint.study.blocks import open_data
from imprint.study.failures import COMPONENT_ERRORS, reason_of
from imprint.study.kernel_decisions import KernelDecisions
from imprint.study.plan import Unit
from imprint.study.proxies import ClassProxies, ProxyRows, UnitProxies
from imprint.study.sharing import (
    KERNEL_ROUNDING,
    ROUNDING,
    ProxySpec,
    min_proxies,
)
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
Key = TypeVar("Key", bound=Hashable)
TimedDecisions: TypeAlias = tuple[Array, CountedDecisions]
"""Counted decisions, and the processor time of each."""


class UnitResults(NamedTuple):
    """The results of a unit, in the order of `unit.experiments`."""

    columns: dict[str, Array]  # one row per experiment; zeros for those that failed
    # the reasons of failed experiments, by their index in the unit
    failures: dict[int, str]


@one_thread()
@without_collection()
def evaluate(unit: Unit) -> UnitResults:
    """The results of a unit, computed on one core."""
    reset_peak()
    data = open_data(unit.source, unit.backbone, unit.dataset)
    if data.fingerprint != unit.fingerprint:
        raise ImprintError(
            f"{unit}: the embeddings have changed since the study was planned."
        )
    graph = build(unit, data.y, data.y_test, data.blocks)
    proxies = UnitProxies(graph, np.asarray(data.X))
    # by decision
    results = {
        name: np.zeros(len(graph.decisions), dtype) for name, dtype in COLUMNS.items()
    }
    failures: dict[int, str] = {}  # by decision
    queries = np.asarray(data.X_test)
    for seconds, counted in _decide(graph, proxies, queries, failures):
        scores = _scores(counted.counts, counted.decisions[0].split)
        scores["proxies"] = counted.proxies
        scores["seconds_evaluation"] = seconds
        numbers = [decision.number for decision in counted.decisions]
        for name, values in scores.items():
            results[name][numbers] = values

    # The time of shared work is divided among the experiments that share it.
    experiments = np.bincount(graph.decided_by)  # of each decision
    spec = [decision.spec.number for decision in graph.decisions]
    experiments_of_spec = np.bincount(spec, experiments)
    results["seconds_generation"][:] = (proxies.seconds / experiments_of_spec)[spec]
    results["seconds_evaluation"] /= experiments
    results["peak_memory"][:] = peak_memory()
    columns = {name: values[graph.decided_by] for name, values in results.items()}
    reasons = {}
    for i, number in enumerate(graph.decided_by.tolist()):
        if number in failures:
            reasons[i] = failures[number]
    return UnitResults(columns, reasons)


def _scores(counts: Counts, split: TaskSplit) -> dict[str, Array | list[int] | int]:
    """Accuracy, F1 and counts of decisions about one task split."""
    test_rows = len(split.truth)
    # test rows of each class
    support = np.bincount(split.truth, minlength=len(split.classes))
    # F1 = 2 TP / (rows of the class + predictions of the class)
    total = support + counts.predicted
    f1 = 2 * counts.correct / np.maximum(total, 1)
    # As in scikit-learn, a class that is neither true nor predicted does not count.
    classes_that_occur = (total > 0).sum(axis=1)
    return {
        "accuracy": counts.correct.sum(axis=1) / test_rows,
        "macro_f1": f1.sum(axis=1) / classes_that_occur,
        "weighted_f1": (f1 * support).sum(axis=1) / test_rows,
        "near_ties": counts.near_ties,
        "test_rows": test_rows,
    }


def _decide(
    graph: WorkGraph,
    proxies: UnitProxies,
    queries: Array,
    failures: dict[int, str],
) -> Iterator[TimedDecisions]:
    """The decisions of a work graph, counted; the reasons of the others are added to
    `failures`, by number.

    Shareable decisions are computed together, the others by a `Head` for each.
    """
    decisions = []
    for decision in graph.decisions:
        reason = proxies.failure_of(decision)
        if reason is None:
            decisions.append(decision)
        else:
            failures[decision.number] = reason
    kernel = KernelDecisions(proxies, queries)
    ways = _by_computation(decisions, proxies, kernel, queries)

    def by_votes(group: list[Decision]) -> Iterator[CountedDecisions]:
        return _decide_by_votes(graph.splits, proxies, queries, group)

    alone = list(ways.by_head)
    alone += yield from _decide_together(kernel.decide, proxies, ways.by_kernel)
    alone += yield from _decide_together(by_votes, proxies, ways.by_votes)
    for decision in alone:
        try:
            yield from _timed(_decide_by_head(proxies, queries, decision), proxies)
        except COMPONENT_ERRORS as e:
            failures[decision.number] = reason_of(e)


def _decide_together(
    decide: Callable[[list[Decision]], Iterable[CountedDecisions]],
    proxies: UnitProxies,
    decisions: Sequence[Decision],
) -> Generator[TimedDecisions, None, list[Decision]]:
    """Decisions in groups that share a step. Returns those of steps that failed."""
    missing = {decision.number: decision for decision in decisions}
    # A group that cannot be formed ends the loop, and its members are missing.
    with suppress(*COMPONENT_ERRORS):
        for group in groups_in_memory(proxies, decisions):
            with suppress(*COMPONENT_ERRORS):
                for seconds, counted in _timed(decide(group), proxies):
                    for decision in counted.decisions:
                        del missing[decision.number]
                    yield seconds, counted
    return list(missing.values())


class Computations(NamedTuple):
    """Decisions by how they are computed."""

    by_head: list[Decision]
    by_kernel: list[Decision]
    by_votes: list[Decision]


def _by_computation(
    decisions: Iterable[Decision],
    proxies: UnitProxies,
    kernel: KernelDecisions,
    queries: Array,
) -> Computations:
    """How each decision is computed."""
    ways = Computations([], [], [])
    # Otherwise, the squared lengths of test rows overflow or underflow.
    can_share = lengths(queries) is not None
    for decision in decisions:
        is_alone = not (can_share and decision.is_shareable)
        if is_alone or _has_too_few(decision, proxies):
            ways.by_head.append(decision)
        elif type(decision.aggregator) is not Kernel:
            ways.by_votes.append(decision)
        elif kernel.can_decide(decision):
            ways.by_kernel.append(decision)
        else:
            ways.by_head.append(decision)
    return ways


def _has_too_few(decision: Decision, proxies: UnitProxies) -> bool:
    """Whether copies of rows gave fewer proxies than planned, which a `Head`
    refuses.
    """
    needed = min_proxies(decision.aggregator)
    # Each class has one proxy, which need not be counted.
    is_certain = needed <= len(decision.split.classes)
    return not is_certain and needed > proxies.count(decision)


def _timed(
    step: Iterable[CountedDecisions],
    proxies: UnitProxies,
) -> Iterator[TimedDecisions]:
    """The decisions of a step, each with its part of the processor time.

    The parts are proportional to the numbers of proxies.
    """
    start = time.process_time()
    counted = list(step)
    seconds = time.process_time() - start
    total = sum(sum(c.proxies) for c in counted)
    seconds_per_proxy = seconds / total
    for c in counted:
        yield seconds_per_proxy * np.array(c.proxies), c
    # The next step has other proxies.
    proxies.clear()


def groups_in_memory(
    proxies: UnitProxies,
    decisions: Iterable[Decision],
) -> Iterator[list[Decision]]:
    """Decisions in groups whose proxies fit into memory, by seed, because decisions of
    one seed share most proxies.
    """
    by_spec: dict[ProxySpec, list[Decision]] = defaultdict(list)
    for decision in decisions:
        by_spec[decision.spec].append(decision)
    group: list[Decision] = []
    blocks: dict[ProxyRows, int] = {}
    for spec in sorted(by_spec, key=_seed_first):
        group += by_spec[spec]
        sets = dict.fromkeys((d.split, d.norm_post) for d in by_spec[spec])
        for split, norm_post in sets:
            for part in proxies.parts(spec, split, norm_post):
                blocks[part.block] = part.block.rows.size
        if sum(blocks.values()) > MAX_PROXY_VALUES:
            yield group
            group = []
            blocks = {}
    if group:
        yield group


def _seed_first(spec: ProxySpec) -> tuple[int, int]:
    """Orders specs by seed, then by number."""
    return spec.seed or 0, spec.number


def _decide_by_head(
    proxies: UnitProxies,
    queries: Array,
    decision: Decision,
) -> Iterator[CountedDecisions]:
    """Compute one decision with a `Head`, which supports every method."""
    head = proxies.head(decision)
    split = decision.split
    step = max(1, MAX_SCORES // len(split.classes))
    rounding = KERNEL_ROUNDING if type(decision.aggregator) is Kernel else ROUNDING
    counts = Counts.of(1, len(split.classes))
    for start in range(0, len(split.rows), step):
        rows = split.rows[start : start + step]
        scores = head.scores(queries[rows])
        if not np.isfinite(scores).all():
            raise ParameterError(
                f"{head.method}: the scores overflow; scale the rows down or use"
                " norm_inf='l2'."
            )
        truth = split.truth[start : start + step]
        count_decisions(scores.T, truth, rounding, counts)
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
        self.comparison = comparison
        self.decisions = [decision for decision, _ in votes]
        self.split = self.decisions[0].split
        row = _numbered((d.spec, d.norm_post) for d in self.decisions)
        column = _numbered(vote for _, vote in votes)
        self.sets = []
        for spec, norm_post in row:
            self.sets.append(proxies.parts(spec, self.split, norm_post))
        self.votes = list(column)
        self.counts = Counts.of(len(row) * len(column), len(self.split.classes))
        # the row and the column of each decision
        self._cells = [(row[d.spec, d.norm_post], column[vote]) for d, vote in votes]

    def counted(self) -> CountedDecisions:
        """The decisions with their counts."""
        cells = [i * len(self.votes) + j for i, j in self._cells]
        counts = Counts(*(count[cells] for count in self.counts))
        size_of_set = list(map(_total_size, self.sets))
        sizes = [size_of_set[i] for i, _ in self._cells]
        return CountedDecisions(self.decisions, counts, sizes)


def _total_size(parts: Iterable[ClassProxies]) -> int:
    """The number of proxies of all classes."""
    return sum(part.size for part in parts)


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
    tables = []
    for (comparison, _), votes_of_split in votes.items():
        tables.append(DecisionTable(comparison, votes_of_split, proxies))
    for rows, splits_of_rows in _query_groups(splits):
        by_product = []
        by_distance = []
        for table in tables:
            if table.split not in splits_of_rows:
                continue
            if table.comparison == INNER_PRODUCT:
                by_product.append(table)
            else:
                by_distance.append(table)
        if by_product:
            _by_best_score(queries, rows, by_product)
        if by_distance:
            _by_neighbours(queries, rows, by_distance)
    for table in tables:
        yield table.counted()


def _comparison(decision: Decision) -> tuple[str, Vote]:
    """How a decision compares queries with proxies, and how the nearest proxies
    vote.
    """
    aggregator = decision.aggregator
    if not isinstance(aggregator, Nearest):
        # The best proxy decides alone.
        return INNER_PRODUCT, Vote(1, True)
    vote = Vote(aggregator.m, aggregator.weighting == "uniform")
    comparison = aggregator.metric
    # The cosine does not depend on the lengths of queries.
    if comparison == "euclidean" and isinstance(decision.norm_inf, L2):
        comparison = "euclidean to unit queries"
    return comparison, vote


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
            rows = np.flatnonzero(pattern.ravel() == i)
            numbers = np.flatnonzero(has_split).tolist()
            yield rows, [splits[number] for number in numbers]


def _by_best_score(
    queries: Array,
    rows: Array,
    tables: Sequence[DecisionTable],
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
        truth = table.split.truth_of(rows)
        count_many(best, indices, truth, ROUNDING, table.counts)


def _by_neighbours(
    queries: Array,
    rows: Array,
    tables: Sequence[DecisionTable],
) -> None:
    """Multiply test rows by all proxies once for all metrics, some rows at a time, then
    count votes.
    """
    stack, positions = _stack(tables)
    metrics = {table.comparison for table in tables}
    max_neighbours = 1
    for table in tables:
        max_neighbours = max(max_neighbours, *(vote.m for vote in table.votes))
    step = max(16, MAX_SCORES // len(stack.rows))
    for start in range(0, len(rows), step):
        batch = rows[start : start + step]
        Q = queries[batch]
        neighbours = Neighbours(Q, stack, max_neighbours)
        distances = {metric: DISTANCES[metric](neighbours, Q) for metric in metrics}
        for table, indices in zip(tables, positions):
            count_votes(
                distances[table.comparison],
                neighbours.starts,
                indices,
                table.split.truth_of(batch),
                table.votes,
                ROUNDING,
                table.counts,
            )


def _stack(tables: Sequence[DecisionTable]) -> tuple[ProxyStack, list[Array]]:
    """The proxies of some tables as one matrix, and for each table the positions of its
    sets in it.  # (sets, C)
    """
    every_part = []
    for table in tables:
        for parts_of_set in table.sets:
            every_part += parts_of_set
    parts = _numbered(every_part)
    blocks = _numbered(part.block for part in parts)
    # Blocks that `l2` divides; the stack has the lengths of their rows.
    normalised = {part.block for part in parts if part.is_unit}
    rows = []
    divisors = []
    for block in blocks:
        rows.append(block.rows)
        divisors.append(block.divisors if block in normalised else None)
    sets = [(blocks[part.block], part.size, part.is_unit) for part in parts]
    stack, position = stacked(rows, divisors, sets)
    positions = []
    for table in tables:
        numbers = []
        for parts_of_set in table.sets:
            numbers.append([parts[part] for part in parts_of_set])
        positions.append(position[numbers])
    return stack, positions
