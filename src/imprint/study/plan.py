"""From a study to units of work: which experiments are missing, and which of them are
computed together.
"""

import hashlib
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress, product

import numpy as np

from imprint import tasks
from imprint.core.arrays import Array, factorize
from imprint.core.errors import ParameterError
from imprint.study import sharing
from imprint.study.grid import Methods
from imprint.study.study import Data, Source, Study
from imprint.study.work_graph import build

# part of every key; to be changed if the same text means another computation
KEY_VERSION = "1"
MAX_EXPERIMENTS = 2_000_000  # of a study, by default
CORE_SPEED = 2e10  # multiplications per second of one core, approximately
BASE_MEMORY = 300e6  # bytes of a process that has loaded the libraries


@dataclass(frozen=True, eq=False)
class Unit:
    """Experiments that one worker computes together: one pack, and generators of one
    type.
    """

    source: Source
    backbone: str
    dataset: str
    fingerprint: str
    tasks: tuple[str, ...]
    methods: Methods
    seeds: tuple[int, ...]
    # (n, 3) for each experiment, the indices of its task, method and seed in the lists
    # above
    experiments: Array
    keys: bytes  # the content keys of the experiments, 16 bytes each
    work: float  # multiplications, approximately

    @property
    def key(self) -> str:
        """The name of the unit: a digest of its experiments."""
        return hashlib.sha256(self.keys).hexdigest()[:32]

    def __str__(self) -> str:
        norms = " or ".join(
            dict.fromkeys(self.methods.map_part("norm_pre", str).tolist())
        )
        return (
            f"{self.backbone}, {self.dataset}, {norms} /"
            f" {type(self.methods[0].generator).__name__}"
        )


@dataclass(frozen=True, eq=False)
class Plan:
    """The experiments of a study, and the units that are not finished, longest
    first.
    """

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
    study: Study | Sequence[Study],
    source: Source,
    done: Container[bytes] = (),
    limit: int | None = MAX_EXPERIMENTS,
) -> Plan:
    """The units of the experiments that are not `done`; an impossible combination is
    refused by name.

    Experiments of several studies with the same pack and type of generator form one
    unit, and share its work.
    """
    studies = [study] if isinstance(study, Study) else list(study)
    for each in studies:
        if limit is not None and each.points > limit:
            raise ParameterError(
                f"Study(name={each.name!r}): it names {each.points:,} experiments and"
                f" the limit is {limit:,}; make it smaller, or raise the limit."
            )
    methods, indices_by_study = Methods.union([each.methods for each in studies])
    method_texts, generator_types = (
        methods.encoded(),
        methods.map_part("generator", type),
    )
    task_texts = tuple(
        dict.fromkeys(text for each in studies for text in each.task_texts)
    )
    seeds = tuple(dict.fromkeys(seed for each in studies for seed in each.seeds))
    fingerprints, count, units = {}, 0, []
    for backbone, dataset in dict.fromkeys(
        pack for each in studies for pack in product(each.backbones, each.datasets)
    ):
        data, experiments = source.open(backbone, dataset), []
        fingerprints[f"{backbone}-{dataset}"] = data.fingerprint
        for each, method in zip(studies, indices_by_study):
            if backbone in each.backbones and dataset in each.datasets:
                task = [task_texts.index(text) for text in each.task_texts]
                seed = [seeds.index(s) for s in each.seeds]
                # (tasks, methods, seeds, 3)
                points = np.stack(
                    np.meshgrid(task, method, seed, indexing="ij"), axis=-1
                )
                experiments.append(
                    points[_possible(each, data, f"{backbone}, {dataset}")].reshape(
                        -1, 3
                    )
                )
        joined = np.concatenate(experiments)
        count += len(joined)
        distinct = joined[factorize(*joined.T)[0]]
        for generator in dict.fromkeys(generator_types.tolist()):
            members = distinct[generator_types[distinct[:, 1]] == generator]
            keys = experiment_keys(
                data.fingerprint, task_texts, method_texts, seeds, members
            )
            missing = np.array([key not in done for key in keys], dtype=bool)
            if missing.any():
                used, members[:, 1] = np.unique(members[:, 1], return_inverse=True)
                unit_methods, members = (
                    methods.take(used),
                    members[missing].astype(np.int32),
                )
                work = _work(unit_methods, members, data)
                names = (
                    source,
                    backbone,
                    dataset,
                    data.fingerprint,
                    task_texts,
                    unit_methods,
                    seeds,
                )
                units.append(
                    Unit(*names, members, b"".join(compress(keys, missing)), work)
                )
    combinations = sum(
        len(each.instances) * len(each.methods) * len(each.seeds) for each in studies
    )
    return Plan(
        count,
        combinations - count,
        tuple(sorted(units, key=lambda u: -u.work)),
        fingerprints,
    )


