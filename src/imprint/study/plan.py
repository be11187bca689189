"""From a study to units of work: which experiments are missing, and which of them are computed together."""

import hashlib
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from itertools import compress, product

import numpy as np

from imprint import tasks
from imprint.core.arrays import factorize
from imprint.core.errors import ParameterError
from imprint.core.types import Array
from imprint.method import Method
from imprint.study import sharing
from imprint.study.study import Data, Source, Study
from imprint.study.work_graph import build, numbered

SEMANTICS = "1"  # part of every key; changes if the same text means another computation
LIMIT = 2_000_000  # experiments of a study, by default
SPEED = 2e10  # multiplications per second of one core, approximately
BASE_MEMORY = 300e6  # bytes of a process that has loaded the libraries


@dataclass(frozen=True, eq=False)
class Unit:
    """Experiments that one worker computes together: one pack, and generators of one type."""

    source: Source
    backbone: str
    dataset: str
    fingerprint: str
    tasks: tuple[str, ...]
    methods: tuple[Method, ...]
    seeds: tuple[int, ...]
    experiments: Array  # (n, 3) for each experiment, the indices of its task, method and seed in the lists above
    keys: bytes  # the content keys of the experiments, 16 bytes each
    work: float  # multiplications, approximately

    @property
    def key(self) -> str:
        """The name of the unit: a digest of its experiments."""
        return hashlib.sha256(self.keys).hexdigest()[:32]

    def __str__(self) -> str:
        norms = " or ".join(dict.fromkeys(str(method.norm_pre) for method in self.methods))
        return f"{self.backbone}, {self.dataset}, {norms} / {type(self.methods[0].generator).__name__}"


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

    @property
    def work(self) -> float:
        """The multiplications of all units, approximately."""
        return sum(u.work for u in self.units)


def plan(
    study: Study | Sequence[Study], source: Source, done: Container[bytes] = frozenset(), limit: int | None = LIMIT
) -> Plan:
    """The units of the experiments that are not `done`; an impossible combination is refused by name.

    Experiments of several studies with the same pack and type of generator form one unit, and share its work.
    """
    studies = [study] if isinstance(study, Study) else list(study)
    for one in studies:
        if limit is not None and one.points > limit:
            raise ParameterError(
                f"Study(name={one.name!r}): it names {one.points:,} experiments and the limit is {limit:,}; "
                f"make it smaller, or raise the limit."
            )
    tasks = numbered(text for one in studies for text in one.task_texts)
    methods = numbered(method for one in studies for method in one.methods)
    seeds = numbered(seed for one in studies for seed in one.seeds)
    every_method, texts = list(methods), [str(method).encode() for method in methods]
    kinds = np.array([type(method.generator) for method in methods])
    fingerprints, count, units = {}, 0, []
    for backbone, dataset in dict.fromkeys(pack for one in studies for pack in product(one.backbones, one.datasets)):
        data = source.open(backbone, dataset)
        fingerprints[f"{backbone}-{dataset}"] = data.fingerprint
        experiments = []
        for one in studies:
            if backbone in one.backbones and dataset in one.datasets:
                task, seed = [tasks[text] for text in one.task_texts], [seeds[s] for s in one.seeds]
                method = [methods[m] for m in one.methods]
                points = np.stack(np.meshgrid(task, method, seed, indexing="ij"), axis=-1)  # (tasks, methods, seeds, 3)
                experiments.append(points[_possible(one, data, f"{backbone}, {dataset}")].reshape(-1, 3))
        together = np.concatenate(experiments)
        count += len(together)
        distinct = together[factorize(*together.T)[0]]
        for kind in dict.fromkeys(kinds.tolist()):
            todo = distinct[kinds[distinct[:, 1]] == kind]
            keys = experiment_keys(data.fingerprint, tasks, texts, seeds, todo)
            missing = np.array([key not in done for key in keys], dtype=bool)
            if missing.any():
                used, todo[:, 1] = np.unique(todo[:, 1], return_inverse=True)
                of_kind = tuple(every_method[i] for i in used.tolist())
                todo = todo[missing].astype(np.int32)
                names = (source, backbone, dataset, data.fingerprint, tuple(tasks), of_kind, tuple(seeds))
                units.append(Unit(*names, todo, b"".join(compress(keys, missing)), _work(of_kind, todo, data)))
    named = sum(len(one.instances) * len(one.methods) * len(one.seeds) for one in studies)
    return Plan(count, named - count, tuple(sorted(units, key=lambda u: -u.work)), fingerprints)


