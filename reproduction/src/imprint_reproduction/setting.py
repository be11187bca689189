"""The setting of the paper's studies (the packs of a folder by role), and the studies
of methods on these packs.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from imprint.core.errors import FileError, ParameterError
from imprint.extend import open_pack, unknown
from imprint.study import Study, method_from_text

WEIGHT_DECAY = {"resnet18": 1e-4, "resnet50": 1e-4, "vit_b_16": 0.1, "swin_b": 0.05}
"""The weight decay of least squares for each backbone of the paper."""
BENCHMARK = ("mnist", "fashionmnist", "cifar10")
COMBINED = "combidigits"
MAX = "max"
POOL = 100  # classes that "d in 1" draws from
MAPS = 10  # label maps for every d
SEEDS = (17121997, 123987, 12412312)
SHOT_SEEDS = (14057, 994348, 23092007, 123456, 98765)
TASKS = ("all", "even", "odd", "short")
ROLES = {
    "benchmark": "ten-class sets",
    "combined": COMBINED,
    "many": f"a data set of {POOL} classes or more",
}
"""The roles of packs, and the data sets in them."""


@dataclass(frozen=True)
class Group:
    """Backbones, each with packs of all these data sets."""

    backbones: tuple[str, ...]
    datasets: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.backbones and self.datasets)


@dataclass(frozen=True)
class Setting:
    """The packs of a folder by role; each role has a store of its own."""

    embeddings: str
    benchmark: Group  # ten-class sets, with four tasks each
    combined: Group  # digits from four sources under ten labels
    many: Group  # sets of at least a hundred classes, for "d in 1"
    smallest: int  # rows of the smallest training class of the benchmark
    maps: int = MAPS  # label maps of "d in 1", up to ten
    # an aggregator with which the studies of `max` are repeated; empty for none
    beside: str = ""
    aggregator: str = MAX  # replaces `max` in the methods of the paper

    def group(self, role: str) -> Group:
        """The packs of a role."""
        group: Group = getattr(self, role)
        return group

    @property
    def published(self) -> bool:
        """Whether these are the backbones of the paper, so that values can be compared
        directly.
        """
        return set(self.benchmark.backbones) == set(WEIGHT_DECAY)

    @property
    def by_aggregator(self) -> "list[Setting]":
        """This setting with `max`, and the same with the other aggregator if there is
        one.
        """
        return [self, *([replace(self, aggregator=self.beside)] if self.beside else [])]

    @classmethod
    def of(cls, values: dict[str, Any]) -> "Setting":
        """The setting from the values of `dataclasses.asdict`."""
        groups = {
            r: Group(tuple(values[r]["backbones"]), tuple(values[r]["datasets"]))
            for r in ROLES
        }
        return cls(**{"beside": "", **values, **groups, "aggregator": MAX})


def regularisation(backbone: str) -> float:
    """The weight decay of least squares: the published one for a published backbone,
    otherwise 1e-4.
    """
    return WEIGHT_DECAY.get(backbone, 1e-4)


def discover(
    folder: str | os.PathLike[str],
    backbones: Sequence[str] = (),
    datasets: Sequence[str] = (),
    maps: int = MAPS,
    beside: str = "",
) -> Setting:
    """The packs `BACKBONE-DATASET.npz` of a folder, or those of the named backbones and
    data sets.

    Data sets with at least a hundred classes are used for "d in 1", `combidigits` for
    CombiDigits, and all others for the benchmark. If none of the paper's ten-class sets
    is there, sets of a hundred classes are used for the benchmark too. Each role has
    the backbones with packs of all of its data sets. With the aggregator `beside`, the
    studies of `max` are repeated.
    """
    if not 1 <= maps <= MAPS:
        raise ParameterError(
            f"discover(maps={maps}): maps must be int from 1 to {MAPS}."
        )
    if beside:
        method_from_text(f"l2 / mean / l2 / l2 / {beside}")
    path = Path(folder)
    if not path.is_dir():
        raise FileError(f"There is no folder {path}.")
    sizes_of = {
        tuple(file.stem.rsplit("-", 1)): _class_sizes(file)
        for file in sorted(path.glob("*-*.npz"))
    }
    classes = {pack: sizes for pack, sizes in sizes_of.items() if sizes}
    if not classes:
        raise FileError(f"{path} has no packs BACKBONE-DATASET.npz.")
    for kind, asked, known in zip(
        ("backbone", "data set"), (backbones, datasets), map(set, zip(*classes))
    ):
        for name in asked:
            if name not in known:
                raise unknown(f"{kind} in {path}", name, sorted(known))
    packs = {
        (b, d): sizes
        for (b, d), sizes in classes.items()
        if b in (backbones or [b]) and d in (datasets or [d])
    }
    names = _paper_first({d for _, d in packs}, BENCHMARK)
    candidates = _paper_first({b for b, _ in packs}, WEIGHT_DECAY)

    def group(datasets: Sequence[str]) -> Group:
        complete = (
            b for b in candidates if datasets and all((b, d) in packs for d in datasets)
        )
        return Group(tuple(complete), tuple(datasets))

    many = [
        d for d in names if max(len(s) for (_, e), s in packs.items() if e == d) >= POOL
    ]
    rest = [
        d
        for d in names
        if d != COMBINED and (d not in many or not {*BENCHMARK} & {*names})
    ]
    benchmark, combined = group(rest), group([d for d in names if d == COMBINED])
    if not benchmark:
        raise ParameterError(
            f"{path}: no backbone has packs of all of"
            f" {', '.join(rest) or 'the benchmark'}."
        )
    smallest = min(
        min(packs[b, d]) for b in benchmark.backbones for d in benchmark.datasets
    )
    return Setting(
        os.fspath(path), benchmark, combined, group(many), smallest, maps, beside
    )


def _paper_first(names: set[str], of_paper: Iterable[str]) -> list[str]:
    """The names, those of the paper first and in its order."""
    return [
        *(name for name in of_paper if name in names),
        *sorted(names - set(of_paper)),
    ]


def _class_sizes(path: Path) -> tuple[int, ...]:
    """The number of training rows of each class; empty for a file that is not a pack of
    embeddings.
    """
    with open_pack(path) as pack:
        if not {"train", "train_labels"} <= set(pack.files):
            return ()
        return tuple(np.unique(pack["train_labels"], return_counts=True)[1].tolist())


def role_study(
    setting: Setting,
    role: str,
    methods: Iterable[str],
    tasks: Sequence[str] = TASKS,
    seeds: Sequence[int] = SEEDS,
    shots: Sequence[int] = (),
) -> list[Study]:
    """The study of some methods on the packs of one role, after which it is named; none
    if there are no such packs.

    In a method, `{reg}` stands for the weight decay of the backbone, and `max` for the
    aggregator of the setting.
    """
    group = setting.group(role)
    if not group:
        return []
    texts = [
        method_text(method, b, setting.aggregator)
        for method in methods
        for b in group.backbones
    ]
    study = Study(
        name=role,
        embeddings=setting.embeddings,
        backbones=group.backbones,
        datasets=group.datasets,
        tasks=tuple(tasks),
        seeds=tuple(seeds),
        shots=tuple(shots),
        recipes=tuple(dict.fromkeys(texts)),
    )
    return [study]


@cache
def method_text(method: str, backbone: str, aggregator: str = MAX) -> str:
    """A method as results name it: with the weight decay of the backbone and an
    aggregator in place of `max`.
    """
    text = with_aggregator(method, aggregator).replace(
        "{reg}", repr(regularisation(backbone))
    )
    return str(method_from_text(text))


def with_aggregator(method: str, aggregator: str) -> str:
    """The method with `max` replaced by an aggregator; other aggregators stay."""
    return method.replace(f" / {MAX}", f" / {aggregator}")


NORMS = tuple(
    (pre, post, inf)
    for pre, inf in (("none", "none"), ("none", "l2"), ("l2", "l2"))
    for post in ("none", "l2", "quantile")
)


def every_norm(pattern: str) -> tuple[str, ...]:
    """The methods that a pattern describes: `*` stands for the norms of the nine
    settings of the paper.
    """
    pre, generator, post, inf, aggregator = pattern.split(" / ")
    fitting = (
        norms
        for norms in NORMS
        if all(p in ("*", norm) for p, norm in zip((pre, post, inf), norms))
    )
    return tuple(
        f"{pre} / {generator} / {post} / {inf} / {aggregator}"
        for pre, post, inf in fitting
    )


def cosine(generator: str, aggregator: str = MAX) -> str:
    """A generator with L2 throughout."""
    return f"l2 / {generator} / l2 / l2 / {aggregator}"


def unnormalised(generator: str) -> str:
    """A generator with nothing normalised, and `max`."""
    return f"none / {generator} / none / none / {MAX}"
