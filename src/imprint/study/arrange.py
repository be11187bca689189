"""What the cells of a unit have in common, as one tree: from proxies over views of them to decisions."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from imprint import tasks
from imprint.aggregators._base import Aggregator
from imprint.core.digest import class_entropy
from imprint.core.types import Array
from imprint.generators._base import Generator, Picker, Request
from imprint.normalisers._base import Normaliser
from imprint.study.plan import Unit

HELD = 2**26  # numbers of proxies and scores that are held at a time


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
    """A generator, what is done to rows before it, and the seed it uses, None where it uses none."""

    norm_pre: Normaliser
    generator: Generator
    seed: int | None


class Wish(NamedTuple):
    """What a maker wants of one class."""

    maker: int
    norm_pre: Normaliser
    request: Request


class Bundle(NamedTuple):
    """Norms that finish the proxies of a maker and are seen to together."""

    maker: int
    posts: tuple[Normaliser, ...]


class View(NamedTuple):
    """Aggregators of one kind looking at queries that are scaled in one way."""

    cls: type[Aggregator]
    kind: str
    norm_inf: Normaliser


Decisions: TypeAlias = dict[Aggregator, list[int]]  # the cells that each decision answers
Branch: TypeAlias = dict[Normaliser, dict[View, dict[int, Decisions]]]


@dataclass
class Arrangement:
    """The classes and lineups of a unit, and its tree: maker, norm_post, view, lineup, aggregator, cells."""

    makers: list[Maker] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)
    classes: list[ClassRows] = field(default_factory=list)
    lineups: list[Lineup] = field(default_factory=list)
    unions: list[Array] = field(default_factory=list)
    _unions: dict[tuple[int, ...], int] = field(default_factory=dict)
    _columns: dict[tuple[int, int], Array | None] = field(default_factory=dict)

    def union(self, lineups: tuple[int, ...]) -> int:
        """Which of `unions` holds the test rows of these lineups together."""
        if lineups not in self._unions:
            rows = _union([self.lineups[i].rows for i in lineups])
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

    def lineups_of(self, maker: int) -> list[int]:
        """The lineups that a maker serves, those of many classes first."""
        used = {i for views in self.branches[maker].values() for lineups in views.values() for i in lineups}
        return sorted(used, key=lambda i: (-len(self.lineups[i].classes), i))

    def wishes(self) -> dict[int, list[Wish]]:
        """What has to be made of each class."""
        found: dict[int, list[Wish]] = defaultdict(list)
        entropy = cache(class_entropy)
        for m, (norm_pre, generator, seed) in enumerate(self.makers):
            for c in sorted({c for i in self.lineups_of(m) for c in self.lineups[i].classes}):
                request = Request(generator, entropy(seed or 0, self.classes[c].label))
                found[c].append(Wish(m, norm_pre, request))
        return found

    def groups(self, width: int) -> list[list[Bundle]]:
        """Bundles whose proxies and scores are held together: those that may share rows, within bounds of memory."""
        found: list[list[Bundle]] = []
        for _, own in groupby(self._bundles(), lambda bundle: self._kin(bundle.maker)):
            room = 0
            for bundle in own:
                size = self._size(bundle, width)
                if size > room:
                    found.append([])
                    room = HELD
                found[-1].append(bundle)
                room -= size
        return found

    def _bundles(self) -> Iterator[Bundle]:
        order = {kin: i for i, kin in enumerate(dict.fromkeys(map(self._kin, range(len(self.makers)))))}
        for m in sorted(range(len(self.makers)), key=lambda m: (order[self._kin(m)], self.makers[m].seed or 0)):
            for after_others in (False, True):
                if posts := tuple(n for n in self.branches[m] if n.uses_reference == after_others):
                    yield Bundle(m, posts)

    def _kin(self, maker: int) -> type[Generator]:
        """Those that may share rows: all that pick them, all of one class that make them."""
        cls = type(self.makers[maker].generator)
        return Picker if issubclass(cls, Picker) else cls

    def _size(self, bundle: Bundle, width: int) -> int:
        """How many numbers the proxies and the scores of a bundle are, roughly."""
        lineups = [self.lineups[i] for i in self.lineups_of(bundle.maker)]
        sizes = (len(self.classes[c].rows) for c in {c for lineup in lineups for c in lineup.classes})
        proxies = sum(map(self.makers[bundle.maker].generator.most, sizes))
        scores = sum(len(lineup.classes) * len(lineup.rows) for lineup in lineups)
        return width * proxies + len(bundle.posts) * scores

    def computations(self) -> tuple[int, int]:
        """How many states of classes and how many decisions are computed."""
        states = 0
        for wanted in self.wishes().values():
            for cls, _, own in by_rows(wanted):
                states += len(set(cls.served_by([w.request for w in own])))
        decisions = sum(len(d) for b in self.branches for v in b.values() for ls in v.values() for d in ls.values())
        return states, decisions


def arrange(unit: Unit, y: Array, y_test: Array) -> Arrangement:
    """Sort the cells of a unit into the tree of what they share, as the components declare it."""
    found = Arrangement()
    places = _lineups(unit, y, y_test, found)
    parts = _shared_parts(unit)
    numbers: dict[tuple[int, int | None], int] = {}
    for index, cell in enumerate(unit.cells):
        first, post, view, aggregator = parts[cell.method]
        seed = unit.seeds[cell.seed] if unit.methods[first].generator.seeded else None
        if (first, seed) not in numbers:
            numbers[first, seed] = len(found.makers)
            found.makers.append(Maker(unit.methods[first].norm_pre, unit.methods[first].generator, seed))
            found.branches.append({})
        views = found.branches[numbers[first, seed]].setdefault(post, {})
        decisions = views.setdefault(view, {}).setdefault(places[cell.task, cell.seed], {})
        decisions.setdefault(aggregator, []).append(index)
    return found


def by_rows(wanted: Sequence[Wish]) -> Iterator[tuple[type[Generator], Normaliser | None, list[Wish]]]:
    """Wishes for generators of one class on the same rows; None for a norm where it does not matter which."""
    found: dict[tuple[type[Generator], Normaliser | None], list[Wish]] = defaultdict(list)
    for w in wanted:
        cls = type(w.request.generator)
        found[cls, None if issubclass(cls, Picker) and cls.picks_blindly else w.norm_pre].append(w)
    return ((*key, own) for key, own in found.items())


def _shared_parts(unit: Unit) -> list[tuple[int, Normaliser, View, Aggregator]]:
    """Every method with norms that cannot matter to its aggregator replaced by the first of their like in the unit.

    The first number is that of the first method with the same norm_pre and generator. Equal norms are one object.
    """
    one: dict[Normaliser, Normaliser] = {}
    made: dict[tuple[Normaliser, Generator], int] = {}
    first_post = _first_straight(m.norm_post for m in unit.methods)
    first_inf = _first_straight(m.norm_inf for m in unit.methods)
    found = []
    for i, method in enumerate(unit.methods):
        a, post, inf = method.aggregator, method.norm_post, method.norm_inf
        heeds_query, heeds_proxy = a.heeds_lengths
        if not heeds_proxy and post.keeps_direction:
            post = first_post
        if not heeds_query and inf.keeps_direction:
            inf = first_inf
        first = made.setdefault((method.norm_pre, method.generator), i)
        found.append((first, one.setdefault(post, post), View(type(a), a.kind, one.setdefault(inf, inf)), a))
    return found


def _union(parts: list[Array]) -> Array:
    """All rows of some, ascending."""
    chosen = np.zeros(max(int(part.max(initial=-1)) for part in parts) + 1, dtype=bool)
    for part in parts:
        chosen[part] = True
    return np.flatnonzero(chosen)


def _first_straight(norms: Iterable[Normaliser]) -> Any:
    return next((norm for norm in norms if norm.keeps_direction), None)


def _lineups(unit: Unit, y: Array, y_test: Array, found: Arrangement) -> dict[tuple[int, int], int]:
    """The lineup of every task and seed in use; equal ones are one."""
    known_classes: dict[tuple[Any, bytes], int] = {}
    known: dict[tuple[int, tuple[int, ...]], int] = {}
    places = {}
    labels_of_data = np.unique(y).tolist()
    undrawn: dict[int, int] = {}
    for t, s in dict.fromkeys((c.task, c.seed) for c in unit.cells):
        if t in undrawn:
            places[t, s] = undrawn[t]
            continue
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
        if task.queries() == task:  # it takes all rows, whatever the seed
            undrawn[t] = places[t, s]
    return places
