"""What the experiments of a unit have in common: classes, line-ups, makers of proxies, decisions."""

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
from imprint.study.sharing import Request

if TYPE_CHECKING:
    from imprint.study.plan import Unit


class ClassRows(NamedTuple):
    """A label and the training rows it has; tasks that give a class the same rows and label share it."""

    label: Any
    rows: Array


class Lineup(NamedTuple):
    """The classes that a task compares, and its test rows."""

    classes: tuple[int, ...]  # places in `Tree.classes`, in the order of the labels
    rows: Array  # the numbers of the test rows, ascending
    truth: Array  # of every test row the place of its true class in `classes`

    def truth_of(self, rows: Array) -> Array:
        """The places of the true classes of some of its test rows."""
        return np.asarray(self.truth[np.searchsorted(self.rows, rows)])


class Maker(NamedTuple):
    """What makes proxies of a class: a generator, the norm before it, and the seed; None where any gives the same."""

    norm_pre: Normaliser
    generator: Generator
    seed: int | None


class Decision(NamedTuple):
    """Something that is decided once, however many experiments it answers."""

    maker: int
    norm_post: Normaliser
    norm_inf: Normaliser
    aggregator: Aggregator
    lineup: int


class Batch(NamedTuple):
    """Test rows that take part in the same line-ups."""

    rows: Array
    lineups: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Tree:
    """What there is to compute for a unit. Numbers are places in these lists."""

    classes: list[ClassRows]
    lineups: list[Lineup]
    makers: list[Maker]
    methods: Methods  # of each decision its method
    maker: Array  # of each decision the number of its maker
    lineup: Array  # of each decision the number of its line-up
    decided_by: Array  # of each experiment the number of the decision that answers it

    @cached_property
    def decisions(self) -> list[Decision]:
        """All decisions, one by one."""
        parts = (self.methods.column(part) for part in ("norm_post", "norm_inf", "aggregator"))
        return list(map(Decision, self.maker.tolist(), *parts, self.lineup.tolist()))

    @cached_property
    def experiments(self) -> list[list[int]]:
        """For each decision the experiments that it answers, as places in `unit.experiments`."""
        found: list[list[int]] = [[] for _ in self.maker]
        for experiment, decision in enumerate(self.decided_by.tolist()):
            found[decision].append(experiment)
        return found

    def requests(self) -> dict[tuple[int, Normaliser], dict[int, Request]]:
        """For each class and norm before generation, what every maker asks for."""
        pairs, _ = factorize(self.maker * len(self.lineups) + self.lineup)  # far fewer than decisions
        together = zip(self.maker[pairs].tolist(), self.lineup[pairs].tolist())
        used = dict.fromkeys((maker, c) for maker, lineup in together for c in self.lineups[lineup].classes)
        found: dict[tuple[int, Normaliser], dict[int, Request]] = {}
        for m, c in used:
            norm_pre, generator, seed = self.makers[m]
            entropy = () if seed is None else class_entropy(seed, self.classes[c].label)
            found.setdefault((c, norm_pre), {})[m] = Request(generator, entropy)
        return found

    def computations(self) -> int:
        """How many states of classes and how many decisions are computed."""
        states = sum(len(set(sharing.leaders(list(asked.values())))) for asked in self.requests().values())
        return states + len(self.maker)

    def batches(self) -> list[Batch]:
        """All test rows, those together that take part in the same line-ups."""
        last = max(int(lineup.rows[-1]) for lineup in self.lineups)
        takes_part = np.zeros((last + 1, len(self.lineups)), dtype=bool)
        for i, lineup in enumerate(self.lineups):
            takes_part[lineup.rows, i] = True
        kinds, kind = np.unique(np.packbits(takes_part, axis=1), axis=0, return_inverse=True)
        found = []
        for k in range(len(kinds)):
            rows = np.flatnonzero(kind.ravel() == k)
            lineups = np.flatnonzero(takes_part[rows[0]])
            if len(lineups):
                found.append(Batch(rows, tuple(lineups.tolist())))
        return found


def grow(unit: "Unit", y: Array, y_test: Array) -> Tree:
    """The tree of a unit, given the labels of its data."""
    classes: list[ClassRows] = []
    lineups: list[Lineup] = []
    task, m, s = unit.experiments.T
    lineup = _lineups(unit, y, y_test, classes, lineups)[task, s]
    methods = sharing.simplest(unit.methods)
    pre, generator, post, inf, aggregator = methods.places[m].T
    sizes = [len(own) for own in methods.components]
    seeded = methods.each("generator", sharing.uses_seed)[m]
    seed = np.where(seeded, s, 0)
    first, maker = factorize(np.ravel_multi_index((pre, generator, seed), (*sizes[:2], len(unit.seeds))))
    seeds = [unit.seeds[i] if drawn else None for i, drawn in zip(seed[first].tolist(), seeded[first].tolist())]
    making = methods.take(m[first])
    makers = list(map(Maker, making.column("norm_pre"), making.column("generator"), seeds))
    shape = (len(makers), len(lineups), *sizes[2:])
    one, decided_by = factorize(np.ravel_multi_index((maker, lineup, post, inf, aggregator), shape))
    return Tree(classes, lineups, makers, methods.take(m[one]), maker[one], lineup[one], decided_by)


def _lineups(unit: "Unit", y: Array, y_test: Array, classes: list[ClassRows], lineups: list[Lineup]) -> Array:
    """The line-up of every task and seed in use, added to the lists; equal ones are one.  # (tasks, seeds)"""
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
        if place == len(lineups):
            test = task.queries().select(y_test, unit.seeds[s], labels_of_data)
            lineups.append(Lineup(tuple(numbers), test.rows, np.searchsorted(names, test.labels)))
        places[t, s], first_seed[t] = place, s
    return places
