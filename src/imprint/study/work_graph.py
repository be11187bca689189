"""The distinct computations behind the experiments of a unit: classes, task splits, proxies and decisions."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from imprint import tasks
from imprint.core.arrays import factorize
from imprint.core.types import Array
from imprint.kernels.decisions import Counts
from imprint.method import Method
from imprint.normalisers._base import Normaliser
from imprint.study import sharing
from imprint.study.sharing import ProxySpec

if TYPE_CHECKING:
    from imprint.study.plan import Unit

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, eq=False)
class ClassRows:
    """A label and its training rows; tasks with the same rows under the same label share it."""

    label: Any
    rows: Array


@dataclass(frozen=True, eq=False)
class TaskSplit:
    """The classes that a task compares, and its test rows."""

    classes: tuple[ClassRows, ...]  # in the order of the labels
    rows: Array  # indices of the test rows, ascending
    truth: Array  # for each test row, the index of its true class in `classes`

    def truth_of(self, rows: Array) -> Array:
        """The indices of the true classes of some of its test rows."""
        return np.asarray(self.truth[np.searchsorted(self.rows, rows)])


class Decision(NamedTuple):
    """A prediction of the test rows of a task split, computed once for all experiments that share it."""

    number: int
    spec: ProxySpec
    split: TaskSplit
    method: Method


class Counted(NamedTuple):
    """Decisions about one task split, with the counts of their predictions and the numbers of their proxies."""

    decisions: list[Decision]
    counts: Counts
    proxies: list[int]


@dataclass(frozen=True, eq=False)
class WorkGraph:
    """The computations of a unit."""

    splits: list[TaskSplit]
    specs: list[ProxySpec]
    decisions: list[Decision]
    decided_by: Array  # for each experiment, the number of its decision

    def specs_by_class(self) -> dict[tuple[ClassRows, Normaliser], list[ProxySpec]]:
        """For each class and norm before generation, the specs of its proxies."""
        by_class: dict[tuple[ClassRows, Normaliser], dict[ProxySpec, None]] = defaultdict(dict)
        for spec, split in dict.fromkeys((d.spec, d.split) for d in self.decisions):
            for c in split.classes:
                by_class[c, spec.norm_pre][spec] = None
        return {key: list(specs) for key, specs in by_class.items()}

    def computations(self) -> int:
        """The number of class states and decisions to compute."""
        serving = (sharing.serving_specs(specs).values() for specs in self.specs_by_class().values())
        return sum(len(set(specs)) for specs in serving) + len(self.decisions)


def numbered(keys: Iterable[Key]) -> dict[Key, int]:
    """The distinct keys with their numbers, in order of appearance."""
    return {key: i for i, key in enumerate(dict.fromkeys(keys))}


def numbers(keys: Sequence[Hashable]) -> Array:
    """The number of every key; equal keys have the same.  # (keys,)"""
    number = numbered(keys)
    return np.array([number[key] for key in keys], dtype=np.int32)


def build(unit: "Unit", y: Array, y_test: Array) -> WorkGraph:
    """The work graph of a unit, given the labels of its data."""
    task, m, s = unit.experiments.T
    splits, split_numbers = _task_splits(unit, y, y_test)
    split = split_numbers[task, s]
    methods = [sharing.canonical(method) for method in unit.methods]
    seeded = np.array([sharing.uses_seed(method.generator) for method in methods])[m]
    first, spec = factorize(numbers([(c.norm_pre, c.generator) for c in methods])[m], np.where(seeded, s, 0))
    specs = [
        ProxySpec(i, methods[m[e]].norm_pre, methods[m[e]].generator, unit.seeds[s[e]] if seeded[e] else None)
        for i, e in enumerate(first.tolist())
    ]
    first, decided_by = factorize(spec, split, numbers(methods)[m])
    decisions = [Decision(i, specs[spec[e]], splits[split[e]], methods[m[e]]) for i, e in enumerate(first.tolist())]
    return WorkGraph(splits, specs, decisions, decided_by)


def _task_splits(unit: "Unit", y: Array, y_test: Array) -> tuple[list[TaskSplit], Array]:
    """The task splits of a unit, and the number of that of every task and seed; seeds with the same rows share one.

    # (tasks, seeds)
    """
    classes: dict[tuple[Any, bytes], ClassRows] = {}
    splits, known = list[TaskSplit](), dict[tuple[int, tuple[ClassRows, ...]], int]()
    numbers = np.zeros((len(unit.tasks), len(unit.seeds)), dtype=np.int64)
    labels_of_data = np.unique(y).tolist()
    first, _ = factorize(unit.experiments[:, 0], unit.experiments[:, 2])
    for t, _, s in unit.experiments[first].tolist():
        task = tasks.resolve(unit.tasks[t])
        rows, labels = task.select(y, unit.seeds[s], labels_of_data)
        names, codes = np.unique(labels, return_inverse=True)
        selected = [ClassRows(label, rows[codes == i]) for i, label in enumerate(names.tolist())]
        compared = tuple(classes.setdefault((c.label, c.rows.tobytes()), c) for c in selected)
        if (t, compared) not in known:
            test = task.queries().select(y_test, unit.seeds[s], labels_of_data)
            known[t, compared] = len(splits)
            splits.append(TaskSplit(compared, test.rows, np.searchsorted(names, test.labels)))
        numbers[t, s] = known[t, compared]
    return splits, numbers
