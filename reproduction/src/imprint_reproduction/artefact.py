"""An artefact of the paper (a table or figure), and the results of a run from which it
is drawn.
"""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from imprint.core.errors import FileError, ImprintError
from imprint.extend import Array, atomic_write, reporting_damage
from imprint.report import TextTable
from imprint.study import Instance, Store, Study
from imprint_reproduction.sections import Claim, Image, Section, Verdict, verdict
from imprint_reproduction.setting import MAX, ROLES, Setting, method_text

PAPER, FORMAT = "paper.json", 1


class NotRunError(ImprintError):
    """The results of an artefact are missing or incomplete."""


@dataclass(frozen=True, eq=False)
class Scores:
    """Accuracies in percent of a finished study."""

    instances: tuple[Instance, ...]
    methods: tuple[str, ...]
    values: Array  # (instances, methods, seeds)
    aggregator: str = MAX  # replaces `max` in the requested methods

    def of(self, method: str) -> Array:
        """The accuracies of one method, with the weight decay of each backbone.  #
        (instances, seeds)
        """
        texts = [
            method_text(method, at.backbone, self.aggregator) for at in self.instances
        ]
        return np.stack(
            [self.values[i, self.methods.index(text)] for i, text in enumerate(texts)]
        )

    def medians(self, methods: Sequence[str]) -> Array:
        """The median over seeds of some methods.  # (instances, methods)"""
        return np.stack([np.median(self.of(m), axis=1) for m in methods], axis=1)

    def curve(self, method: str, values: Sequence[int]) -> Array:
        """The accuracies of a method with `{k}` for every number of proxies.  #
        (instances, k, seeds)
        """
        return np.stack(
            [self.of(method.replace("{k}", str(k))) for k in values], axis=1
        )

    def where(self, **fixed: str) -> "Scores":
        """The instances with the given backbone, data set or task."""
        chosen = [
            i
            for i, at in enumerate(self.instances)
            if all(getattr(at, k) == v for k, v in fixed.items())
        ]
        return replace(
            self,
            instances=tuple(self.instances[i] for i in chosen),
            values=self.values[chosen],
        )


@dataclass(frozen=True)
class Results:
    """The folder of a run of the paper; `aggregator` replaces `max`."""

    folder: Path
    aggregator: str = MAX

    @cached_property
    def setting(self) -> Setting:
        """The packs on which the studies ran."""
        return replace(
            Setting.of(read_run(self.folder)["places"]), aggregator=self.aggregator
        )

    def scores(self, studies: Sequence[Study]) -> Scores:
        """The accuracies of the first study; raises `NotRunError` if some are
        missing.
        """
        if not studies or not Store(self.folder / studies[0].name).exists():
            raise NotRunError(f"{self.folder}: this study has not been run.")
        study = studies[0]
        table = study.results(self.folder / study.name)
        shape = len(study.instances), len(study.methods), len(study.seeds)
        if len(table) != np.prod(shape):
            raise NotRunError(
                f"{self.folder / study.name}: some experiments are missing."
            )
        values = 100 * table["accuracy"].to_numpy().astype(np.float64).reshape(shape)
        return Scores(
            study.instances, tuple(map(str, study.methods)), values, self.aggregator
        )

    def measured(self, name: str) -> dict[str, Any]:
        """The measurements in a JSON file of the run; raises `NotRunError` if there are
        none.
        """
        if values := read_json(self.folder / f"{name}.json"):
            return values
        raise NotRunError(f"{self.folder}: {name} has not been measured.")


def is_run(folder: str | os.PathLike[str]) -> bool:
    """Whether studies of the paper were run into this folder."""
    return (Path(folder) / PAPER).is_file()


def read_run(folder: Path) -> dict[str, Any]:
    """The record of a run: its setting and its elapsed time."""
    try:
        record: dict[str, Any] = dict(json.loads((folder / PAPER).read_text()))
    except (OSError, TypeError, ValueError):
        raise FileError(
            f"{folder}: no study of the paper has been run into this folder."
        ) from None
    if record.get("format") != FORMAT:
        raise FileError(
            f"{folder / PAPER}: format {record.get('format')!r}; this imprint reads"
            f" format {FORMAT}."
        )
    return record


def elapsed(folder: Path) -> float:
    """The elapsed seconds of all runs into a folder; 0 if there were none."""
    return float(read_run(folder).get("seconds", 0.0)) if is_run(folder) else 0.0


