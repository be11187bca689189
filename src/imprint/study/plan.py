"""From a study to units of work: which experiments are left to do, and which of them belong together."""

import hashlib
from collections.abc import Container, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import NamedTuple, TypeAlias

import numpy as np

from imprint import tasks
from imprint.core.arrays import factorize
from imprint.core.errors import ParameterError
from imprint.core.memory import without_collection
from imprint.core.types import Array
from imprint.study import sharing
from imprint.study.methods import Methods
from imprint.study.source import Data, Source
from imprint.study.study import Study
from imprint.study.work_graph import build

SEMANTICS = "1"  # part of every key; changes when the same text comes to mean another computation
LIMIT = 2_000_000  # experiments that a study may name, unless it is told otherwise
SPEED = 2e10  # multiplications per second of one core, roughly
BASE_MEMORY = 300e6  # bytes of a process that has loaded the libraries


@dataclass(frozen=True, eq=False)
class Unit:
    """Experiments that one worker computes in one go: those of one pack and one class of generators."""

    source: Source
    backbone: str
    dataset: str
    fingerprint: str
    tasks: tuple[str, ...]
    methods: Methods
    seeds: tuple[int, ...]
    experiments: Array  # (n, 3) of each experiment the places of its task, method and seed in the lists above
    keys: bytes  # the content keys of the experiments, 16 bytes each
    work: float  # multiplications, roughly

    @property
    def key(self) -> str:
        """The name of the unit: a digest of its experiments."""
        return hashlib.sha256(self.keys).hexdigest()[:32]

    def __str__(self) -> str:
        norms = " or ".join(dict.fromkeys(self.methods.map_part("norm_pre", str).tolist()))
        return f"{self.backbone}, {self.dataset}, {norms} / {type(self.methods[0].generator).__name__}"


Outcome: TypeAlias = tuple[Unit, dict[str, Array] | str]
"""A unit with its columns, or with the reason why there are none."""


@dataclass(frozen=True, eq=False)
class Plan:
    """All that a study names, and the units that are left to do, the longest first."""

    experiments: int  # that the study names, whether done or not
    left_out: int  # points of the product that its rules left out
    units: tuple[Unit, ...]
    fingerprints: dict[str, str]

    @property
    def to_do(self) -> int:
        """How many experiments are left to do."""
        return sum(len(u.experiments) for u in self.units)


def check_size(study: Study, limit: int | None = LIMIT) -> None:
    """Refuse a study of more experiments than the limit, before any of them is made."""
    if limit is not None and study.points > limit:
        raise ParameterError(
            f"Study(name={study.name!r}): it names {study.points:,} experiments and the limit is {limit:,}; "
            f"make it smaller, or raise the limit if you mean it."
        )


@without_collection()
def plan(study: Study, source: Source, done: Container[bytes] = frozenset(), limit: int | None = LIMIT) -> Plan:
    """The units of a study whose experiments are not `done` yet. Refuses points that make no sense, by name."""
    check_size(study, limit)
    methods, texts, units = study.methods, study.methods.texts(str.encode), []
    kinds: dict[type, int] = {}
    kind = methods.map_part("generator", lambda g: kinds.setdefault(type(g), len(kinds)))
    prints, named, left_out = {}, 0, 0
    task_texts = tuple(dict.fromkeys(i.task for i in study.instances))
    for backbone, dataset in dict.fromkeys((i.backbone, i.dataset) for i in study.instances):
        data = source.open(backbone, dataset)
        prints[f"{backbone}-{dataset}"] = data.fingerprint
        where = f"{backbone}, {dataset}"
        possible = _possible(study, methods, data, where, task_texts)  # (tasks, methods)
        named += int(possible.sum()) * len(study.seeds)
        left_out += int((~possible).sum()) * len(study.seeds)
        for number in kinds.values():
            members = np.flatnonzero(kind == number)
            own, wanted = methods.take(members), np.argwhere(possible[:, members])
            todo, keys = _missing(wanted, texts[members].tolist(), data.fingerprint, task_texts, study.seeds, done)
            if len(todo):
                names = (source, backbone, dataset, data.fingerprint, task_texts, own, study.seeds)
                units.append(Unit(*names, todo, keys, _work(own, todo, data)))
    return Plan(named, left_out, tuple(sorted(units, key=lambda u: -u.work)), prints)


def plan_together(studies: Sequence[Study], source: Source, done: Set[bytes], limit: int | None = LIMIT) -> Plan:
    """One plan for several studies; units of one pack and one class of generators are merged and share their work."""
    plans: list[Plan] = []
    for study in studies:
        planned = {unit.keys[i : i + 16] for p in plans for unit in p.units for i in range(0, len(unit.keys), 16)}
        plans.append(plan(study, source, done | planned if planned else done, limit))
    groups: dict[object, list[Unit]] = {}
    for unit in (unit for plan in plans for unit in plan.units):
        groups.setdefault((unit.backbone, unit.dataset, type(unit.methods[0].generator)), []).append(unit)
    units = sorted(map(_merged, groups.values()), key=lambda u: -u.work)
    fingerprints = {name: value for plan in plans for name, value in plan.fingerprints.items()}
    return Plan(sum(p.experiments for p in plans), sum(p.left_out for p in plans), tuple(units), fingerprints)


