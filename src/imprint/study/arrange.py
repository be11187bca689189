"""What the cells of a unit have in common, as one tree: from proxies over views of them to decisions."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from imprint import tasks
from imprint.aggregators._base import Aggregator
from imprint.core.digest import class_entropy
from imprint.core.types import Array
from imprint.generators._base import Generator, Request
from imprint.normalisers._base import Normaliser
from imprint.study.plan import Unit


class ClassRows(NamedTuple):
    """The training rows of one class; tasks that show a class the same rows under the same label share it."""

    label: Any
    rows: Array


class Lineup(NamedTuple):
    """The classes of a task in order, and its test rows with the position of their true class."""

    classes: tuple[int, ...]
    rows: Array  # ascending
    truth: Array


class Maker(NamedTuple):
    """A generator and the seed it uses, None where it uses none."""

    generator: Generator
    seed: int | None


class View(NamedTuple):
    """Aggregators of one kind looking at queries that are scaled in one way."""

    cls: type[Aggregator]
    kind: str
    norm_inf: Normaliser


Decisions: TypeAlias = dict[Aggregator, list[int]]  # the cells that each decision answers
Tree: TypeAlias = dict[Maker, dict[Normaliser, dict[View, dict[int, Decisions]]]]


@dataclass
class Arrangement:
    """The classes and lineups of a unit, and its tree: maker, norm_post, view, lineup, aggregator, cells."""

    classes: list[ClassRows] = field(default_factory=list)
    lineups: list[Lineup] = field(default_factory=list)
    tree: Tree = field(default_factory=dict)
    unions: list[Array] = field(default_factory=list)
    _unions: dict[tuple[int, ...], int] = field(default_factory=dict)
    _columns: dict[tuple[int, int], Array | None] = field(default_factory=dict)

    def union(self, lineups: tuple[int, ...]) -> int:
        """Which of `unions` holds the test rows of these lineups together."""
        if lineups not in self._unions:
            rows = np.unique(np.concatenate([self.lineups[i].rows for i in lineups]))
            same = (i for i, known in enumerate(self.unions) if np.array_equal(known, rows))
            self._unions[lineups] = next(same, len(self.unions))
            if self._unions[lineups] == len(self.unions):
                self.unions.append(rows)
        return self._unions[lineups]

    def columns(self, union: int, lineup: int) -> Array | None:
        """Where the test rows of a lineup stand in a union that holds them; None where they are all of it."""
        if (union, lineup) not in self._columns:
            rows, wanted = self.unions[union], self.lineups[lineup].rows
            self._columns[union, lineup] = None if len(rows) == len(wanted) else np.searchsorted(rows, wanted)
        return self._columns[union, lineup]

    def requests(self) -> dict[int, list[tuple[Maker, Request]]]:
        """What has to be made of each class."""
        found: dict[int, dict[tuple[Maker, Request], None]] = defaultdict(dict)
        for maker, posts in self.tree.items():
            for i in {i for views in posts.values() for lineups in views.values() for i in lineups}:
                for c in self.lineups[i].classes:
                    entropy = class_entropy(maker.seed or 0, self.classes[c].label)
                    found[c][maker, Request(maker.generator, entropy)] = None
        return {c: list(wanted) for c, wanted in found.items()}

    def groups(self) -> list[list[Maker]]:
        """Makers that may share rows: those of one seed."""
        found: dict[int | None, list[Maker]] = defaultdict(list)
        for maker in self.tree:
            found[maker.seed].append(maker)
        return list(found.values())

    def computations(self) -> tuple[int, int]:
        """How many states of classes and how many decisions are computed."""
        states = 0
        for wanted in self.requests().values():
            requests = [r for _, r in wanted]
            states += len(set(type(requests[0].generator).served_by(requests)))
        decisions = sum(
            len(d) for posts in self.tree.values() for v in posts.values() for ls in v.values() for d in ls.values()
        )
        return states, decisions


def arrange(unit: Unit, y: Array, y_test: Array) -> Arrangement:
    """Sort the cells of a unit into the tree of what they share, as the components declare it."""
    found = Arrangement()
    places = _lineups(unit, y, y_test, found)
    parts = [_shared_parts(unit, i) for i in range(len(unit.methods))]
    for index, cell in enumerate(unit.cells):
        generator, post, view, aggregator = parts[cell.method]
        maker = Maker(generator, unit.seeds[cell.seed] if generator.seeded else None)
        views = found.tree.setdefault(maker, {}).setdefault(post, {})
        decisions = views.setdefault(view, {}).setdefault(places[cell.task, cell.seed], {})
        decisions.setdefault(aggregator, []).append(index)
    return found


def _shared_parts(unit: Unit, i: int) -> tuple[Generator, Normaliser, View, Aggregator]:
    """A method with norms that cannot matter to its aggregator replaced by the first of their like in the unit."""
    method = unit.methods[i]
    a = method.aggregator
    heeds_query, heeds_proxy = a.heeds_lengths
    post, inf = method.norm_post, method.norm_inf
    if not heeds_proxy and post.keeps_direction:
        post = next(m.norm_post for m in unit.methods if m.norm_post.keeps_direction)
    if not heeds_query and inf.keeps_direction:
        inf = next(m.norm_inf for m in unit.methods if m.norm_inf.keeps_direction)
    return method.generator, post, View(type(a), a.kind, inf), a


def _lineups(unit: Unit, y: Array, y_test: Array, found: Arrangement) -> dict[tuple[int, int], int]:
    """The lineup of every task and seed in use; equal ones are one."""
    known_classes: dict[tuple[Any, bytes], int] = {}
    known: dict[tuple[int, tuple[int, ...]], int] = {}
    places = {}
    labels_of_data = np.unique(y).tolist()
    for t, s in dict.fromkeys((c.task, c.seed) for c in unit.cells):
        task = tasks.resolve(unit.tasks[t])
        rows, labels = task.select(y, unit.seeds[s], labels_of_data)
        names, codes = np.unique(labels, return_inverse=True)
        own = []
        for i, label in enumerate(names.tolist()):
            these = rows[codes == i]
            key = label, these.tobytes()
            if key not in known_classes:
                known_classes[key] = len(found.classes)
                found.classes.append(ClassRows(label, these))
            own.append(known_classes[key])
        if (t, tuple(own)) not in known:
            known[t, tuple(own)] = len(found.lineups)
            test = task.queries().select(y_test, unit.seeds[s], labels_of_data)
            found.lineups.append(Lineup(tuple(own), test.rows, np.searchsorted(names, test.labels)))
        places[t, s] = known[t, tuple(own)]
    return places
