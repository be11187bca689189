"""From a study to units of work: which cells are left to do, and which of them belong together."""

import hashlib
from collections import defaultdict
from collections.abc import Container
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from imprint import tasks
from imprint.core.errors import ParameterError
from imprint.core.types import Array
from imprint.generators._base import Generator, Picker
from imprint.method import Method
from imprint.study.source import Data, Source
from imprint.study.study import Study

BEST = 3.0  # times the products of plain proxies: what all decisions by the best score take together
NEAREST = 2.0  # times the products: what finding the neighbours for one setting of norms and metric takes
VOTES = 1.2e4  # multiplications in whose time the neighbours of one test row vote
TOGETHER = 2.5e11  # multiplications up to which several classes of generators are one unit, a few seconds
SEMANTICS = "1"  # part of every key; changes when the same text comes to mean another computation


class Cell(NamedTuple):
    """One experiment of a unit: indices into the unit's tasks, methods and seeds."""

    task: int
    method: int
    seed: int


@dataclass(frozen=True, eq=False)
class Unit:
    """Cells that share most of their work: one pack, one class of generators, or several that take little time."""

    source: Source
    backbone: str
    dataset: str
    fingerprint: str
    tasks: tuple[str, ...]
    methods: tuple[Method, ...]
    seeds: tuple[int, ...]
    cells: tuple[Cell, ...]
    keys: tuple[bytes, ...]
    work: float
    """Multiplications, roughly."""
    device: str = "cpu"

    @property
    def key(self) -> str:
        """The name of the unit: a digest of its cells."""
        return hashlib.sha256(b"".join(self.keys)).hexdigest()[:32]

    def __str__(self) -> str:
        norms = " or ".join(dict.fromkeys(str(m.norm_pre) for m in self.methods))
        makers = ", ".join(dict.fromkeys(type(m.generator).__name__ for m in self.methods))
        return f"{self.backbone}, {self.dataset}, {norms} / {makers}"

    def apart(self) -> "list[Unit]":
        """The same cells as one unit for each class of generators."""
        found = []
        for members in _by_class(self.methods):
            place = {m: i for i, m in enumerate(members)}
            own = [i for i, cell in enumerate(self.cells) if cell.method in place]
            cells = tuple(self.cells[i]._replace(method=place[self.cells[i].method]) for i in own)
            methods, keys = tuple(self.methods[m] for m in members), tuple(self.keys[i] for i in own)
            work = self.work * len(own) / len(self.cells)
            found.append(replace(self, methods=methods, cells=cells, keys=keys, work=work))
        return found


Outcome: TypeAlias = tuple[Unit, dict[str, Array] | str]
"""A unit with its columns, or with the reason why there are none."""


@dataclass(frozen=True, eq=False)
class Plan:
    """All that a study names, and the units that are left to do, the longest first."""

    experiments: int
    """How many cells the study names, whether done or not."""
    left_out: int
    """How many points of the product its rules left out."""
    units: tuple[Unit, ...]
    fingerprints: dict[str, str]

    @property
    def cells(self) -> int:
        """How many cells are left to do."""
        return sum(len(u.cells) for u in self.units)


def cell_key(fingerprint: str, task: str, method: str, seed: int) -> bytes:
    """The content key of a cell: same embeddings, task, method and seed, same key; on every machine.  # 16 bytes

    The device is no part of it: what it changes is rounding.
    """
    return hashlib.sha256("\n".join((SEMANTICS, fingerprint, task, method, str(seed))).encode()).digest()[:16]


def plan(study: Study, source: Source, done: Container[bytes] = frozenset(), device: str = "cpu") -> Plan:
    """The units of a study whose cells are not `done` yet. Refuses points that make no sense, by name."""
    methods, units = study.methods, []
    texts = [str(m) for m in methods]
    prints, named, left_out = {}, 0, 0
    task_texts = tuple(dict.fromkeys(i.task for i in study.instances))
    for backbone, dataset in dict.fromkeys((i.backbone, i.dataset) for i in study.instances):
        data = source.open(backbone, dataset)
        prints[f"{backbone}-{dataset}"] = data.fingerprint
        sizes = [_class_sizes(f"{backbone}, {dataset}, {t}", t, data, study.seeds[0]) for t in task_texts]
        possible = _possible(methods, study.rules, sizes, f"{backbone}, {dataset}", task_texts)  # (tasks, methods)
        named += int(possible.sum()) * len(study.seeds)
        left_out += int((~possible).sum()) * len(study.seeds)
        own_units = []
        for members in _by_class(methods):
            cells, keys = [], []
            for t, task in enumerate(task_texts):
                for place, i in enumerate(members):
                    if possible[t, i]:
                        for s, seed in enumerate(study.seeds):
                            key = cell_key(data.fingerprint, task, texts[i], seed)
                            if key not in done:
                                cells.append(Cell(t, place, s))
                                keys.append(key)
            if cells:
                own = tuple(methods[i] for i in members)
                work = _work(own, cells, study.seeds, data)
                names = (source, backbone, dataset, data.fingerprint, task_texts, own, study.seeds)
                own_units.append(Unit(*names, tuple(cells), tuple(keys), work, device))
        units += _together(own_units)
    return Plan(named, left_out, tuple(sorted(units, key=lambda u: -u.work)), prints)


