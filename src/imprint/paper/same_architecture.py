"""A published architecture with other weights, value by value."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from imprint.core.types import Array
from imprint.paper.artefact import Artefact, Finding, Findings, Report, Results, Scores
from imprint.paper.collapse import measure, set_values
from imprint.paper.modes import KMEANS
from imprint.paper.published import KMEDOIDS_3, NC1_OF_SETS, K, kmeans_over_k
from imprint.paper.setting import Setting
from imprint.paper.work import SEEDS, Work, cosine, work
from imprint.report.figures import Panel, Series, draw, interval
from imprint.report.sections import Cells, Claim, Picture, Section

OTHER_WEIGHTS = {"resnet50_keras": "resnet50"}
"""Backbones with a published architecture, and the published backbone."""
MEDOIDS, MEDOIDS_LABEL = cosine("kmedoids(k=3, method='alternate')"), "k-medoids, k = 3"


@dataclass(frozen=True)
class DatasetPair:
    """One data set: the published values, and the same here."""

    theirs: Mapping[str, float]
    ours: Mapping[str, float]
    curve: Array  # (k, seeds) here

    def distance(self, other: Mapping[str, float]) -> float:
        """The mean distance of a curve over k from the published one, in points."""
        return float(np.mean([abs(other[_at(k)] - self.theirs[_at(k)]) for k in K]))


Pairs = Mapping[str, DatasetPair]
"""By data set."""


@dataclass(frozen=True, kw_only=True)
class SameArchitecture(Artefact):
    """Curves over k, NC1, gain and single results of a backbone next to those of the published one."""

    def can_run(self, setting: Setting) -> bool:
        return super().can_run(setting) and bool(_alike(setting))

    def studies(self, setting: Setting) -> list[Work]:
        methods = [*(KMEANS.replace("{k}", str(k)) for k in K), MEDOIDS]
        return work(setting, "benchmark", methods, ["all"], SEEDS)

    def measure(self, setting: Setting, folder: Path, report: Report) -> None:
        measure(setting, folder, report)

    def missing(self, setting: Setting) -> str:
        return super().missing(setting) if _alike(setting) else "No pack is of a published architecture."

    def show(self, results: Results) -> Section:
        alike, scores, collapse = _alike(results.setting), self.scores(results), set_values(results, "published")
        parts: list[Cells | Picture] = []
        claims: list[Claim] = []
        for b in alike:
            pairs, published = _pairs(b, scores.where(backbone=b), collapse), OTHER_WEIGHTS[b]
            picture = self.picture(results, _drawing(b, pairs), backbone=b, published=published)
            parts += [replace(picture, name=f"{self.name}_{b}"), _curves(pairs), _values(pairs)]
            claims += self.judged(check(b, pairs), backbone=published)
        weights = ", ".join(f"{b} is {OTHER_WEIGHTS[b]} with other weights" for b in alike)
        return replace(self.filled(results, parts, weights=weights), claims=tuple(claims))


def _alike(setting: Setting) -> tuple[str, ...]:
    return tuple(b for b in setting.benchmark.backbones if b in OTHER_WEIGHTS)


def _at(k: int) -> str:
    return f"k-means, k = {k}"


def _pairs(backbone: str, scores: Scores, collapse: Mapping[tuple[str, str], float]) -> dict[str, DatasetPair]:
    """The data sets with published values."""
    published, pairs = OTHER_WEIGHTS[backbone], {}
    medoids = np.median(scores.of(MEDOIDS), axis=1).tolist()
    for at, curve, medoid in zip(scores.instances, scores.curve(KMEANS, K), medoids):
        if (published, at.dataset) in kmeans_over_k():
            ours = dict(zip(map(_at, K), np.median(curve, axis=1).tolist()))
            ours |= {MEDOIDS_LABEL: medoid, "NC1": collapse[backbone, at.dataset]}
            pairs[at.dataset] = DatasetPair(published_values(published, at.dataset), ours, curve)
    return pairs


def published_values(backbone: str, dataset: str) -> dict[str, float]:
    """The published values of a backbone on a data set, by name."""
    values = dict(zip(map(_at, K), kmeans_over_k()[backbone, dataset])) | {"NC1": NC1_OF_SETS[backbone][dataset]}
    return values | ({MEDOIDS_LABEL: KMEDOIDS_3[backbone, dataset]} if (backbone, dataset) in KMEDOIDS_3 else {})


def _gain(values: Mapping[str, float]) -> float:
    return values[_at(5)] - values[_at(1)]


def _drawing(backbone: str, pairs: Pairs) -> bytes:
    panels = []
    for dataset, pair in pairs.items():
        theirs = [pair.theirs[_at(k)] for k in K]
        published = Series(f"published: {OTHER_WEIGHTS[backbone]}", K, theirs)
        here = Series(f"here: {backbone}", K, *interval(pair.curve))
        panels.append(Panel(dataset, [published, here]))
    return draw(panels, "proxies per class, k", "accuracy, %")


def _differences(theirs: float, ours: float) -> tuple[str, str, str]:
    return f"{theirs:.2f}", f"{ours:.2f}", f"{ours - theirs:+.2f}"


def _curves(pairs: Pairs) -> Cells:
    lines = ((str(k), *(v for p in pairs.values() for v in _differences(p.theirs[_at(k)], p.ours[_at(k)]))) for k in K)
    head = (f"{d}, {what}" for d in pairs for what in ("published", "here (other weights)", "difference"))
    return Cells(("k", *head), tuple(lines), 1)


def _values(pairs: Pairs) -> Cells:
    rows: dict[str, Callable[[Mapping[str, float]], float]] = {
        "NC1 by the published computation": lambda values: values["NC1"],
        "points gained by k = 5 over k = 1": _gain,
        f"{MEDOIDS_LABEL} (alternate)": lambda values: values[MEDOIDS_LABEL],
    }
    lines = [
        (f"{label}, {d}", *_differences(value(pair.theirs), value(pair.ours)))
        for label, value in rows.items()
        for d, pair in pairs.items()
        if MEDOIDS_LABEL in pair.theirs or not label.startswith(MEDOIDS_LABEL)
    ]
    return Cells(("", "published", "here (other weights)", "difference"), tuple(lines), 1)


def check(backbone: str, pairs: Pairs) -> Findings:
    """Test whether values are close to the published ones, and data sets in the same order."""
    others = [b for b in NC1_OF_SETS if b != OTHER_WEIGHTS[backbone]]
    ours = {d: pair.distance(pair.ours) for d, pair in pairs.items()}
    nearest = {d: min(pair.distance(published_values(b, d)) for b in others) for d, pair in pairs.items()}

    def same_order(value: Callable[[Mapping[str, float]], float]) -> Finding:
        theirs, here = {d: value(p.theirs) for d, p in pairs.items()}, {d: value(p.ours) for d, p in pairs.items()}
        shown = ", ".join(f"{d} {here[d]:.2f} (published {theirs[d]:.2f})" for d in here)
        return Finding(sorted(theirs, key=lambda d: -theirs[d]) == sorted(here, key=lambda d: -here[d]), shown)

    distances = "mean distance in points: " + ", ".join(f"{d} {ours[d]:.2f} against {nearest[d]:.2f}" for d in pairs)
    return {
        "nearest": Finding(all(ours[d] < nearest[d] for d in pairs), distances),
        "nc1": same_order(lambda values: values["NC1"]),
        "gain": same_order(_gain),
    }
