"""What is studied: backbones x data sets x tasks x methods x seeds, as one frozen value."""

import json
import os
import runpy
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from imprint import tasks
from imprint.core.errors import FileError, ParameterError
from imprint.core.family import unknown
from imprint.method import Method
from imprint.study.grid import RULES, Grid, as_tuple, method_from_text

if TYPE_CHECKING:
    import pyarrow

METHOD_RULES = {name: rule for name, rule in RULES.items() if rule.of_method}


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
        grids = tuple(g if isinstance(g, Grid) else Grid.of(g) for g in as_tuple(self.grid))
        object.__setattr__(self, "grid", grids)
        for f in fields(self):
            if f.name not in ("name", "embeddings"):
                object.__setattr__(self, f.name, tuple(dict.fromkeys(as_tuple(getattr(self, f.name)))))
        object.__setattr__(self, "tasks", tuple(dict.fromkeys(str(tasks.resolve(t)) for t in self.tasks)))
        for name in ("backbones", "datasets", "tasks", "seeds"):
            if not getattr(self, name):
                raise ParameterError(f"Study({name}=[]): {name} must name at least one.")
        if not self.recipes and not self.grid:
            raise ParameterError("Study(recipes=[], grid=[]): a study needs at least one method.")
        self._check_numbers("seeds", 0)
        self._check_numbers("shots", 1)
        for rule in self.rules:
            if rule not in RULES:
                raise unknown("rule", rule, RULES)
        if not self.methods:
            raise ParameterError(f"Study(rules={list(self.rules)}): the rules leave no method.")

    def _check_numbers(self, name: str, least: int) -> None:
        for value in getattr(self, name):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ParameterError(f"Study({name}=[{value!r}]): {name} must be int >= {least}.")

    @property
    def methods(self) -> tuple[Method, ...]:
        """The methods in order, each once: recipes first, then the grid, its last axis fastest."""
        named = (method_from_text(text) for text in self.recipes)
        every = (m for source in (named, *(g.methods() for g in self.grid)) for m in source)
        kept = (m for m in every if all(METHOD_RULES[r].keeps(m) for r in self.rules if r in METHOD_RULES))
        return tuple(dict.fromkeys(kept))

    @property
    def instances(self) -> tuple[Instance, ...]:
        """Backbone, data set and task, the task fastest."""
        cut = [f" | shots(n={n})" for n in self.shots] or [""]
        texts = [str(tasks.resolve(f"{t}{c}")) for t, c in product(self.tasks, cut)]
        return tuple(Instance(*point) for point in product(self.backbones, self.datasets, texts))

    @classmethod
    def of(cls, values: Any) -> "Study":
        """The study that a mapping describes, such as a YAML file's."""
        known = [f.name for f in fields(cls)]
        if not isinstance(values, Mapping):
            raise ParameterError(f"A study is a mapping of {', '.join(known)}.")
        for key in values:
            if key not in known:
                raise unknown("key of a study", key, known)
        return cls(**{str(k): v for k, v in values.items()})

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Study":
        """Read a `.yaml` or `.json` file of the constructor's names, or a `.py` file that defines `study`."""
        path = Path(path)
        try:
            found = runpy.run_path(str(path)).get("study") if path.suffix == ".py" else cls.of(_parse(path))
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
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return plain

    def results(self, folder: str | os.PathLike[str]) -> "pyarrow.Table":
        """The finished cells of this study that a run left in `folder`, in the study's order."""
        from imprint.study.results import results

        return results(self, folder)


def _parse(path: Path) -> Any:
    import yaml

    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as e:
        where = getattr(e, "problem_mark", None)
        line = f" (line {where.line + 1})" if where else ""
        raise FileError(f"Cannot read {path}: it is not YAML{line}.") from None