def _by_class(methods: tuple[Method, ...]) -> list[list[int]]:
    """Which methods have generators of one class, those of classes that pick rows first."""
    groups: dict[type[Generator], list[int]] = defaultdict(list)
    for i, method in enumerate(methods):
        groups[type(method.generator)].append(i)
    return [groups[cls] for cls in sorted(groups, key=lambda cls: not issubclass(cls, Picker))]


def _together(units: list[Unit]) -> list[Unit]:
    """Units of one pack, joined as long as they do not take long."""
    groups: list[list[Unit]] = []
    for unit in units:
        if groups and sum(u.work for u in groups[-1]) + unit.work <= TOGETHER:
            groups[-1].append(unit)
        else:
            groups.append([unit])
    return [group[0] if len(group) == 1 else _joined(group) for group in groups]


def _joined(units: list[Unit]) -> Unit:
    methods: tuple[Method, ...] = ()
    cells: list[Cell] = []
    for unit in units:
        cells += [Cell(task, len(methods) + method, seed) for task, method, seed in unit.cells]
        methods += unit.methods
    keys = tuple(key for unit in units for key in unit.keys)
    return replace(units[0], methods=methods, cells=tuple(cells), keys=keys, work=sum(u.work for u in units))


def _class_sizes(where: str, text: str, data: Data, seed: int) -> Array:
    """How many rows every class of a task has; refuses a task that the data cannot serve."""
    task = tasks.resolve(text)
    classes = np.unique(data.y).tolist()
    try:
        labels = task.select(data.y, seed, classes).labels
        found = task.queries().select(data.y_test, seed, classes).labels
    except ParameterError as e:
        raise ParameterError(f"{where}: {e}") from None
    if not len(found):
        raise ParameterError(f"{where}: the test split has no row of this task.")
    return np.unique(labels, return_counts=True)[1]


def _possible(
    methods: tuple[Method, ...], rules: tuple[str, ...], sizes: list[Array], where: str, texts: tuple[str, ...]
) -> Array:
    """Which methods have the proxies they need on which tasks; a lack that no rule allows is refused."""
    kept = np.ones((len(sizes), len(methods)), dtype=bool)
    makers = list(dict.fromkeys(m.generator for m in methods))
    for t, counts in enumerate(sizes):
        most = {g: sum(g.most(int(n)) for n in counts) for g in makers}
        for i, method in enumerate(methods):
            if method.aggregator.depth > most[method.generator]:
                kept[t, i] = False
                if "enough_proxies" not in rules:
                    raise ParameterError(
                        f"{where}, {texts[t]}: {method} looks at {method.aggregator.depth} proxies and there are "
                        f"{most[method.generator]}; change it, or leave such points out with the rule enough_proxies."
                    )
    return kept


def _work(methods: tuple[Method, ...], cells: list[Cell], seeds: tuple[int, ...], data: Data) -> float:
    """A rough count of multiplications: what generation costs, products of queries and proxies, votes of neighbours."""
    n, d = data.X.shape
    q, classes = len(data.X_test), len(np.unique(data.y))
    voting = [not m.aggregator.by_best_score for m in methods]
    views = len({(m.norm_post, m.norm_inf, m.aggregator.kind) for m, votes in zip(methods, voting) if votes})
    products = BEST * (not all(voting)) + NEAREST * views
    seeded = methods[0].generator.seeded
    total = VOTES * q * sum(voting[c.method] for c in cells) / (1 if seeded else len(seeds))
    for _, g in dict.fromkeys((m.norm_pre, m.generator) for m in methods):
        proxies = classes * g.most(n // classes)
        total += (len(seeds) if seeded else 1) * (classes * g.work(n // classes, d) + products * q * proxies * d)
    return total