def read_json(path: Path) -> dict[str, Any]:
    """The values of a JSON file; empty if there is none."""
    if not path.exists():
        return {}
    with reporting_damage(path, "file of measurements", "; delete it to measure again"):
        return dict(json.loads(path.read_text()))


def write_json(path: Path, values: Any) -> None:
    """Write a JSON file atomically."""
    with atomic_write(path) as f:
        f.write(json.dumps(values, indent=1, sort_keys=True).encode() + b"\n")


OnProgress = Callable[[str, int, int], None]
"""Called with the name of the measurements, the number of those that are done, and the
number of all.
"""


class Finding(NamedTuple):
    """Whether results support a claim, and the figures behind it."""

    holds: bool | Verdict
    figures: str
    published: "Finding | None" = None
    """The same for the published results, if they are computed here instead of stated
    in `artefacts.toml`.
    """


def listed(values: Mapping[str, float], form: str = ".2f") -> str:
    """Named values as text."""
    return ", ".join(f"{name} {value:{form}}" for name, value in values.items())


@dataclass(frozen=True, kw_only=True)
class Artefact(ABC):
    """A table or figure of the paper. The fields are the keys of `artefacts.toml`."""

    name: str
    topic: str
    title: str
    where: str
    text: str = ""
    caption: str = ""
    note: str = ""
    # the aggregator that must be compared with `max`; empty if none needs to be
    beside: str = ""
    repeatable: bool = False  # with another aggregator in place of `max`
    claims: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    needs: ClassVar[str] = "benchmark"  # the role of the packs on which it runs

    def can_run(self, setting: Setting) -> bool:
        """Whether it can run on these packs."""
        selected = self.beside in ("", setting.beside) and (
            self.repeatable or setting.aggregator == MAX
        )
        return selected and not self.obstacle(setting)

    def obstacle(self, setting: Setting) -> str:
        """Why the packs do not suffice, as a sentence; empty if they do."""
        sentence = (
            f"The folder of embeddings has no packs of {ROLES[self.needs]}, so there is"
            " nothing to run."
        )
        return "" if setting.group(self.needs) else sentence

    def studies(self, setting: Setting) -> list[Study]:
        """The experiments it needs."""
        return []

    def measure(self, setting: Setting, folder: Path, report: OnProgress) -> None:
        """Measure what else it needs, and store it in the folder of the run; slow
        measurements are made only once.
        """
        return None

    @property
    def needs_no_run(self) -> bool:
        """Whether it can be shown before anything was run."""
        return (
            type(self).studies is Artefact.studies
            and type(self).measure is Artefact.measure
        )

    def section(self, results: Results) -> Section:
        """The results next to the published ones, or the reason why there are none."""
        if self.can_run(results.setting):
            with suppress(NotRunError):
                return self.show(results)
        options = f" --beside {self.beside}" if self.beside else ""
        not_run = f"Not run yet: imprint study run paper/{self.name}{options}"
        text = self.obstacle(results.setting) or not_run
        return Section(self.name, self.title, self.where, text, topic=self.topic)

    @abstractmethod
    def show(self, results: Results) -> Section:
        """The results next to the published ones; raises `NotRunError` if there are
        none.
        """

    def scores(self, results: Results) -> Scores:
        """The accuracies of its first study; raises `NotRunError` if some are
        missing.
        """
        return results.scores(self.studies(results.setting))

    def image(self, svg: bytes) -> Image:
        """A drawing with the name and the caption of the artefact."""
        return Image(self.name, svg, self.caption)

    def make_section(
        self,
        results: Results,
        parts: Sequence[TextTable | Image],
        findings: Mapping[str, Finding],
        **words: Any,
    ) -> Section:
        """A section with these parts, and its claims judged by the findings; `words`
        fill in its text and captions.
        """
        words["setting"] = results.setting
        shown = tuple(
            replace(part, caption=part.caption.format(**words)) for part in parts
        )
        claims, text = tuple(self.judge_claims(findings)), self.text.format(**words)
        return Section(
            self.name,
            self.title,
            self.where,
            text,
            shown,
            claims,
            self.note,
            self.topic,
        )

    def judge_claims(self, findings: Mapping[str, Finding]) -> list[Claim]:
        """The claims with their verdicts on these results and on the published ones."""
        claims = []
        for key, finding in findings.items():
            stated = self.claims[key]
            published = finding.published or Finding(
                stated.get("holds", True), stated.get("published", "")
            )
            theirs = verdict(published.holds) if published.figures else None
            claims.append(
                Claim(
                    stated["text"],
                    verdict(finding.holds),
                    finding.figures,
                    theirs,
                    published.figures,
                )
            )
        return claims
