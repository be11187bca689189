"""NC1 of the embeddings that the studies use: measured once and stored, drawn over d."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from imprint import tasks
from imprint.collapse import nc1
from imprint.normalisers.l2 import L2
from imprint.paper.artefact import Artefact, Finding, Findings, NotRunError, OnProgress, Results, listed, write_json
from imprint.paper.modes import maps
from imprint.paper.published import NC1, NC1_OF_SETS, D
from imprint.paper.setting import COMBINED, MAPS, Setting
from imprint.report.figures import Panel, Series, draw, interval
from imprint.report.sections import Picture, Section, Verdict
from imprint.report.text_table import TextTable
from imprint.study import Packs

NAME = "collapse"
Sets = Mapping[tuple[str, str], float]
"""NC1 by backbone and data set."""


class Point(NamedTuple):
    """The rows on which NC1 is measured: as published, training rows of sets and test rows of "d in 1" tasks."""

    backbone: str
    dataset: str
    task: str
    split: str

    @property
    def key(self) -> str:
        """The name of the measurement."""
        return " / ".join(self)


def points(setting: Setting) -> Iterator[Point]:
    """All measurements that the paper shows."""
    for role in ("benchmark", "combined"):
        group = setting.group(role)
        yield from (Point(b, d, "all", "train") for b in group.backbones for d in group.datasets)
    for b in setting.many.backbones:
        yield from (Point(b, setting.many.datasets[0], task, "test") for task in maps(MAPS))


def measure(setting: Setting, folder: Path, report: OnProgress) -> None:
    """Measure what is missing: NC1 of L2-normalised rows, by the formula and by the published computation."""
    values, source, every = Results(folder).earlier(NAME), Packs(setting.embeddings), list(points(setting))
    for i, point in enumerate(every):
        data = source.open(point.backbone, point.dataset)
        if values.get(point.key, {}).get("fingerprint") != data.fingerprint:
            X, y = (data.X, data.y) if point.split == "train" else (data.X_test, data.y_test)
            selection = tasks.resolve(point.task).select(y, 0, np.unique(data.y).tolist())
            rows, labels = L2().apply(np.asarray(X[selection.rows])), selection.labels
            both = {"nc1": nc1(rows, labels), "published": nc1(rows, labels, legacy=True)}
            values[point.key] = {"fingerprint": data.fingerprint, **both}
            if i % 25 == 0:
                write_json(folder / f"{NAME}.json", values)
        report("Neural collapse", i + 1, len(every))
    write_json(folder / f"{NAME}.json", values)


def set_values(results: Results, kind: str = "nc1") -> dict[tuple[str, str], float]:
    """NC1 of the whole ten-class sets; raises `NotRunError` if there is none."""
    values = results.measured(NAME)
    measured = [p for p in points(results.setting) if p.task == "all" and p.key in values]
    if not measured:
        raise NotRunError(f"{results.folder}: NC1 of the ten-class sets has not been measured.")
    return {(p.backbone, p.dataset): values[p.key][kind] for p in measured}


def map_values(results: Results, kind: str = "nc1") -> dict[str, list[list[float]]]:
    """NC1 of the "d in 1" maps of every backbone for which all were measured, by d."""
    values, by_backbone = results.measured(NAME), dict[str, list[float]]()
    for p in points(results.setting):
        if p.task != "all" and p.key in values:
            by_backbone.setdefault(p.backbone, []).append(values[p.key][kind])
    complete = {b: row for b, row in by_backbone.items() if len(row) == len(D) * MAPS}
    return {b: [row[i : i + MAPS] for i in range(0, len(row), MAPS)] for b, row in complete.items()}


@dataclass(frozen=True, kw_only=True)
class MeasuresCollapse(Artefact):
    """An artefact that needs NC1."""

    def measure(self, setting: Setting, folder: Path, report: OnProgress) -> None:
        measure(setting, folder, report)


@dataclass(frozen=True, kw_only=True)
class CollapseFigure(MeasuresCollapse):
    """NC1 of every backbone: lines over d, and a table of the ten-class sets."""

    def show(self, results: Results) -> Section:
        maps, sets = map_values(results), set_values(results)
        old_maps, old_sets = map_values(results, "published"), set_values(results, "published")
        panels = [
            Panel("published", [Series(b, D, v) for b, v in NC1.items()]),
            Panel("here, published centring", _lines(old_maps)),
            Panel("here, the formula of the paper", _lines(maps)),
        ]
        parts: list[TextTable | Picture] = [_table(sets, old_sets)]
        if maps:
            parts.insert(0, self.picture(results, draw(panels, "classes per label, d", "NC1")))
        return self.make_section(results, parts, _check(maps, sets, old_sets))


def _lines(maps: Mapping[str, Sequence[Sequence[float]]]) -> list[Series]:
    return [Series(b, D, *interval(np.array(v))) for b, v in maps.items()]


def _table(sets: Sets, old: Sets) -> TextTable:
    datasets = list(dict.fromkeys(d for _, d in sets))
    lines = []
    for b in dict.fromkeys(b for b, _ in sets):
        lines.append((b, *(f"{sets[b, d]:.2f} ({old[b, d]:.2f})" if (b, d) in sets else "" for d in datasets)))
    for b, values in NC1_OF_SETS.items():
        if values.keys() & set(datasets):
            lines.append((f"published: {b}", *(f"({values[d]:.2f})" if d in values else "" for d in datasets)))
    return TextTable(("NC1 (published centring)", *datasets), tuple(lines))


def _check(maps: Mapping[str, Sequence[Sequence[float]]], sets: Sets, old: Sets) -> Findings:
    linear = {b: np.mean(v, axis=1).tolist() for b, v in maps.items()}
    findings = {
        "linear": Finding(*_linear(linear), published=_linear(NC1))
        if maps
        else Finding(Verdict.UNTESTABLE, "there are no packs of a hundred classes", _linear(NC1)),
        "highest": _highest(sets),
    }
    if any(d == "cifar10" for _, d in sets):
        published = {(b, d): v for b, values in NC1_OF_SETS.items() for d, v in values.items()}
        findings["lowest"] = Finding(*_lowest(sets), published=_lowest(published))
    more = [100 * (old[key] / value - 1) for key, value in sets.items()]
    larger = f"larger by {min(more):.1f} to {max(more):.1f} % on the ten-class sets"
    findings["formula"] = Finding(max(more) <= 0.1, f"the published computation gives values {larger}")
    return findings


def _linear(curves: Mapping[str, Sequence[float]]) -> tuple[bool, str]:
    """Whether NC1 is a linear function of d."""
    fits = {b: float(np.corrcoef(D, v)[0, 1] ** 2) for b, v in curves.items()}
    return all(r2 > 0.97 for r2 in fits.values()), f"R² of a line: {listed(fits, '.3f')}"


def _highest(sets: Sets) -> Finding:
    """Whether CombiDigits has the highest NC1 of all sets of a backbone."""
    others = {b: max(v for (c, d), v in sets.items() if c == b and d != COMBINED) for b, e in sets if e != COMBINED}
    digits = {b: v for (b, d), v in sets.items() if d == COMBINED and b in others}
    if not digits:
        return Finding(Verdict.UNTESTABLE, "there are no packs of it")
    figures = ", ".join(f"{b} {v:.2f} against {others[b]:.2f}" for b, v in digits.items())
    return Finding(all(v > others[b] for b, v in digits.items()), figures)


def _lowest(sets: Sets) -> tuple[bool, str]:
    """Whether CIFAR-10 has the lowest NC1 of all sets of a backbone."""
    lowest = {b: min((v, d) for (c, d), v in sets.items() if c == b)[1] for b in dict.fromkeys(b for b, _ in sets)}
    return set(lowest.values()) == {"cifar10"}, "lowest: " + ", ".join(f"{b} {d}" for b, d in lowest.items())
