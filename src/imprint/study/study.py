"""What is studied: backbones x data sets x tasks x methods x seeds, as one frozen value."""

import os
import runpy
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from imprint import tasks
from imprint.core.component import Component
from imprint.core.errors import FileError, ParameterError
from imprint.core.family import unknown
from imprint.method import Method
from imprint.normalisers._base import Normaliser
from imprint.study.grid import GRID_KEYS, RULES, TEXT, Grid, Holds, checked, known_keys, method_from_text
from imprint.study.methods import Methods

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow

KEYS = {
    "name": TEXT._replace(one=True),
    "embeddings": TEXT._replace(one=True),
    "backbones": TEXT,
    "datasets": TEXT,
    "tasks": Holds((str, tasks.Task), "a text such as 'even | shots(n=5)'"),
    "shots": Holds((int,), "int >= 1", least=1),
    "recipes": TEXT,
    "grid": Holds((Grid, dict), f"a mapping of {', '.join(GRID_KEYS)}"),
    "seeds": Holds((int,), "int >= 0 and below 2**63", least=0),
    "rules": TEXT,
}
"""What each key holds; all errors about values follow from it."""
NEEDED = ("backbones", "datasets", "tasks", "seeds")


class Instance(NamedTuple):
    """Where a method is tried: the embeddings of a data set by a backbone, and a task on them."""

    backbone: str
    dataset: str
    task: str


@dataclass(frozen=True, kw_only=True)
class Study:
    """A study. The names below are also the keys of a YAML file; one value may stand for a list of one.

    `recipes` holds names of published methods or texts such as `l2 / mean / l2 / l2 / max`; `grid` holds products of
    parts. Methods that are the same are counted once. `shots` cuts every task to so many rows a class. `rules` leaves
    out points of the product on purpose; a point that makes no sense and is not left out is refused by name.

    >>> study = Study(backbones="tinynet", datasets=["mnist", "cifar10"], tasks=["all", "even"], recipes="qi2018")
    >>> len(study.instances), len(study.methods), len(study.seeds)
    (4, 1, 1)
    """

    name: str = "study"
    embeddings: str = ""
    """Folder of packs `BACKBONE-DATASET.npz`; in a file, relative to that file."""
    backbones: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ("all",)
    shots: tuple[int, ...] = ()
    recipes: tuple[str, ...] = ()
    grid: tuple[Grid, ...] = ()
    seeds: tuple[int, ...] = (0,)
    rules: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for key, holds in KEYS.items():
            value = checked("Study", key, getattr(self, key), holds)
            if key == "tasks":
                value = tuple(str(tasks.resolve(t)) for t in value)
            if key == "grid":
                value = tuple(g if isinstance(g, Grid) else Grid.of(g) for g in value)
            if key in NEEDED and not value:
                raise ParameterError(f"Study({key}=[]): {key} must name at least one.")
            object.__setattr__(self, key, value if holds.one else tuple(dict.fromkeys(value)))
        if not self.recipes and not self.grid:
            raise ParameterError("Study(recipes=[], grid=[]): a study needs at least one method.")
        for rule in self.rules:
            if rule not in RULES:
                raise unknown("rule", rule, RULES)
        norms = [(m.norm_pre, m.norm_inf) for m in self._named]
        if not any(self._keeps(*pair) for pair in chain(norms, *(g.norms() for g in self.grid))):
            raise ParameterError(f"Study(rules={list(self.rules)}): the rules leave no method.")

    @property
    def points(self) -> int:
        """How many experiments the product has before rules leave any out; found without making them."""
        places = len(self.backbones) * len(self.datasets) * len(self.tasks) * max(1, len(self.shots))
        return places * len(self.seeds) * (len(self.recipes) + sum(g.points for g in self.grid))

    @cached_property
    def methods(self) -> Methods:
        """The methods in order, each once: recipes first, then the grid, its last axis fastest."""
        every = [*map(Methods.single, self._named), *(g.methods() for g in self.grid)]
        found = every[0] if len(every) == 1 else Methods.union(every)
        pre, _, _, inf, _ = (own.values() for own in found.components)
        kept = np.array([[self._keeps(p, i) for i in inf] for p in pre])
        return found.take(kept[found.codes[:, 0], found.codes[:, 3]])

    @property
    def method_texts(self) -> list[str]:
        """The texts of the methods."""
        return list(self.methods.texts())

    @cached_property
    def _named(self) -> list[Method]:
        return [method_from_text(text) for text in self.recipes]

    def _keeps(self, norm_pre: Normaliser, norm_inf: Normaliser) -> bool:
        """Whether the rules keep methods with these norms, as far as that depends on norms."""
        keeps = (RULES[rule].keeps for rule in self.rules)
        return all(keep is None or keep(norm_pre, norm_inf) for keep in keeps)

    @property
    def instances(self) -> tuple[Instance, ...]:
        """Backbone, data set and task, the task fastest."""
        cut = [f" | shots(n={n})" for n in self.shots] or [""]
        texts = [str(tasks.resolve(f"{t}{c}")) for t, c in product(self.tasks, cut)]
        return tuple(Instance(*point) for point in product(self.backbones, self.datasets, texts))

    @classmethod
    def of(cls, values: "Mapping[str, Any]") -> "Study":
        """The study that a mapping describes, such as a YAML file's."""
        return cls(**known_keys("study", values, KEYS))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Study":
        """Read a `.yaml` or `.json` file of the constructor's names, or a `.py` file that defines `study`."""
        path = Path(path)
        try:
            found = runpy.run_path(str(path)).get("study") if path.suffix == ".py" else cls.of(_parse(path))
        except FileError:
            raise
        except OSError as e:
            raise FileError(f"Cannot read {path}: {e.strerror or e}.") from None
        except ParameterError as e:
            raise ParameterError(f"{path}: {e}") from None
        if not isinstance(found, Study):
            raise ParameterError(f"{path}: a study in Python defines `study = Study(...)`.")
        return found.at(path.parent / found.embeddings) if found.embeddings else found

    def at(self, folder: str | os.PathLike[str]) -> "Study":
        """The same study with its embeddings in another folder."""
        return replace(self, embeddings=os.fspath(folder))

    def to_json(self) -> dict[str, Any]:
        """The study as plain values, which `Study.of` reads."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}

    def results(self, folder: str | os.PathLike[str]) -> "pyarrow.Table":
        """The finished experiments of this study that a run left in `folder`, in the study's order."""
        from imprint.study.store import results

        return results(self, folder)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    if isinstance(value, Grid):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    return str(value) if isinstance(value, Component) else value


def _parse(path: Path) -> Any:
    import yaml

    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError, RecursionError) as e:
        where = getattr(e, "problem_mark", None)
        line = f" (line {where.line + 1})" if where else ""
        raise FileError(f"Cannot read {path}: it is not YAML{line}.") from None
