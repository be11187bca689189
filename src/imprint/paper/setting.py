"""Where the paper's studies run: which packs of a folder play which part."""

import os
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from imprint import aggregators
from imprint.core.errors import FileError, ParameterError
from imprint.core.family import unknown

PUBLISHED = ("resnet18", "resnet50", "vit_b_16", "swin_b")
REGULARISATION = {"resnet18": 1e-4, "resnet50": 1e-4, "vit_b_16": 0.1, "swin_b": 0.05}
BENCHMARK = ("mnist", "fashionmnist", "cifar10")
COMBINED = "combidigits"
MAX = "max"
POOL = 100  # classes that "d in 1" draws from
MAPS = 10  # label maps for every d
ROLES = {
    "benchmark": "ten-class sets",
    "combined": COMBINED,
    "many": f"a data set of {POOL} classes or more",
}
"""The parts that packs play, and what plays them."""


@dataclass(frozen=True)
class Group:
    """Backbones that all have packs of all these data sets."""

    backbones: tuple[str, ...]
    datasets: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.backbones and self.datasets)


@dataclass(frozen=True)
class Setting:
    """The packs of a folder by the part they play; each part has a store of its own."""

    embeddings: str
    benchmark: Group
    """Ten-class sets: four tasks each."""
    combined: Group
    """Digits of four sources under ten labels."""
    many: Group
    """Sets of a hundred classes or more, for "d in 1"."""
    smallest: int
    """Rows of the smallest training class of the benchmark."""
    maps: int = MAPS
    """How many of the ten label maps of "d in 1" are used."""
    beside: str = ""
    """An aggregator that is asked what the paper asks of `max`; none where empty."""
    aggregator: str = MAX
    """What lets proxies decide where the paper uses `max`."""

    def group(self, role: str) -> Group:
        """The packs that play a part."""
        group: Group = getattr(self, role)
        return group

    @property
    def published(self) -> bool:
        """Whether these are the backbones of the paper, so that values can be compared one by one."""
        return set(self.benchmark.backbones) == set(PUBLISHED)

    @property
    def ways(self) -> "list[Setting]":
        """This setting as the paper has it, and with the other aggregator in the place of `max`."""
        return [self, *([replace(self, aggregator=self.beside)] if self.beside else [])]

    def to_json(self) -> dict[str, Any]:
        """Plain values, which `of` reads."""
        return asdict(self)

    @classmethod
    def of(cls, values: dict[str, Any]) -> "Setting":
        """What `to_json` gave."""
        benchmark, combined, many = (Group(tuple(values[r]["backbones"]), tuple(values[r]["datasets"])) for r in ROLES)
        groups = benchmark, combined, many
        return cls(values["embeddings"], *groups, values["smallest"], values["maps"], values.get("beside", ""))


def regularisation(backbone: str) -> float:
    """The weight decay of least squares: the published one of a published backbone, else 1e-4."""
    return REGULARISATION.get(backbone, 1e-4)


def discover(
    folder: str | os.PathLike[str],
    backbones: Sequence[str] = (),
    datasets: Sequence[str] = (),
    maps: int = MAPS,
    beside: str = "",
) -> Setting:
    """The packs `BACKBONE-DATASET.npz` of a folder, or those of the named backbones and data sets.

    A data set with a hundred classes or more serves "d in 1", `combidigits` itself, every other one the benchmark;
    where none of the paper's ten-class sets is there, those of a hundred classes serve it too. Each part takes the
    backbones that have all of its data sets. `beside` is an aggregator that is asked the same as `max`.
    """
    if not 1 <= maps <= MAPS:
        raise ParameterError(f"discover(maps={maps}): maps must be int from 1 to {MAPS}.")
    if beside:
        aggregators.family.resolve(beside)
    place = Path(folder)
    if not place.is_dir():
        raise FileError(f"There is no folder {place}.")
    classes = {tuple(p.stem.rsplit("-", 1)): sizes for p in sorted(place.glob("*-*.npz")) if (sizes := _class_sizes(p))}
    if not classes:
        raise FileError(f"{place} has no packs BACKBONE-DATASET.npz.")
    _check("backbone", backbones, {b for b, _ in classes}, place)
    _check("data set", datasets, {d for _, d in classes}, place)
    own = {(b, d): sizes for (b, d), sizes in classes.items() if b in (backbones or [b]) and d in (datasets or [d])}
    known = _known(own)
    many = [d for d in known if max(len(s) for (_, e), s in own.items() if e == d) >= POOL]
    digits = [d for d in known if d == COMBINED]
    rest = [d for d in known if d not in digits and (d not in many or not {*BENCHMARK} & {*known})]
    benchmark, combined, classes_of_many = (_group(own, ds, backbones) for ds in (rest, digits, many))
    if not benchmark:
        raise ParameterError(f"{place}: no backbone has packs of all of {', '.join(rest) or 'the benchmark'}.")
    smallest = min(min(own[b, d]) for b in benchmark.backbones for d in benchmark.datasets)
    return Setting(os.fspath(place), benchmark, combined, classes_of_many, smallest, maps, beside)


def _check(kind: str, asked: Sequence[str], known: Iterable[str], place: Path) -> None:
    for name in asked:
        if name not in known:
            raise unknown(f"{kind} in {place}", name, sorted(known))


def _known(packs: Iterable[tuple[str, str]]) -> list[str]:
    """The data sets, the paper's first and in its order."""
    found = {d for _, d in packs}
    return [*(d for d in BENCHMARK if d in found), *sorted(found - set(BENCHMARK))]


def _group(packs: Iterable[tuple[str, str]], datasets: Sequence[str], asked: Sequence[str]) -> Group:
    names = {b for b, _ in packs}
    ordered = asked or [*(b for b in PUBLISHED if b in names), *sorted(names - set(PUBLISHED))]
    there = set(packs)
    return Group(tuple(b for b in ordered if datasets and all((b, d) in there for d in datasets)), tuple(datasets))


def _class_sizes(path: Path) -> tuple[int, ...]:
    """How many training rows each class has; nothing for a file that is no pack of embeddings."""
    try:
        with zipfile.ZipFile(path) as file:
            if not {"train.npy", "train_labels.npy"} <= set(file.namelist()):
                return ()
            with file.open("train_labels.npy") as labels:
                y = np.lib.format.read_array(labels, allow_pickle=False)
    except (OSError, ValueError, zipfile.BadZipFile):
        raise FileError(f"{path} is not a readable pack.") from None
    return tuple(np.unique(y, return_counts=True)[1].tolist())
