"""A study as one frozen value (backbones x data sets x tasks x methods x seeds), and
the sources of its embeddings.
"""

import os
import runpy
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product, starmap
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from imprint import tasks
from imprint.core.arrays import Array, digest
from imprint.core.errors import (
    FileError,
    ParameterError,
    reporting,
    unknown,
)
from imprint.core.files.atomic import home
from imprint.embeddings.pack import Pack, open_unpacked
from imprint.normalisers.none import NoNorm
from imprint.study.grid import (
    Declaration,
    Grid,
    Methods,
    key,
    method_from_text,
)

if TYPE_CHECKING:
    import pyarrow

SELECTS = ":"  # between a backbone and the blocks that are selected
ALL, LAST = "all", "last"  # selections of blocks
Data = Pack
"""The embeddings of a data set, computed by a backbone."""


class Source(Protocol):
    """Anything that opens embeddings by name. It is sent to workers, so it must be
    picklable.
    """

    def open(self, backbone: str, dataset: str) -> Data:
        """The embeddings; an unknown name is an error that lists the known ones."""
        ...


@dataclass(frozen=True)
class Packs:
    """A folder of packs `BACKBONE-DATASET.npz`, unpacked once into a cache and
    memory-mapped.
    """

    folder: str
    cache: str = ""

    def open(self, backbone: str, dataset: str) -> Data:
        name = f"{backbone}-{dataset}.npz"
        path = Path(self.folder) / name
        if path.name != name or "\\" in name or "\0" in name:
            raise ParameterError(
                f"Packs({self.folder!r}): {backbone}-{dataset} cannot be a file in this"
                " folder."
            )
        if not path.is_file():
            packs = Path(self.folder).glob("*-*.npz")
            raise unknown("pack", name, sorted(pack.name for pack in packs))
        cache = Path(self.cache) if self.cache else home() / "packs"
        return open_unpacked(path, cache)


@dataclass(frozen=True, eq=False)
class Held:
    """Embeddings held in memory: `Held({("tinynet", "mnist"): (X, y, X_test,
    y_test)})`.
    """

    arrays: dict[tuple[str, str], tuple[Array, Array, Array, Array]]
    _digests: dict[tuple[str, str], str] = field(default_factory=dict, repr=False)

    def open(self, backbone: str, dataset: str) -> Data:
        key = (backbone, dataset)
        if key not in self.arrays:
            known = map("-".join, self.arrays)
            raise unknown("pair of backbone and data set", "-".join(key), known)
        X, y, X_test, y_test = map(np.asarray, self.arrays[key])
        # A digest of large arrays takes a while, and each unit opens them.
        if key not in self._digests:
            self._digests[key] = digest((X, y, X_test, y_test))
        return Data(X, y, X_test, y_test, self._digests[key])


class Instance(NamedTuple):
    """A benchmark task: the embeddings of a data set by a backbone, and a task on
    them.
    """

    backbone: str
    dataset: str
    task: str


CONSISTENT_PARTS = "consistent_parts"
RULES = ("matching_norms", "enough_proxies", CONSISTENT_PARTS)
"""`matching_norms` leaves out methods whose `norm_inf` differs from `norm_pre`, unless
`norm_pre` is `none`. `enough_proxies` leaves out an aggregator where a task has fewer
proxies than it needs. `consistent_parts` leaves out an aggregator that cannot use the
proxies of a generator, such as `kernel` those of `k_least_squares`.
"""


def _task_text(task: str | tasks.Task) -> str:
    return str(tasks.resolve(task))