def experiment_keys(
    fingerprint: str, tasks: Iterable[str], methods: Sequence[bytes], seeds: Iterable[int], experiments: Array
) -> list[bytes]:
    """The keys of experiments, given by the indices of their task, method and seed.

    A key is a digest of the embeddings, task, method and seed: the same on every machine.
    """
    starts = [f"{SEMANTICS}\n{fingerprint}\n{task}\n".encode() for task in tasks]
    ends = [f"\n{seed}".encode() for seed in seeds]
    return [hashlib.sha256(starts[t] + methods[m] + ends[s]).digest()[:16] for t, m, s in zip(*experiments.T.tolist())]


def _possible(study: Study, data: Data, where: str) -> Array:
    """Whether each task has enough proxies for each method.  # (tasks, methods)

    Refuses a task that the data do not allow, and a method with too few proxies unless a rule leaves it out.
    """
    methods, classes = study.methods, np.unique(data.y).tolist()
    needed = np.array([sharing.proxies_needed(method.aggregator) for method in methods])
    possible = np.ones((len(study.task_texts), len(methods)), dtype=bool)
    for t, text in enumerate(study.task_texts):
        task = tasks.resolve(text)
        try:
            labels = task.select(data.y, study.seeds[0], classes).labels
            test_labels = task.queries().select(data.y_test, study.seeds[0], classes).labels
        except ParameterError as e:
            raise ParameterError(f"{where}, {text}: {e}") from None
        if not len(test_labels):
            raise ParameterError(f"{where}, {text}: the test split has no row of this task.")
        sizes = np.unique(labels, return_counts=True)[1]
        most = {g: sharing.most_proxies(g, sizes) for g in {method.generator for method in methods}}
        available = np.array([most[method.generator] for method in methods])
        possible[t] = needed <= available
        if not possible[t].all() and "enough_proxies" not in study.rules:
            first = int(np.argmin(possible[t]))
            raise ParameterError(
                f"{where}, {text}: {methods[first]} needs {needed[first]} proxies and there are "
                f"{int(available[first])}; change it, or leave out such combinations with the rule enough_proxies."
            )
    return possible


def _work(methods: Sequence[Method], experiments: Array, data: Data) -> float:
    """An estimate of the multiplications for proxies and decisions, by which long units start first."""
    n, d = data.X.shape
    distinct = dict.fromkeys((method.norm_pre, method.generator) for method in methods)
    generating = sum(sharing.work(generator, n, d) for _, generator in distinct)
    each = np.array([1e4 if sharing.is_shareable(method) else 3e5 for method in methods])
    return float(generating + len(data.X_test) * each[experiments[:, 1]].sum())


def estimate(plans: Sequence[Plan], workers: int) -> dict[str, float]:
    """The size of plans that run one after another.

    `computations` counts distinct class states and decisions. `seconds` and `memory` (bytes, of one worker) are rough.
    """
    units = [unit for one in plans for unit in one.units]
    computations, memory = 0, 0.0
    for unit in units:
        data = unit.source.open(unit.backbone, unit.dataset)
        computations += build(unit, data.y, data.y_test).computations()
        memory = max(memory, BASE_MEMORY + 16 * (data.X.size + data.X_test.size))
    return {
        **{name: sum(getattr(one, name) for one in plans) for name in ("experiments", "left_out", "to_do")},
        "computations": computations,
        "units": len(units),
        "seconds": sum(one.work / SPEED / max(1, min(workers, len(one.units))) for one in plans),
        "memory": memory,
    }
