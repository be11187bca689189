"""From a study to units of work: which experiments are missing, and which of them are
computed together.
"""

import hashlib
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import compress
from typing import NamedTuple

import numpy as np

from imprint.core.arrays import Array, factorize
from imprint.core.errors import ParameterError
from imprint.study import sharing
from imprint.study.blocks import open_data
from imprint.study.grid import Methods
from imprint.study.possible import possible_experiments
from imprint.study.study import Data, Source, Study
from imprint.study.work_graph import build

# part of every key; to be changed if the same text means another computation
KEY_VERSION = "2"
KEY_BYTES = 16
# Of a study, by default: a grid that was meant to be smaller is noticed before its plan
# fills the memory. A matter of taste.
MAX_EXPERIMENTS = 2_000_000

# of a process that has loaded the libraries, in bytes; for estimates, which are rough
BASE_MEMORY = 300e6

# Multiplications per test row of a decision, approximately: those that share a product
# of test rows and proxies, and those by a `Head`.
SHARED_DECISION = 1e4
SINGLE_DECISION = 3e5


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
    keys: bytes  # the content keys of the experiments, one after the other
    work: float  # multiplications, approximately

    @property
    def key(self) -> str:
        """The name of the unit: a digest of its experiments."""
        return hashlib.sha256(self.keys).hexdigest()[:32]

    def part(self, indices: Sequence[int]) -> "Unit":
        """The unit of some of its experiments."""
        keys = [self.keys[i * KEY_BYTES :][:KEY_BYTES] for i in indices]
        experiments = self.experiments[list(indices)]
        return replace(self, experiments=experiments, keys=b"".join(keys))

    def texts(self, indices: Sequence[int]) -> list[str]:
        """The task, method and seed of some of its experiments."""
        task, method, seed = self.experiments[list(indices)].T
        texts = []
        for t, m, s in zip(task.tolist(), self.methods.take(method), seed.tolist()):
            texts.append(f"{self.tasks[t]}, {m}, seed {self.seeds[s]}")
        return texts

    def __str__(self) -> str:
        texts = self.methods.map_part("norm_pre", str).tolist()
        norms = " or ".join(dict.fromkeys(texts))
        generator = type(self.methods[0].generator).__name__
        return f"{self.backbone}, {self.dataset}, {norms} / {generator}"


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
    """The units of the experiments that are not finished.

    Experiments of several studies with the same pack and type of generator form one
    unit, and share its work. An impossible combination is refused by name.

    Parameters
    ----------
    study : Study or sequence of Study
        Several studies share their common work.
    source : Source
        Opens the embeddings.
    done : container of bytes
        The keys of finished experiments. [default: none]
    limit : int, optional
        A study of more experiments is refused; None means no limit. [default:
        2,000,000]

    Returns
    -------
    Plan
        The units, longest first.
    """
    studies = [study] if isinstance(study, Study) else list(study)
    for each in studies:
        if limit is not None and each.points > limit:
            raise ParameterError(
                f"Study(name={each.name!r}): it names {each.points:,} experiments and"
                f" the limit is {limit:,}; make it smaller, or raise the limit."
            )
    joint = _JointStudy.of(studies)
    fingerprints: dict[str, str] = {}
    units: list[Unit] = []
    count = 0
    for backbone, dataset in joint.packs():
        data = open_data(source, backbone, dataset)
        fingerprints[f"{backbone}-{dataset}"] = data.fingerprint
        experiments = joint.experiments(backbone, dataset, data)
        count += len(experiments)
        distinct = experiments[factorize(*experiments.T)[0]]
        pack = _OpenPack(source, backbone, dataset, data)
        units += _units(joint, pack, distinct, done)
    combinations = 0
    for each in studies:
        combinations += len(each.instances) * len(each.methods) * len(each.seeds)
    return Plan(
        experiments=count,
        left_out=combinations - count,
        units=tuple(sorted(units, key=lambda unit: -unit.work)),
        fingerprints=fingerprints,
    )


class _OpenPack(NamedTuple):
    """A pack of embeddings and its names."""

    source: Source
    backbone: str
    dataset: str
    data: Data


