"""An artefact of the paper (a table or figure), and the results of a run from which it is drawn."""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from imprint.core.errors import FileError
from imprint.core.files.atomic import atomic_write
from imprint.core.types import Array
from imprint.paper.setting import MAX, ROLES, Setting
from imprint.paper.work import Work, spelling
from imprint.report.sections import Section
from imprint.stats import Comparison, compare
from imprint.stats.rank_tests import rank_rows
from imprint.study import Instance
from imprint.study.store import Store

PAPER, FORMAT = "paper.json", 1


@dataclass(frozen=True, eq=False)
class Scores:
    """Accuracies in percent of a finished study."""

    instances: tuple[Instance, ...]
    methods: tuple[str, ...]
    values: Array  # (instances, methods, seeds)
    aggregator: str = MAX
    """What decides where a method is asked for with `max`."""

    def of(self, method: str) -> Array:
        """The accuracies of one method, with the weight decay of each backbone.  # (instances, seeds)"""
        setting = {m: j for j, m in enumerate(self.methods)}
        texts = [spelling(method, at.backbone, self.aggregator) for at in self.instances]
        return np.stack([self.values[i, setting[text]] for i, text in enumerate(texts)])

    def medians(self, methods: Sequence[str]) -> Array:
        """The median over seeds of some methods.  # (instances, methods)"""
        return np.stack([np.median(self.of(m), axis=1) for m in methods], axis=1)

    def best(self, methods: Sequence[str]) -> str:
        """The method with the best average rank among these; the first of equals."""
        ranks = rank_rows(np.round(self.medians(methods), 9)).mean(axis=0)
        return methods[int(np.argmin(np.round(ranks, 9)))]

    def compare(self, methods: Sequence[str], names: Sequence[str]) -> Comparison:
        """Average ranks and significance."""
        return compare(np.round(self.medians(methods), 9), names)

    def where(self, **fixed: str) -> "Scores":
        """The instances whose backbone, dataset or task is the given one."""
        kept = [i for i, at in enumerate(self.instances) if all(getattr(at, k) == v for k, v in fixed.items())]
        return replace(self, instances=tuple(self.instances[i] for i in kept), values=self.values[kept])


@dataclass(frozen=True)
class Results:
    """The folder of a run of the paper, with the aggregator that is looked at where the paper uses `max`."""

    folder: Path
    aggregator: str = MAX

    @cached_property
    def setting(self) -> Setting:
        """Where the studies ran."""
        return replace(Setting.of(read_run(self.folder)["places"]), aggregator=self.aggregator)

    def scores(self, work: Sequence[Work]) -> Scores | None:
        """The accuracies that a study asks for; None where some are missing."""
        if not work:
            return None
        role, study = work[0]
        if not (self.folder / role / "manifest.json").exists():
            return None
        table = study.results(self.folder / role)
        shape = len(study.instances), len(study.methods), len(study.seeds)
        if len(table) != np.prod(shape):
            return None
        values = 100 * table["accuracy"].to_numpy().astype(np.float64).reshape(shape)
        return Scores(study.instances, tuple(map(str, study.methods)), values, self.aggregator)

    def measured(self, name: str) -> dict[str, Any]:
        """Other measurements of a run, by key."""
        try:
            found: dict[str, Any] = json.loads((self.folder / f"{name}.json").read_text())
        except FileNotFoundError:
            return {}
        return found

    def manifests(self) -> list[dict[str, Any]]:
        """The manifests of all stores."""
        return [Store(p.parent).manifest() for p in sorted(self.folder.glob("*/manifest.json"))]


def is_run(folder: str | os.PathLike[str]) -> bool:
    """Whether the paper was run into this folder."""
    return (Path(folder) / PAPER).is_file()


def read_run(folder: Path) -> dict[str, Any]:
    """The note of a run, or a sentence why there is none."""
    try:
        found: dict[str, Any] = json.loads((folder / PAPER).read_text())
    except (OSError, ValueError):
        raise FileError(f"{folder}: no study of the paper has been run into this folder.") from None
    if found.get("format") != FORMAT:
        raise FileError(f"{folder / PAPER}: format {found.get('format')!r}; this imprint reads format {FORMAT}.")
    return found


def spent(folder: Path) -> float:
    """How many seconds of wall time went into a folder; 0 where nothing was run."""
    return float(read_run(folder).get("seconds", 0.0)) if is_run(folder) else 0.0


def write_json(path: Path, values: Any) -> None:
    """Write whole or not at all."""
    with atomic_write(path) as f:
        f.write(json.dumps(values, indent=1, sort_keys=True).encode() + b"\n")


Report = Callable[[str, int, int], None]
"""Hears what is measured, how much of it is done, and how much there is."""


@dataclass(frozen=True, kw_only=True)
class Artefact(ABC):
    """What the paper shows somewhere. Its name is the name of its file."""

    title: str
    where: str
    needs: str = "benchmark"
    """The part that packs must play for it."""
    repeatable: bool = False
    """Whether it asks of `max` what can be asked of another aggregator too."""

    def served(self, setting: Setting) -> bool:
        """Whether these packs have what it needs."""
        return bool(setting.group(self.needs)) and (self.repeatable or setting.aggregator == MAX)

    def studies(self, setting: Setting) -> list[Work]:
        """The experiments it needs."""
        return []

    def measure(self, setting: Setting, folder: Path, report: Report) -> None:
        """Anything else it needs, kept in the folder of the run; a second call does nothing."""
        return None

    @property
    def needs_no_run(self) -> bool:
        """Whether there is something to show before anything was run."""
        own = type(self)
        return own.studies is Artefact.studies and own.measure is Artefact.measure

    @abstractmethod
    def section(self, name: str, results: Results) -> Section:
        """What came out, beside what was published."""

    def scores(self, results: Results) -> Scores | None:
        """The accuracies of its first study."""
        return results.scores(self.studies(results.setting)[:1])

    def missing(self, name: str, results: Results, what: str = "") -> Section:
        """The section where there is nothing to show, with the reason."""
        if not results.setting.group(self.needs):
            what = what or f"The folder of embeddings has no packs of {ROLES[self.needs]}, so there is nothing to run."
        text = what or f"Not run yet: imprint study run paper/{name}"
        return Section(name, self.title, self.where, text)
