"""The distinct computations behind the experiments of a unit: classes, task splits,
proxies and decisions.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from imprint import tasks
from imprint.aggregators._base import Aggregator
from imprint.core.arrays import Array, factorize
from imprint.kernels.scores import Counts
from imprint.method import Method
from imprint.normalisers._base import Normaliser
from imprint.study import sharing
from imprint.study.grid import Methods
from imprint.study.sharing import ProxySpec

if TYPE_CHECKING:
    from imprint.study.plan import Unit


@dataclass(frozen=True, eq=False)
class ClassRows:
    """A label and its training rows.

    Tasks with the same rows under the same label share it.
    """

    label: object
    rows: Array


@dataclass(frozen=True, eq=False)
class TaskSplit:
    """The classes that a task compares, and its test rows."""

    classes: tuple[ClassRows, ...]  # in the order of the labels
    rows: Array  # indices of the test rows, ascending
    truth: Array  # for each test row, the index of its true class in `classes`

    def truth_of(self, rows: Array) -> Array:
        """The indices of the true classes of some of its test rows."""
        positions = np.searchsorted(self.rows, rows)
        return np.asarray(self.truth[positions])


class Decision(NamedTuple):
    """A prediction of the test rows of a task split, computed once for all experiments
    that share it.
    """

    number: int
    spec: ProxySpec
    split: TaskSplit
    norm_post: Normaliser
    norm_inf: Normaliser
    aggregator: Aggregator
    blocks: tuple[int, ...]  # the widths of the blocks of the embeddings
    is_shareable: bool  # whether it can be computed together with others

    @property
    def method(self) -> Method:
        """The method that predicts."""
        return Method(
            norm_pre=self.spec.norm_pre,
            generator=self.spec.generator,
            norm_post=self.norm_post,
            norm_inf=self.norm_inf,
            aggregator=self.aggregator,
            blocks=self.blocks,
        )


class CountedDecisions(NamedTuple):
    """Decisions about one task split, with counts of their predictions and the number
    of proxies of each.
    """

    decisions: list[Decision]
    counts: Counts
    proxies: list[int]


ClassKey: TypeAlias = tuple[ClassRows, Normaliser]
"""A class and its `norm_pre`: what a class is summarised from."""


@dataclass(frozen=True, eq=False)
class WorkGraph:
    """The computations of a unit."""

    splits: list[TaskSplit]
    specs: list[ProxySpec]
    decisions: list[Decision]
    decided_by: Array  # for each experiment, the number of its decision
    blocks: tuple[int, ...]  # the widths of the blocks of the embeddings

    def specs_by_class(self) -> dict[ClassKey, list[ProxySpec]]:
        """For each class and `norm_pre`, the specs of its proxies."""
        # Dictionaries instead of sets, because their order is reproducible.
        by_class: dict[ClassKey, dict[ProxySpec, None]] = defaultdict(dict)
        pairs = dict.fromkeys((d.spec, d.split) for d in self.decisions)
        for spec, split in pairs:
            for c in split.classes:
                by_class[c, spec.norm_pre][spec] = None
        return {key: list(specs) for key, specs in by_class.items()}

    def computations(self) -> int:
        """The number of class states and decisions to compute."""
        states = 0
        for specs in self.specs_by_class().values():
            containing = sharing.containing_specs(specs)
            states += len(set(containing.values()))
        return states + len(self.decisions)


def build(
    unit: "Unit",
    y: Array,
    y_test: Array,
    blocks: tuple[int, ...] = (),
) -> WorkGraph:
    """The work graph of a unit, given the labels of its data and the widths of their
    blocks.
    """
    task, method, seed = unit.experiments.T  # indices
    splits, split_numbers = _task_splits(unit, y, y_test)
    split = split_numbers[task, seed]
    methods = unit.methods
    # With blocks, `l2` changes the angles between rows.
    if not blocks:
        methods = sharing.canonical(methods)
    pre, generator, *later_parts = methods.codes[method].T

    # Proxies are computed once for each normaliser, generator and seed; those that do
    # not depend on the seed once for all seeds.
    is_seeded = methods.map_part("generator", sharing.uses_seed)[method]
    seed_of_spec = np.where(is_seeded, seed, 0)
    first, spec = factorize(pre, generator, seed_of_spec)
    seeds = []
    for s, uses_seed in zip(seed[first].tolist(), is_seeded[first].tolist()):
        seeds.append(unit.seeds[s] if uses_seed else None)
    specs = _proxy_specs(methods.take(method[first]), seeds)

    # A decision is computed once for each set of proxies, task split and later parts.
    first, decided_by = factorize(spec, split, *later_parts)
    decisions = _decisions(
        methods.take(method[first]),
        [specs[i] for i in spec[first].tolist()],
        [splits[i] for i in split[first].tolist()],
        blocks,
    )
    return WorkGraph(splits, specs, decisions, decided_by, blocks)


def _proxy_specs(
    methods: Methods,
    seeds: Sequence[int | None],
) -> list[ProxySpec]:
    """A spec for the first two parts of each method."""
    norms = methods.column("norm_pre")
    generators = methods.column("generator")
    numbers = range(len(seeds))
    return list(map(ProxySpec, numbers, norms, generators, seeds))


def _decisions(
    methods: Methods,
    specs: Sequence[ProxySpec],
    splits: Sequence[TaskSplit],
    blocks: tuple[int, ...],
) -> list[Decision]:
    """A decision for each method, with the proxies of a spec, about a task split."""
    is_shareable = sharing.is_shareable(methods) & (not blocks)
    return list(
        map(
            Decision,
            range(len(specs)),
            specs,
            splits,
            methods.column("norm_post"),
            methods.column("norm_inf"),
            methods.column("aggregator"),
            repeat(blocks),
            is_shareable.tolist(),
        )
    )


def _task_splits(
    unit: "Unit",
    y: Array,
    y_test: Array,
) -> tuple[list[TaskSplit], Array]:
    """The distinct task splits of a unit, and for every task and seed the number of its
    split.  # (tasks, seeds)

    Seeds that select the same rows share a split.
    """
    classes: dict[tuple[object, bytes], ClassRows] = {}
    splits: list[TaskSplit] = []
    number_of: dict[tuple[int, tuple[ClassRows, ...]], int] = {}
    numbers = np.zeros((len(unit.tasks), len(unit.seeds)), dtype=np.int64)
    labels_of_data = np.unique(y).tolist()
    first, _ = factorize(unit.experiments[:, 0], unit.experiments[:, 2])
    for t, _, s in unit.experiments[first].tolist():
        task = tasks.resolve(unit.tasks[t])
        rows, labels = task.select(y, unit.seeds[s], labels_of_data)
        names, codes = np.unique(labels, return_inverse=True)
        members = []
        for i, label in enumerate(names.tolist()):
            c = ClassRows(label, rows[codes == i])
            members.append(classes.setdefault((label, c.rows.tobytes()), c))
        shared = tuple(members)
        if (t, shared) not in number_of:
            test = task.queries().select(y_test, unit.seeds[s], labels_of_data)
            truth = np.searchsorted(names, test.labels)
            number_of[t, shared] = len(splits)
            splits.append(TaskSplit(shared, test.rows, truth))
        numbers[t, s] = number_of[t, shared]
    return splits, numbers
