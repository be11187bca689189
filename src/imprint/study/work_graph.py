"""What the experiments of a unit have in common: classes, task splits, specs of proxies, decisions."""

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
from imprint.normalisers._base import Normaliser
from imprint.study import sharing
from imprint.study.methods import Methods
from imprint.study.sharing import StateRequest

if TYPE_CHECKING:
    from imprint.study.plan import Unit


class ClassRows(NamedTuple):
    """A label and the training rows it has; tasks that give a class the same rows and label share it."""

    label: Any
    rows: Array


class TaskSplit(NamedTuple):
    """The classes that a task compares, and its test rows."""

    classes: tuple[int, ...]  # places in `WorkGraph.classes`, in the order of the labels
    rows: Array  # the numbers of the test rows, ascending
    truth: Array  # of every test row the place of its true class in `classes`

    def truth_of(self, rows: Array) -> Array:
        """The places of the true classes of some of its test rows."""
        return np.asarray(self.truth[np.searchsorted(self.rows, rows)])


class ProxySpec(NamedTuple):
    """What makes proxies of a class: a generator, the norm before it, and the seed; None where any gives the same."""

    norm_pre: Normaliser
    generator: Generator
    seed: int | None


class Decision(NamedTuple):
    """Something that is decided once, however many experiments it answers."""

    spec: int
    norm_post: Normaliser
    norm_inf: Normaliser
    aggregator: Aggregator
    split: int


class QueryGroup(NamedTuple):
    """Test rows that take part in the same task splits."""

    rows: Array
    splits: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class WorkGraph:
    """What there is to compute for a unit. Numbers are places in these lists."""

    classes: list[ClassRows]
    splits: list[TaskSplit]
    specs: list[ProxySpec]
    methods: Methods  # of each decision its method
    spec: Array  # of each decision the number of its spec
    split: Array  # of each decision the number of its task split
    decided_by: Array  # of each experiment the number of the decision that answers it

    @cached_property
    def decisions(self) -> list[Decision]:
        """All decisions, one by one."""
        parts = (self.methods.column(part) for part in ("norm_post", "norm_inf", "aggregator"))
        return list(map(Decision, self.spec.tolist(), *parts, self.split.tolist()))

    @cached_property
    def experiments(self) -> list[list[int]]:
        """For each decision the experiments that it answers, as places in `unit.experiments`."""
        found: list[list[int]] = [[] for _ in self.spec]
        for experiment, decision in enumerate(self.decided_by.tolist()):
            found[decision].append(experiment)
        return found

    def requests(self) -> dict[tuple[int, Normaliser], dict[int, StateRequest]]:
        """For each class and norm before generation, what every spec asks for."""
        pairs, _ = factorize(self.spec * len(self.splits) + self.split)  # far fewer than decisions
        together = zip(self.spec[pairs].tolist(), self.split[pairs].tolist())
        used = dict.fromkeys((spec, c) for spec, split in together for c in self.splits[split].classes)
        found: dict[tuple[int, Normaliser], dict[int, StateRequest]] = {}
        for m, c in used:
            norm_pre, generator, seed = self.specs[m]
            entropy = () if seed is None else class_entropy(seed, self.classes[c].label)
            found.setdefault((c, norm_pre), {})[m] = StateRequest(generator, entropy)
        return found

    def computations(self) -> int:
        """How many states of classes and how many decisions are computed."""
        states = sum(len(set(sharing.serving_requests(list(asked.values())))) for asked in self.requests().values())
        return states + len(self.spec)

    def query_groups(self) -> list[QueryGroup]:
        """All test rows, those together that take part in the same task splits."""
        last = max(int(split.rows[-1]) for split in self.splits)
        takes_part = np.zeros((last + 1, len(self.splits)), dtype=bool)
        for i, split in enumerate(self.splits):
            takes_part[split.rows, i] = True
        kinds, kind = np.unique(np.packbits(takes_part, axis=1), axis=0, return_inverse=True)
        found = []
        for k in range(len(kinds)):
            rows = np.flatnonzero(kind.ravel() == k)
            splits = np.flatnonzero(takes_part[rows[0]])
            if len(splits):
                found.append(QueryGroup(rows, tuple(splits.tolist())))
        return found


def build(unit: "Unit", y: Array, y_test: Array) -> WorkGraph:
    """The graph of a unit, given the labels of its data."""
    classes: list[ClassRows] = []
    splits: list[TaskSplit] = []
    task, m, s = unit.experiments.T
    split = _lineups(unit, y, y_test, classes, splits)[task, s]
    methods = sharing.canonical(unit.methods)
    pre, generator, post, inf, aggregator = methods.codes[m].T
    sizes = [len(own) for own in methods.components]
    seeded = methods.map_part("generator", sharing.uses_seed)[m]
    seed = np.where(seeded, s, 0)
    first, spec = factorize(np.ravel_multi_index((pre, generator, seed), (*sizes[:2], len(unit.seeds))))
    seeds = [unit.seeds[i] if drawn else None for i, drawn in zip(seed[first].tolist(), seeded[first].tolist())]
    making = methods.take(m[first])
    specs = list(map(ProxySpec, making.column("norm_pre"), making.column("generator"), seeds))
    shape = (len(specs), len(splits), *sizes[2:])
    one, decided_by = factorize(np.ravel_multi_index((spec, split, post, inf, aggregator), shape))
    return WorkGraph(classes, splits, specs, methods.take(m[one]), spec[one], split[one], decided_by)


def _lineups(unit: "Unit", y: Array, y_test: Array, classes: list[ClassRows], splits: list[TaskSplit]) -> Array:
    """The task split of every task and seed in use, added to the lists; equal ones are one.  # (tasks, seeds)"""
    known_classes: dict[tuple[Any, bytes], int] = {}
    known: dict[tuple[int, tuple[int, ...]], int] = {}
    places = np.zeros((len(unit.tasks), len(unit.seeds)), dtype=np.int64)
    labels_of_data = np.unique(y).tolist()
    first_seed: dict[int, int] = {}
    first, _ = factorize(unit.experiments[:, 0] * len(unit.seeds) + unit.experiments[:, 2])
    for t, _, s in unit.experiments[first].tolist():
        task = tasks.resolve(unit.tasks[t])
        if task.queries() == task and t in first_seed:  # it takes all rows, whatever the seed
            places[t, s] = places[t, first_seed[t]]
            continue
        rows, labels = task.select(y, unit.seeds[s], labels_of_data)
        names, codes = np.unique(labels, return_inverse=True)
        own = [ClassRows(label, rows[codes == i]) for i, label in enumerate(names.tolist())]
        numbers = [known_classes.setdefault((label, r.tobytes()), len(known_classes)) for label, r in own]
        classes += [c for c, number in zip(own, numbers) if number >= len(classes)]
        place = known.setdefault((t, tuple(numbers)), len(known))
        if place == len(splits):
            test = task.queries().select(y_test, unit.seeds[s], labels_of_data)
            splits.append(TaskSplit(tuple(numbers), test.rows, np.searchsorted(names, test.labels)))
        places[t, s], first_seed[t] = place, s
    return places