def experiment_keys(
    fingerprint: str,
    tasks: Sequence[str],
    methods: Sequence[bytes],
    seeds: Sequence[int],
    experiments: Array,
) -> list[bytes]:
    """The keys of experiments, given by the indices of their task, method and seed.

    A key is a digest of the embeddings, task, method and seed: the same on every
    machine.
    """
    starts = [f"{KEY_VERSION}\n{fingerprint}\n{task}\n".encode() for task in tasks]
    ends = [f"\n{seed}".encode() for seed in seeds]
    return [
        hashlib.sha256(starts[t] + methods[m] + ends[s]).digest()[:16]
        for t, m, s in zip(*experiments.T.tolist())
    ]


def _possible(study: Study, data: Data, where: str) -> Array:
    """Whether each task has enough proxies for each method.  # (tasks, methods)

    Refuses a task that the data do not allow, and a method with too few proxies unless
    a rule leaves it out.
    """
    methods, classes = study.methods, np.unique(data.y).tolist()
    needed = methods.map_part("aggregator", sharing.min_proxies)
    possible = np.ones((len(study.task_texts), len(methods)), dtype=bool)
    for t, text in enumerate(study.task_texts):
        task = tasks.resolve(text)
        try:
            labels = task.select(data.y, study.seeds[0], classes).labels
            test_labels = (
                task.queries().select(data.y_test, study.seeds[0], classes).labels
            )
        except ParameterError as e:
            raise ParameterError(f"{where}, {text}: {e}") from None
        if not len(test_labels):
            raise ParameterError(
                f"{where}, {text}: the test split has no row of this task."
            )
        sizes = np.unique(labels, return_counts=True)[1]
        available = methods.map_part(
            "generator", partial(sharing.max_proxies, sizes=sizes)
        )
        possible[t] = needed <= available
        if not possible[t].all() and "enough_proxies" not in study.rules:
            first = int(np.argmin(possible[t]))
            raise ParameterError(
                f"{where}, {text}: {methods[first]} needs {needed[first]} proxies and"
                f" there are {int(available[first])}; change it, or leave out such"
                " combinations with the rule enough_proxies."
            )
    return possible


def _work(methods: Methods, experiments: Array, data: Data) -> float:
    """An estimate of the multiplications for proxies and decisions, by which long units
    start first.
    """
    n, d = data.X.shape
    # by norm_pre and generator
    distinct = methods.take(factorize(*methods.codes[:, :2].T)[0])
    generating = distinct.map_part("generator", partial(sharing.work, n=n, d=d))
    deciding = (
        len(data.X_test)
        * np.where(sharing.is_shareable(methods), 1e4, 3e5)[experiments[:, 1]]
    )
    return float(generating.sum() + deciding.sum())


def estimate(plans: Sequence[Plan], workers: int) -> dict[str, float]:
    """The size of several plans, which run one after another.

    `computations` counts distinct class states and decisions. `seconds` and `memory`
    (bytes, of one worker) are rough.
    """
    units = [unit for each in plans for unit in each.units]
    computations, memory = 0, 0.0
    for unit in units:
        data = unit.source.open(unit.backbone, unit.dataset)
        computations += build(unit, data.y, data.y_test).computations()
        memory = max(memory, BASE_MEMORY + 16 * (data.X.size + data.X_test.size))
    return {
        **{
            name: sum(getattr(each, name) for each in plans)
            for name in ("experiments", "left_out", "to_do")
        },
        "computations": computations,
        "units": len(units),
        "seconds": sum(
            each.work / CORE_SPEED / max(1, min(workers, len(each.units)))
            for each in plans
        ),
        "memory": memory,
    }