@dataclass(frozen=True, eq=False)
class _JointStudy:
    """Several studies together: their distinct tasks, methods and seeds."""

    studies: list[Study]
    task_texts: tuple[str, ...]
    methods: Methods
    seeds: tuple[int, ...]
    method_indices: list[Array]  # for each study, the indices of its methods

    @classmethod
    def of(cls, studies: list[Study]) -> "_JointStudy":
        methods, indices = Methods.union([study.methods for study in studies])
        # Dictionaries keep the order of appearance.
        task_texts: dict[str, None] = {}
        seeds: dict[int, None] = {}
        for study in studies:
            task_texts.update(dict.fromkeys(study.task_texts))
            seeds.update(dict.fromkeys(study.seeds))
        return cls(studies, tuple(task_texts), methods, tuple(seeds), indices)

    @cached_property
    def method_texts(self) -> list[bytes]:
        """The texts of all methods."""
        return self.methods.encoded()

    @cached_property
    def generator_types(self) -> Array:
        """The type of the generator of each method."""
        return self.methods.map_part("generator", type)

    def packs(self) -> list[tuple[str, str]]:
        """The backbones and data sets, each pair once."""
        packs: dict[tuple[str, str], None] = {}
        for study in self.studies:
            packs.update(dict.fromkeys(study.packs))
        return list(packs)

    def experiments(
        self,
        backbone: str,
        dataset: str,
        data: Data,
    ) -> Array:
        """The possible experiments of all studies on one pack, as indices of their
        task, method and seed.  # (n, 3)
        """
        experiments = []
        for study, method in zip(self.studies, self.method_indices):
            if (backbone, dataset) not in study.packs:
                continue
            task = [self.task_texts.index(text) for text in study.task_texts]
            seed = [self.seeds.index(seed) for seed in study.seeds]
            # (tasks, methods, seeds, 3)
            grid = np.meshgrid(task, method, seed, indexing="ij")
            points = np.stack(grid, axis=-1)
            possible = possible_experiments(study, data, f"{backbone}, {dataset}")
            experiments.append(points[possible])
        return np.concatenate(experiments)


def _units(
    joint: _JointStudy,
    pack: _OpenPack,
    experiments: Array,
    done: Container[bytes],
) -> Iterator[Unit]:
    """The unfinished experiments on one pack, a unit for each type of generator."""
    data = pack.data
    type_of = joint.generator_types[experiments[:, 1]]
    for generator in dict.fromkeys(joint.generator_types.tolist()):
        is_member = type_of == generator
        members = experiments[is_member]
        keys = experiment_keys(
            data.fingerprint,
            joint.task_texts,
            joint.method_texts,
            joint.seeds,
            members,
        )
        missing = np.array([key not in done for key in keys], dtype=bool)
        if not missing.any():
            continue
        # A unit is sent to a worker, so it holds only the methods that it needs.
        used, members[:, 1] = np.unique(members[:, 1], return_inverse=True)
        methods = joint.methods.take(used)
        members = members[missing].astype(np.int32)
        yield Unit(
            source=pack.source,
            backbone=pack.backbone,
            dataset=pack.dataset,
            fingerprint=data.fingerprint,
            tasks=joint.task_texts,
            methods=methods,
            seeds=joint.seeds,
            experiments=members,
            keys=b"".join(compress(keys, missing)),
            work=_work(methods, members, data),
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
    keys = []
    for t, m, s in zip(*experiments.T.tolist()):
        text = starts[t] + methods[m] + ends[s]
        keys.append(hashlib.sha256(text).digest()[:KEY_BYTES])
    return keys


def _work(
    methods: Methods,
    experiments: Array,
    data: Data,
) -> float:
    """An estimate of the multiplications for proxies and decisions, by which long units
    start first.
    """
    n, d = data.X.shape
    # by norm_pre and generator
    first, _ = factorize(*methods.codes[:, :2].T)
    distinct = methods.take(first)
    generating = distinct.map_part("generator", partial(sharing.work, n=n, d=d))
    is_shareable = sharing.is_shareable(methods)[experiments[:, 1]]
    per_row = np.where(is_shareable, SHARED_DECISION, SINGLE_DECISION)
    deciding = len(data.X_test) * per_row
    return float(generating.sum() + deciding.sum())


def estimate(plans: Sequence[Plan]) -> dict[str, float]:
    """The size of several plans.

    `computations` counts distinct class states and decisions. `memory` (bytes, of one
    worker) is rough. The time is not estimated: that of a multiplication differs up to
    a hundredfold between generators. A run extrapolates it from finished units.
    """
    computations = 0
    units = 0
    memory = 0.0
    for each in plans:
        units += len(each.units)
        for unit in each.units:
            data = open_data(unit.source, unit.backbone, unit.dataset)
            graph = build(unit, data.y, data.y_test, data.blocks)
            computations += graph.computations()
            # Four copies of float32 values, roughly.
            rows = 16 * (data.X.size + data.X_test.size)
            memory = max(memory, BASE_MEMORY + rows)
    return {
        "experiments": sum(each.experiments for each in plans),
        "left_out": sum(each.left_out for each in plans),
        "to_do": sum(each.to_do for each in plans),
        "computations": computations,
        "units": units,
        "memory": memory,
    }
