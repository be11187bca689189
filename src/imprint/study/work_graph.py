"""The distinct computations behind the experiments of a unit: classes, task splits, proxies and decisions."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from imprint import tasks
from imprint.aggregators._base import Aggregator
from imprint.core.arrays import factorize
from imprint.core.digest import class_entropy
from imprint.core.types import Array
from imprint.generators._base import Generator
from imprint.kernels.decisions import Counts
from imprint.normalisers._base import Normaliser
from imprint.study import sharing
from imprint.study.grid import Methods
from imprint.study.sharing import StateRequest

if TYPE_CHECKING:
    from imprint.study.plan import Unit


class ClassRows(NamedTuple):
    """A label and its training rows; tasks with the same rows under the same label share it."""

    label: Any
    rows: Array


class TaskSplit(NamedTuple):
    """The classes that a task compares, and its test rows."""

    classes: tuple[int, ...]  # indices in `WorkGraph.classes`, in the order of the labels
    rows: Array  # indices of the test rows, ascending
    truth: Array  # for each test row, the index of its true class in `classes`

    def truth_of(self, rows: Array) -> Array:
        """The indices of the true classes of some of its test rows."""
        return np.asarray(self.truth[np.searchsorted(self.rows, rows)])


class ProxySpec(NamedTuple):
    """How the proxies of a class are computed; the seed is None if the proxies do not depend on it."""

    norm_pre: Normaliser
    generator: Generator
    seed: int | None


class Decision(NamedTuple):
    """A prediction of test rows, computed once for all experiments that share it."""

    spec: int
    norm_post: Normaliser
    norm_inf: Normaliser
    aggregator: Aggregator
    split: int


class DecisionCounts(NamedTuple):
    """The result of one decision about all test rows of its task split."""

    right: Array  # (C,) correctly predicted test rows of each class
    claimed: Array  # (C,) test rows predicted as each class
    near: int  # test rows whose two best scores are equal up to rounding
    proxies: int
    seconds: float = 0.0

    @classmethod
    def of(cls, counts: Counts, index: int, proxies: int) -> "DecisionCounts":
        """One of the decisions that were counted together."""
        return cls(counts.right[index], counts.claimed[index], int(counts.near[index]), proxies)


class QueryGroup(NamedTuple):
    """Test rows that belong to the same task splits."""

    rows: Array
    splits: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class WorkGraph:
    """The computations of a unit. Classes, splits and specs are referred to by their indices in these lists."""

    classes: list[ClassRows]
    splits: list[TaskSplit]
    specs: list[ProxySpec]
    methods: Methods  # of the decisions
    spec: Array  # for each decision, the index of its spec
    split: Array  # for each decision, the index of its task split
    decided_by: Array  # for each experiment, the index of its decision

    @cached_property
    def decisions(self) -> list[Decision]:
        """All decisions."""
        parts = (self.methods.column(part) for part in ("norm_post", "norm_inf", "aggregator"))
        return list(map(Decision, self.spec.tolist(), *parts, self.split.tolist()))

    @cached_property
    def experiments(self) -> list[list[int]]:
        """For each decision the indices of its experiments in `unit.experiments`."""
        by_decision: list[list[int]] = [[] for _ in self.spec]
        for experiment, decision in enumerate(self.decided_by.tolist()):
            by_decision[decision].append(experiment)
        return by_decision

    def requests(self) -> dict[tuple[int, Normaliser], dict[int, StateRequest]]:
        """For each class and norm before generation, the states that its specs need, by spec."""
        pairs, _ = factorize(self.spec * len(self.splits) + self.split)  # far fewer than decisions
        used = zip(self.spec[pairs].tolist(), self.split[pairs].tolist())
        states: dict[tuple[int, Normaliser], dict[int, StateRequest]] = {}
        for spec, c in dict.fromkeys((spec, c) for spec, split in used for c in self.splits[split].classes):
            norm_pre, generator, seed = self.specs[spec]
            entropy = () if seed is None else class_entropy(seed, self.classes[c].label)
            states.setdefault((c, norm_pre), {})[spec] = StateRequest(generator, entropy)
        return states

    def computations(self) -> int:
        """The number of class states and decisions to compute."""
        states = sum(len(set(sharing.serving_requests(list(r.values())))) for r in self.requests().values())
        return states + len(self.spec)

    def query_groups(self) -> list[QueryGroup]:
        """The test rows, grouped by the task splits that they belong to."""
        last = max(int(split.rows[-1]) for split in self.splits)
        belongs = np.zeros((last + 1, len(self.splits)), dtype=bool)
        for i, split in enumerate(self.splits):
            belongs[split.rows, i] = True
        patterns, pattern = np.unique(np.packbits(belongs, axis=1), axis=0, return_inverse=True)
        groups = (np.flatnonzero(pattern.ravel() == p) for p in range(len(patterns)))
        return [QueryGroup(g, tuple(np.flatnonzero(belongs[g[0]]).tolist())) for g in groups if belongs[g[0]].any()]


def build(unit: "Unit", y: Array, y_test: Array) -> WorkGraph:
    """The work graph of a unit, given the labels of its data."""
    classes: list[ClassRows] = []
    splits: list[TaskSplit] = []
    task, m, s = unit.experiments.T
    split = _task_splits(unit, y, y_test, classes, splits)[task, s]
    methods = sharing.canonical(unit.methods)
    pre, generator, post, inf, aggregator = methods.codes[m].T
    sizes = [len(part) for part in methods.components]
    seeded = methods.map_part("generator", sharing.uses_seed)[m]
    seed = np.where(seeded, s, 0)
    first, spec = factorize(np.ravel_multi_index((pre, generator, seed), (*sizes[:2], len(unit.seeds))))
    seeds = [unit.seeds[i] if uses else None for i, uses in zip(seed[first].tolist(), seeded[first].tolist())]
    of_specs = methods.take(m[first])
    specs = list(map(ProxySpec, of_specs.column("norm_pre"), of_specs.column("generator"), seeds))
    shape = (len(specs), len(splits), *sizes[2:])
    distinct, decided_by = factorize(np.ravel_multi_index((spec, split, post, inf, aggregator), shape))
    return WorkGraph(classes, splits, specs, methods.take(m[distinct]), spec[distinct], split[distinct], decided_by)


def _task_splits(unit: "Unit", y: Array, y_test: Array, classes: list[ClassRows], splits: list[TaskSplit]) -> Array:
    """The index of the task split of every task and seed; new classes and splits are added to the lists.

    Tasks and seeds with the same rows under the same labels have one split.  # (tasks, seeds)
    """
    class_index: dict[tuple[Any, bytes], int] = {}
    split_index: dict[tuple[int, tuple[int, ...]], int] = {}
    indices = np.zeros((len(unit.tasks), len(unit.seeds)), dtype=np.int64)
    labels_of_data = np.unique(y).tolist()
    first, _ = factorize(unit.experiments[:, 0] * len(unit.seeds) + unit.experiments[:, 2])
    for t, _, s in unit.experiments[first].tolist():
        task = tasks.resolve(unit.tasks[t])
        rows, labels = task.select(y, unit.seeds[s], labels_of_data)
        names, codes = np.unique(labels, return_inverse=True)
        selected = [ClassRows(label, rows[codes == i]) for i, label in enumerate(names.tolist())]
        numbers = [class_index.setdefault((label, r.tobytes()), len(class_index)) for label, r in selected]
        classes += [c for c, number in zip(selected, numbers) if number >= len(classes)]
        indices[t, s] = split_index.setdefault((t, tuple(numbers)), len(split_index))
        if indices[t, s] == len(splits):
            test = task.queries().select(y_test, unit.seeds[s], labels_of_data)
            splits.append(TaskSplit(tuple(numbers), test.rows, np.searchsorted(names, test.labels)))
    return indices
