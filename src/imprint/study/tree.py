"""What the experiments of a unit have in common: classes, line-ups, makers of proxies, decisions."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from imprint import tasks
from imprint.aggregators._base import Aggregator
from imprint.core.digest import class_entropy
from imprint.core.types import Array
from imprint.generators._base import Generator
from imprint.method import PARTS, Method
from imprint.normalisers._base import Normaliser
from imprint.study import sharing
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


class Tree:
    """What there is to compute for a unit. Numbers are places in these lists."""

    def __init__(self) -> None:
        self.classes: list[ClassRows] = []
        self.lineups: list[Lineup] = []
        self.makers: list[Maker] = []
        self.decisions: list[Decision] = []
        self.experiments: list[list[int]] = []
        """For each decision the experiments that it answers, as places in `unit.experiments`."""

    def requests(self) -> dict[tuple[int, Normaliser], dict[int, Request]]:
        """For each class and norm before generation, what every maker asks for."""
        pairs = dict.fromkeys((d.maker, d.lineup) for d in self.decisions)  # far fewer than decisions
        used = dict.fromkeys((maker, c) for maker, lineup in pairs for c in self.lineups[lineup].classes)
        found: dict[tuple[int, Normaliser], dict[int, Request]] = {}
        for m, c in used:
            norm_pre, generator, seed = self.makers[m]
            entropy = () if seed is None else class_entropy(seed, self.classes[c].label)
            found.setdefault((c, norm_pre), {})[m] = Request(generator, entropy)
        return found

    def method(self, decision: Decision) -> Method:
        """The method that makes a decision."""
        norm_pre, generator, _ = self.makers[decision.maker]
        _, norm_post, norm_inf, aggregator, _ = decision
        return Method(
            norm_pre=norm_pre, generator=generator, norm_post=norm_post, norm_inf=norm_inf, aggregator=aggregator
        )

    def computations(self) -> int:
        """How many states of classes and how many decisions are computed."""
        states = sum(len(set(sharing.leaders(list(asked.values())))) for asked in self.requests().values())
        return states + len(self.decisions)

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
    tree = Tree()
    lineups = _lineups(unit, y, y_test, tree)
    methods = [sharing.simplest(method) for method in unit.methods]
    number: dict[object, int] = {}  # of equal parts the same: numbers are compared faster than components
    parts = [[number.setdefault(part, len(number)) for part in (getattr(m, p) for p in PARTS)] for m in methods]
    seeded = [sharing.uses_seed(m.generator) for m in methods]
    makers: dict[tuple[int, int, int | None], int] = {}
    known: dict[tuple[int, ...], int] = {}
    for index, (task, m, s) in enumerate(unit.experiments.tolist()):
        method, (pre, generator, *others) = methods[m], parts[m]
        seed = unit.seeds[s] if seeded[m] else None
        maker = makers.setdefault((pre, generator, seed), len(makers))
        if maker == len(tree.makers):
            tree.makers.append(Maker(method.norm_pre, method.generator, seed))
        lineup = lineups[task, s]
        decision = known.setdefault((maker, lineup, *others), len(known))
        if decision == len(tree.decisions):
            tree.decisions.append(Decision(maker, method.norm_post, method.norm_inf, method.aggregator, lineup))
            tree.experiments.append([])
        tree.experiments[decision].append(index)
    return tree


def _lineups(unit: "Unit", y: Array, y_test: Array, tree: Tree) -> dict[tuple[int, int], int]:
    """The line-up of every task and seed in use; equal ones are one."""
    classes: dict[tuple[Any, bytes], int] = {}
    known: dict[tuple[int, tuple[int, ...]], int] = {}
    places: dict[tuple[int, int], int] = {}
    labels_of_data = np.unique(y).tolist()
    first_seed: dict[int, int] = {}
    for t, s in dict.fromkeys(map(tuple, unit.experiments[:, [0, 2]].tolist())):
        task = tasks.resolve(unit.tasks[t])
        if task.queries() == task and t in first_seed:  # it takes all rows, whatever the seed
            places[t, s] = places[t, first_seed[t]]
            continue
        rows, labels = task.select(y, unit.seeds[s], labels_of_data)
        names, codes = np.unique(labels, return_inverse=True)
        own = [ClassRows(label, rows[codes == i]) for i, label in enumerate(names.tolist())]
        numbers = [classes.setdefault((label, r.tobytes()), len(classes)) for label, r in own]
        tree.classes += [c for c, number in zip(own, numbers) if number >= len(tree.classes)]
        place = known.setdefault((t, tuple(numbers)), len(known))
        if place == len(tree.lineups):
            test = task.queries().select(y_test, unit.seeds[s], labels_of_data)
            tree.lineups.append(Lineup(tuple(numbers), test.rows, np.searchsorted(names, test.labels)))
        places[t, s], first_seed[t] = place, s
    return places
