"""All experiments of a unit: each class summarised once, each decision computed once."""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from imprint.aggregators.kernel import Kernel
from imprint.core.errors import ImprintError, ParameterError
from imprint.core.memory import peak_memory, reset_peak, without_collection
from imprint.core.types import Array
from imprint.kernels.decisions import Counts, count_decisions
from imprint.kernels.rows import lengths
from imprint.study.kernel_decisions import KernelDecisions
from imprint.study.plan import Unit
from imprint.study.proxies import ProxyRows, UnitProxies
from imprint.study.sharing import KERNEL_ROUNDING, ROUNDING, ProxySpec
from imprint.study.vote_decisions import decide_by_votes
from imprint.study.work_graph import Counted, Decision, TaskSplit, WorkGraph, build

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
"""The stored results of an experiment. Seconds are processor time, with an equal part of shared work."""
MEASUREMENTS = ("seconds_generation", "seconds_evaluation", "peak_memory")  # all others are reproducible to the bit
SCORES = 2**22  # in memory at a time
PROXY_NUMBERS = 2**25  # in memory at a time


@without_collection()
def evaluate(unit: Unit) -> dict[str, Array]:
    """The columns of a unit, one row per experiment in the order of `unit.experiments`."""
    reset_peak()
    data = unit.source.open(unit.backbone, unit.dataset)
    if data.fingerprint != unit.fingerprint:
        raise ImprintError(f"{unit}: the embeddings have changed since the study was planned.")
    graph = build(unit, data.y, data.y_test)
    proxies = UnitProxies(graph, np.asarray(data.X))
    results = {name: np.zeros(len(graph.decisions), dtype) for name, dtype in COLUMNS.items()}  # of the decisions
    for seconds, (decisions, counts, sizes) in _decide(graph, proxies, np.asarray(data.X_test)):
        scores = _scores(counts, decisions[0].split) | {"proxies": sizes, "seconds_evaluation": seconds}
        for name, values in scores.items():
            results[name][[d.number for d in decisions]] = values
    experiments, spec = np.bincount(graph.decided_by), [d.spec.number for d in graph.decisions]
    results["seconds_generation"][:] = (proxies.seconds / np.bincount(spec, experiments))[spec]
    results["seconds_evaluation"] /= experiments
    results["peak_memory"][:] = peak_memory()
    return {name: values[graph.decided_by] for name, values in results.items()}


def _scores(counts: Counts, split: TaskSplit) -> dict[str, Array | int]:
    """Accuracy, F1 and counts of decisions about one task split."""
    true = np.bincount(split.truth, minlength=len(split.classes))
    seen = true + counts.claimed
    f1 = 2 * counts.right / np.maximum(seen, 1)
    return {
        "accuracy": counts.right.sum(axis=1) / len(split.truth),
        "macro_f1": f1.sum(axis=1) / (seen > 0).sum(axis=1),
        "weighted_f1": (f1 * true).sum(axis=1) / len(split.truth),
        "near_ties": counts.near,
        "test_rows": len(split.truth),
    }


def _decide(graph: WorkGraph, proxies: UnitProxies, queries: Array) -> Iterator[tuple[Array, Counted]]:
    """The decisions of a work graph, counted, with the processor time of each.

    Shareable decisions are computed together, the others by a `Head` for each.
    """
    kernel, extreme = KernelDecisions(proxies, queries), lengths(queries) is None
    plain, by_kernel, by_votes = list[Decision](), list[Decision](), list[Decision]()
    for decision in graph.decisions:
        if extreme or not decision.is_shareable:
            plain.append(decision)
        elif type(decision.aggregator) is not Kernel:
            by_votes.append(decision)
        else:
            (by_kernel if kernel.can_decide(decision) else plain).append(decision)
    steps = chain(
        (_decide_plainly(proxies, queries, decision) for decision in plain),
        (kernel.decide(group) for group in groups_in_memory(proxies, by_kernel)),
        (decide_by_votes(graph.splits, proxies, queries, group) for group in groups_in_memory(proxies, by_votes)),
    )
    for step in steps:
        start = time.process_time()
        counted = list(step)
        each = (time.process_time() - start) / sum(sum(c.proxies) for c in counted)
        yield from ((each * np.array(c.proxies), c) for c in counted)
        proxies.forget_finished()


def groups_in_memory(proxies: UnitProxies, decisions: Iterable[Decision]) -> Iterator[list[Decision]]:
    """Decisions in groups whose proxies fit into memory, ordered by seed because those of one seed share most."""
    by_spec: dict[ProxySpec, list[Decision]] = defaultdict(list)
    for decision in decisions:
        by_spec[decision.spec].append(decision)
    group: list[Decision] = []
    blocks: dict[ProxyRows, int] = {}
    for spec in sorted(by_spec, key=lambda spec: (spec.seed or 0, spec.number)):
        group += by_spec[spec]
        for split, norm_post in dict.fromkeys((d.split, d.norm_post) for d in by_spec[spec]):
            blocks.update((part.block, part.block.rows.size) for part in proxies.parts(spec, split, norm_post))
        if sum(blocks.values()) > PROXY_NUMBERS:
            yield group
            group, blocks = [], {}
    if group:
        yield group


def _decide_plainly(proxies: UnitProxies, queries: Array, decision: Decision) -> Iterator[Counted]:
    """One decision by a `Head`."""
    head, split = proxies.head(decision), decision.split
    step = max(1, SCORES // len(split.classes))
    rounding = KERNEL_ROUNDING if type(decision.aggregator) is Kernel else ROUNDING
    counts = Counts.of(1, len(split.classes))
    for i in range(0, len(split.rows), step):
        scores = head.scores(queries[split.rows[i : i + step]])
        if not np.isfinite(scores).all():
            raise ParameterError(f"{head.method}: the scores overflow; scale the rows down or use norm_inf='l2'.")
        count_decisions(scores.T, split.truth[i : i + step], rounding, counts)
    yield Counted([decision], counts, [len(head.proxies.labels)])