@dataclass(frozen=True, kw_only=True)
class Study(Declaration):
    """A study. The parameters are also the keys of a YAML file; a list of one may be
    written as a single value.

    `recipes` holds names of published methods or texts such as `l2 / mean / l2 / l2 /
    max`; `grid` holds grids of components. Equal methods are counted once. `shots`
    limits every task to that many rows per class. `rules` leaves out combinations; an
    impossible combination that no rule leaves out is refused by name.
    """

    name: str = key("study", (str,), "text")
    embeddings: str = key("", (str,), "text")
    """Folder of packs `BACKBONE-DATASET.npz`; in a file, relative to that file."""
    backbones: tuple[str, ...] = key((), (str,), "text", required=True)
    blocks: tuple[str, ...] = key((), (str,), "text such as last or all")
    """Selections of blocks of the embeddings: `last`, `all`, or names of blocks joined
    by `+`. Results name them after the backbone, such as `tinynet:last`.
    """
    datasets: tuple[str, ...] = key((), (str,), "text", required=True)
    tasks: tuple[str, ...] = key(
        ("all",),
        (str, tasks.Task),
        "a text such as 'even | shots(n=5)'",
        required=True,
        convert=_task_text,
    )
    shots: tuple[int, ...] = key((), (int,), "int >= 1", minimum=1)
    recipes: tuple[str, ...] = key((), (str,), "text")
    grid: tuple[Grid, ...] = key(
        (), (Grid, dict), f"a mapping of {', '.join(Grid.names())}", convert=Grid.of
    )
    seeds: tuple[int, ...] = key(
        (0,), (int,), "int >= 0 and below 2**63", minimum=0, required=True
    )
    rules: tuple[str, ...] = key((), (str,), "text")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.recipes and not self.grid:
            raise ParameterError(
                "Study(recipes=[], grid=[]): a study needs at least one method."
            )
        for rule in self.rules:
            if rule not in RULES:
                raise unknown("rule", rule, RULES)
        for text in self.recipes:
            method_from_text(text)  # refuses what is not a method
        if CONSISTENT_PARTS not in self.rules:
            for grid in self.grid:
                grid.check_consistent(CONSISTENT_PARTS)

    @property
    def points(self) -> int:
        """The number of combinations, before rules leave any out and equal methods are
        counted once.
        """
        packs = len(self.packs)
        tasks = len(self.tasks) * max(1, len(self.shots))
        methods = len(self.recipes) + sum(grid.points for grid in self.grid)
        return packs * tasks * len(self.seeds) * methods

    @cached_property
    def methods(self) -> Methods:
        """The methods, each once: recipes first, then the grids."""
        named = [Methods.single(method_from_text(text)) for text in self.recipes]
        of_grids = [grid.methods() for grid in self.grid]
        methods, _ = Methods.union([*named, *of_grids])
        if "matching_norms" in self.rules:
            norm_pre = methods.map_part("norm_pre", str)
            norm_inf = methods.map_part("norm_inf", str)
            is_plain = methods.has_type("norm_pre", NoNorm)
            methods = methods.take(is_plain | (norm_pre == norm_inf))
        if CONSISTENT_PARTS in self.rules:
            methods = methods.take(methods.are_consistent())
        if not len(methods):
            raise ParameterError(
                f"Study(rules={list(self.rules)}): the rules leave no method."
            )
        return methods

    @property
    def networks(self) -> tuple[str, ...]:
        """The backbones, each with every selection of blocks; the selection varies
        fastest.
        """
        if not self.blocks:
            return self.backbones
        pairs = product(self.backbones, self.blocks)
        return tuple(SELECTS.join(pair) for pair in pairs)

    @property
    def packs(self) -> tuple[tuple[str, str], ...]:
        """All pairs of such a network and a data set."""
        return tuple(product(self.networks, self.datasets))

    @property
    def instances(self) -> tuple[Instance, ...]:
        """All combinations of backbone, data set and task; the task varies fastest."""
        combinations = product(self.networks, self.datasets, self.task_texts)
        return tuple(starmap(Instance, combinations))

    @cached_property
    def task_texts(self) -> tuple[str, ...]:
        """The texts of the tasks, each with every number of shots."""
        suffixes = [f" | shots(n={n})" for n in self.shots]
        texts = []
        for task, suffix in product(self.tasks, suffixes or [""]):
            texts.append(_task_text(task + suffix))
        # Two texts may be one task: `even | shots(n=5)` and `even|shots(n=5)`.
        return tuple(dict.fromkeys(texts))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Study":
        """Read a `.yaml` or `.json` file with these keys, or a `.py` file that defines
        `study`.
        """
        path = Path(path)
        study: object
        try:
            with reporting("read", path):
                if path.suffix == ".py":
                    study = runpy.run_path(str(path)).get("study")
                else:
                    study = cls.of(_parse(path))
        except ParameterError as e:
            raise ParameterError(f"{path}: {e}") from None
        if not isinstance(study, Study):
            raise ParameterError(
                f"{path}: a study in Python defines `study = Study(...)`."
            )
        if not study.embeddings:
            return study
        # Relative to the file, so that it can be run from any folder.
        return study.at(path.parent / study.embeddings)

    def at(self, folder: str | os.PathLike[str]) -> "Study":
        """The same study with its embeddings in another folder."""
        return replace(self, embeddings=os.fspath(folder))

    def source(self) -> Packs:
        """The folder of its embeddings."""
        if not self.embeddings:
            raise ParameterError(
                "Study(embeddings=''): name the folder of the embeddings."
            )
        if not os.path.isdir(self.embeddings):
            raise ParameterError(
                f"Study(embeddings={self.embeddings!r}): there is no such folder."
            )
        return Packs(self.embeddings)

    def results(self, folder: str | os.PathLike[str]) -> "pyarrow.Table":
        """The finished experiments of this study in the folder of a run, in the study's
        order.
        """
        from imprint.study.store import Store

        return Store(folder).results(self)


def _parse(path: Path) -> object:
    """The contents of a YAML file; JSON is YAML too."""
    import yaml

    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError, RecursionError) as e:
        position = getattr(e, "problem_mark", None)
        line = f" (line {position.line + 1})" if position else ""
        raise FileError(f"Cannot read {path}: it is not YAML{line}.") from None