def _merged(units: Sequence[Unit]) -> Unit:
    """The experiments of several units of one pack as one unit."""
    if len(units) == 1:
        return units[0]
    methods = Methods.union([unit.methods for unit in units])
    tasks = tuple(dict.fromkeys(task for unit in units for task in unit.tasks))
    seeds = tuple(dict.fromkeys(seed for unit in units for seed in unit.seeds))
    positions = {text: i for i, text in enumerate(methods.texts().tolist())}
    experiments = []
    for unit in units:
        task, method, seed = unit.experiments.T
        columns = (
            np.array([tasks.index(t) for t in unit.tasks])[task],
            np.array([positions[text] for text in unit.methods.texts()])[method],
            np.array([seeds.index(s) for s in unit.seeds])[seed],
        )
        experiments.append(np.column_stack(columns).astype(np.int32))
    return replace(
        units[0],
        tasks=tasks,
        methods=methods,
        seeds=seeds,
        experiments=np.concatenate(experiments),
        keys=b"".join(unit.keys for unit in units),
        work=sum(unit.work for unit in units),
    )


def _missing(
    wanted: Array, middles: list[bytes], fingerprint: str, task_texts: tuple[str, ...], seeds: tuple[int, ...],
    done: Container[bytes],
) -> tuple[Array, bytes]:  # fmt: skip
    """The experiments of some pairs of task and method, for every seed, that are not done; and their keys.

    A key is a digest of the embeddings, task, method and seed: the same on every machine.
    """
    starts = [f"{SEMANTICS}\n{fingerprint}\n{task}\n".encode() for task in task_texts]
    endings = [f"\n{seed}".encode() for seed in seeds]
    pairs = zip(*wanted.T.tolist())
    keys = [hashlib.sha256(starts[t] + middles[m] + end).digest()[:16] for t, m in pairs for end in endings]
    left = np.array([key not in done for key in keys], dtype=bool)
    experiments = np.column_stack([np.repeat(wanted, len(seeds), axis=0), np.tile(np.arange(len(seeds)), len(wanted))])
    return experiments[left].astype(np.int32), b"".join(compress(keys, left))


def _possible(study: Study, methods: Methods, data: Data, where: str, texts: tuple[str, ...]) -> Array:
    """Which methods have the proxies they need on which tasks; a lack that no rule allows is refused.  # (t, m)"""
    needed = methods.map_part("aggregator", sharing.proxies_needed)
    kept = np.ones((len(texts), len(methods)), dtype=bool)
    for t, text in enumerate(texts):
        sizes = _class_sizes(f"{where}, {text}", text, data, study.seeds[0])
        most = methods.map_part("generator", partial(sharing.most_proxies, sizes=sizes))
        kept[t] = needed <= most
        if not kept[t].all() and "enough_proxies" not in study.rules:
            first = int(np.argmin(kept[t]))
            raise ParameterError(
                f"{where}, {text}: {methods[first]} looks at {needed[first]} proxies and there are "
                f"{int(most[first])}; change it, or leave such points out with the rule enough_proxies."
            )
    return kept


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


def _work(methods: Methods, experiments: Array, data: Data) -> float:
    """A rough count of multiplications, to start long units first: what proxies take and what deciding takes."""
    n, d = data.X.shape
    pairs = np.ravel_multi_index(tuple(methods.codes[:, :2].T), [len(own) for own in methods.components[:2]])
    making = methods.take(factorize(pairs)[0]).map_part("generator", partial(sharing.work, n=n, d=d))
    deciding = sharing.deciding_work(methods, len(data.X_test))[experiments[:, 1]]
    return float(making.sum() + deciding.sum())


class Estimate(NamedTuple):
    """How much there is to do; `seconds` and `memory` (bytes, of one worker) are guesses."""

    experiments: int
    left_out: int
    to_do: int  # experiments that are not finished yet
    computations: int  # distinct ones for them: states of classes and decisions
    units: int
    seconds: float
    memory: float


@without_collection()
def estimate(plan: Plan, workers: int) -> Estimate:
    """Count what the units of a plan compute, and guess how long it takes on so many workers."""
    computations, memory = 0, 0.0
    for unit in plan.units:
        data = unit.source.open(unit.backbone, unit.dataset)
        computations += build(unit, data.y, data.y_test).computations()
        memory = max(memory, BASE_MEMORY + 16 * (data.X.size + data.X_test.size))
    work = sum(u.work for u in plan.units)
    seconds = work / SPEED / max(1, min(workers, len(plan.units)))
    return Estimate(plan.experiments, plan.left_out, plan.to_do, computations, len(plan.units), seconds, memory)
