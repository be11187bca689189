"""From a study to units of work: which experiments are missing, and which of them are computed together."""

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
from imprint.study.grid import Methods
from imprint.study.study import Data, Source, Study
from imprint.study.work_graph import build

SEMANTICS = "1"  # part of every key; changes if the same text means another computation
LIMIT = 2_000_000  # experiments of a study, by default
SPEED = 2e10  # multiplications per second of one core, approximately
BASE_MEMORY = 300e6  # bytes of a process that has loaded the libraries


@dataclass(frozen=True, eq=False)
class Unit:
    """Experiments that one worker computes together: those of one pack and one class of generators."""

    source: Source
    backbone: str
    dataset: str
    fingerprint: str
    tasks: tuple[str, ...]
    methods: Methods
    seeds: tuple[int, ...]
    experiments: Array  # (n, 3) for each experiment, the indices of its task, method and seed in the lists above
    keys: bytes  # the content keys of the experiments, 16 bytes each
    work: float  # multiplications, approximately

    @property
    def key(self) -> str:
        """The name of the unit: a digest of its experiments."""
        return hashlib.sha256(self.keys).hexdigest()[:32]

    def __str__(self) -> str:
        norms = " or ".join(dict.fromkeys(self.methods.map_part("norm_pre", str).tolist()))
        return f"{self.backbone}, {self.dataset}, {norms} / {type(self.methods[0].generator).__name__}"


Outcome: TypeAlias = tuple[Unit, dict[str, Array] | str]
"""A unit with its columns, or with the reason why it failed."""


@dataclass(frozen=True, eq=False)
class Plan:
    """The experiments of a study, and the units that are not finished, longest first."""

    experiments: int  # of the study, finished or not
    left_out: int  # by the rules of the study
    units: tuple[Unit, ...]
    fingerprints: dict[str, str]

    @property
    def to_do(self) -> int:
        """The number of unfinished experiments."""
        return sum(len(u.experiments) for u in self.units)


def check_size(study: Study, limit: int | None = LIMIT) -> None:
    """Refuse a study of more experiments than the limit, without listing them."""
    if limit is not None and study.points > limit:
        raise ParameterError(
            f"Study(name={study.name!r}): it names {study.points:,} experiments and the limit is {limit:,}; "
            f"make it smaller, or raise the limit if you mean it."
        )


@without_collection()
def plan(study: Study, source: Source, done: Container[bytes] = frozenset(), limit: int | None = LIMIT) -> Plan:
    """The units of a study whose experiments are not `done` yet. Refuses impossible combinations by name."""
    check_size(study, limit)
    methods, texts, seeds = study.methods, study.methods.texts(str.encode), study.seeds
    kind = methods.map_part("generator", type)
    fingerprints, experiments, left_out, units = {}, 0, 0, []
    task_texts = tuple(dict.fromkeys(i.task for i in study.instances))
    for backbone, dataset in dict.fromkeys((i.backbone, i.dataset) for i in study.instances):
        data = source.open(backbone, dataset)
        fingerprints[f"{backbone}-{dataset}"] = data.fingerprint
        possible = _possible(study, methods, data, f"{backbone}, {dataset}", task_texts)  # (tasks, methods)
        experiments += int(possible.sum()) * len(seeds)
        left_out += int((~possible).sum()) * len(seeds)
        for generator in dict.fromkeys(kind.tolist()):
            members = np.flatnonzero(kind == generator)
            of_kind, pairs = methods.take(members), np.argwhere(possible[:, members])
            keys = experiment_keys(data.fingerprint, task_texts, texts[members].tolist(), seeds, pairs)
            missing = np.array([key not in done for key in keys], dtype=bool)
            if missing.any():
                triples = [np.repeat(pairs, len(seeds), axis=0), np.tile(np.arange(len(seeds)), len(pairs))]
                todo = np.column_stack(triples)[missing].astype(np.int32)
                names = (source, backbone, dataset, data.fingerprint, task_texts, of_kind, seeds)
                units.append(Unit(*names, todo, b"".join(compress(keys, missing)), _work(of_kind, todo, data)))
    return Plan(experiments, left_out, tuple(sorted(units, key=lambda u: -u.work)), fingerprints)


def plan_together(studies: Sequence[Study], source: Source, done: Set[bytes], limit: int | None = LIMIT) -> Plan:
    """One plan for several studies; units with the same pack and class of generators are merged and share work."""
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
    """Several units of one pack as one."""
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


def experiment_keys(
    fingerprint: str, tasks: Sequence[str], methods: Sequence[bytes], seeds: Sequence[int], pairs: Array
) -> list[bytes]:
    """The keys of pairs of task and method, each with every seed.

    A key is a digest of the embeddings, task, method and seed: the same on every machine.
    """
    starts = [f"{SEMANTICS}\n{fingerprint}\n{task}\n".encode() for task in tasks]
    ends = [f"\n{seed}".encode() for seed in seeds]
    texts = (starts[t] + methods[m] for t, m in pairs.tolist())
    return [hashlib.sha256(text + end).digest()[:16] for text in texts for end in ends]


def _possible(study: Study, methods: Methods, data: Data, where: str, texts: tuple[str, ...]) -> Array:
    """Whether each task has enough proxies for each method; refused if not, unless a rule leaves it out.  # (t, m)"""
    needed = methods.map_part("aggregator", sharing.proxies_needed)
    possible = np.ones((len(texts), len(methods)), dtype=bool)
    for t, text in enumerate(texts):
        sizes = _class_sizes(f"{where}, {text}", text, data, study.seeds[0])
        most = methods.map_part("generator", partial(sharing.most_proxies, sizes=sizes))
        possible[t] = needed <= most
        if not possible[t].all() and "enough_proxies" not in study.rules:
            first = int(np.argmin(possible[t]))
            raise ParameterError(
                f"{where}, {text}: {methods[first]} looks at {needed[first]} proxies and there are "
                f"{int(most[first])}; change it, or leave such points out with the rule enough_proxies."
            )
    return possible


def _class_sizes(where: str, text: str, data: Data, seed: int) -> Array:
    """The number of rows of each class of a task; refuses a task that is impossible with these data."""
    task = tasks.resolve(text)
    classes = np.unique(data.y).tolist()
    try:
        labels = task.select(data.y, seed, classes).labels
        test_labels = task.queries().select(data.y_test, seed, classes).labels
    except ParameterError as e:
        raise ParameterError(f"{where}: {e}") from None
    if not len(test_labels):
        raise ParameterError(f"{where}: the test split has no row of this task.")
    return np.unique(labels, return_counts=True)[1]


def _work(methods: Methods, experiments: Array, data: Data) -> float:
    """An estimate of the multiplications for proxies and decisions, by which long units start first."""
    n, d = data.X.shape
    pairs = np.ravel_multi_index(tuple(methods.codes[:, :2].T), [len(part) for part in methods.components[:2]])
    generating = methods.take(factorize(pairs)[0]).map_part("generator", partial(sharing.work, n=n, d=d))
    deciding = sharing.deciding_work(methods, len(data.X_test))[experiments[:, 1]]
    return float(generating.sum() + deciding.sum())


class Estimate(NamedTuple):
    """The size of a plan; `seconds` and `memory` (bytes, of one worker) are rough estimates."""

    experiments: int
    left_out: int
    to_do: int  # unfinished experiments
    computations: int  # distinct class states and decisions for them
    units: int
    seconds: float
    memory: float


@without_collection()
def estimate(plan: Plan, workers: int) -> Estimate:
    """Count the computations of a plan, and estimate their duration."""
    computations, memory = 0, 0.0
    for unit in plan.units:
        data = unit.source.open(unit.backbone, unit.dataset)
        computations += build(unit, data.y, data.y_test).computations()
        memory = max(memory, BASE_MEMORY + 16 * (data.X.size + data.X_test.size))
    work = sum(u.work for u in plan.units)
    seconds = work / SPEED / max(1, min(workers, len(plan.units)))
    return Estimate(plan.experiments, plan.left_out, plan.to_do, computations, len(plan.units), seconds, memory)
