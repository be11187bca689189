"""A published architecture with other weights, value by value."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from imprint.core.types import Array
from imprint.paper.artefact import Artefact, Report, Results, Scores
from imprint.paper.collapse import measure, set_values
from imprint.paper.published import KMEDOIDS_3, NC1_OF_SETS, K, kmeans_over_k
from imprint.paper.setting import Setting
from imprint.paper.work import SEEDS, Work, cosine, work
from imprint.report.figures import Panel, Series, draw, interval
from imprint.report.sections import Cells, Claim, Picture, Section, verdict

OTHER_WEIGHTS = {"resnet50_keras": "resnet50"}
"""Backbones of a published architecture, and the published one."""
MEDOIDS = cosine("kmedoids(k=3, method='alternate')")


def _method(k: int) -> str:
    return cosine(f"kmeans(k={k})")


@dataclass(frozen=True)
class DatasetPair:
    """One data set: what was published, and the same here."""

    theirs: Mapping[str, float]
    ours: Mapping[str, float]
    curve: Array  # (k, seeds) here

    def distance(self, other: Mapping[str, float]) -> float:
        """The mean distance of some curve over k from the published one, in points."""
        return float(np.mean([abs(other[_at(k)] - self.theirs[_at(k)]) for k in K]))


@dataclass(frozen=True, kw_only=True)
class SameArchitecture(Artefact):
    """Curves over k, NC1, gain and single results of one backbone beside those of the published one."""

    def served(self, setting: Setting) -> bool:
        return super().served(setting) and bool(_alike(setting))

    def studies(self, setting: Setting) -> list[Work]:
        return work(setting, "benchmark", [*map(_method, K), MEDOIDS], ["all"], SEEDS)

    def measure(self, setting: Setting, folder: Path, report: Report) -> None:
        measure(setting, folder, report)

    def section(self, name: str, results: Results) -> Section:
        alike = _alike(results.setting)
        scores = self.scores(results) if alike else None
        collapse = set_values(results, "published")
        if scores is None or not collapse:
            return self.missing(name, results, "" if alike else "No pack is of a published architecture.")
        parts: list[Cells | Picture] = []
        claims: list[Claim] = []
        for b in alike:
            pairs = _pairs(b, scores.where(backbone=b), collapse)
            parts += [Picture(f"{name}_{b}", _drawing(b, pairs), _caption(b)), _curves(pairs), _values(pairs)]
            claims += _claims(b, pairs)
        weights = ", ".join(f"{b} is {OTHER_WEIGHTS[b]} with other weights" for b in alike)
        rows = f"{results.setting.smallest:,} rows of each class or more, where the published values have all."
        text = f"{weights}; {rows}"
        return Section(name, self.title, self.where, text, tuple(parts), tuple(claims))


def _alike(setting: Setting) -> tuple[str, ...]:
    return tuple(b for b in setting.benchmark.backbones if b in OTHER_WEIGHTS)


def _at(k: int) -> str:
    return f"k-means, k = {k}"


def _pairs(backbone: str, scores: Scores, collapse: Mapping[tuple[str, str], float]) -> dict[str, DatasetPair]:
    """By data set, those of which something was published."""
    published, found = OTHER_WEIGHTS[backbone], {}
    for i, at in enumerate(scores.instances):
        if (published, at.dataset) not in kmeans_over_k():
            continue
        curve = np.stack([scores.of(_method(k))[i] for k in K])  # (k, seeds)
        ours = dict(zip(map(_at, K), np.median(curve, axis=1).tolist()))
        ours |= {"k-medoids, k = 3": float(np.median(scores.of(MEDOIDS)[i])), "NC1": collapse[backbone, at.dataset]}
        found[at.dataset] = DatasetPair(_published(published, at.dataset), ours, curve)
    return found


def _published(backbone: str, dataset: str) -> dict[str, float]:
    values = dict(zip(map(_at, K), kmeans_over_k()[backbone, dataset]))
    values["NC1"] = NC1_OF_SETS[backbone][dataset]
    if (backbone, dataset) in KMEDOIDS_3:
        values["k-medoids, k = 3"] = KMEDOIDS_3[backbone, dataset]
    return values


def _gain(values: Mapping[str, float]) -> float:
    return values[_at(5)] - values[_at(1)]


def _drawing(backbone: str, pairs: Mapping[str, DatasetPair]) -> bytes:
    panels = []
    for dataset, pair in pairs.items():
        theirs = [pair.theirs[_at(k)] for k in K]
        here = Series(f"here: {backbone}", K, *interval(pair.curve), kind="here")
        panels.append(
            Panel(dataset, [Series(f"published: {OTHER_WEIGHTS[backbone]}", K, theirs, kind="published"), here])
        )
    return draw(panels, "proxies per class, k", "accuracy, %", columns=3)


def _caption(backbone: str) -> str:
    what = "k-means, L2 throughout, max; bands are 95 % confidence intervals over three seeds"
    return f"{backbone} beside the published {OTHER_WEIGHTS[backbone]}, other weights: {what}."


def _line(what: str, pair: DatasetPair, key: str) -> tuple[str, ...]:
    ours, theirs = pair.ours[key], pair.theirs[key]
    return what, f"{theirs:.2f}", f"{ours:.2f}", f"{ours - theirs:+.2f}"


def _curves(pairs: Mapping[str, DatasetPair]) -> Cells:
    lines = tuple((str(k), *(v for pair in pairs.values() for v in _line("", pair, _at(k))[1:])) for k in K)
    head = (f"{d}, {what}" for d in pairs for what in ("published", "here (other weights)", "difference"))
    return Cells(("k", *head), lines, 1)


def _values(pairs: Mapping[str, DatasetPair]) -> Cells:
    lines = [_line(f"NC1 by the published computation, {d}", pair, "NC1") for d, pair in pairs.items()]
    for d, pair in pairs.items():
        theirs, ours = _gain(pair.theirs), _gain(pair.ours)
        lines.append(
            (f"points gained by k = 5 over k = 1, {d}", f"{theirs:.2f}", f"{ours:.2f}", f"{ours - theirs:+.2f}")
        )
    key = "k-medoids, k = 3"
    lines += [_line(f"{key} (alternate), {d}", pair, key) for d, pair in pairs.items() if key in pair.theirs]
    return Cells(("", "published", "here (other weights)", "difference"), tuple(lines), 1)


def _claims(backbone: str, pairs: Mapping[str, DatasetPair]) -> list[Claim]:
    own = OTHER_WEIGHTS[backbone]
    others = [b for b in NC1_OF_SETS if b != own]
    ours = {d: pair.distance(pair.ours) for d, pair in pairs.items()}
    nearest = {d: min(pair.distance(_published(b, d)) for b in others) for d, pair in pairs.items()}

    def order(values: Mapping[str, float]) -> str:
        return " > ".join(sorted(values, key=lambda d: -values[d]))

    def same(what: str, theirs: Mapping[str, float], here: Mapping[str, float]) -> Claim:
        shown = ", ".join(f"{d} {here[d]:.2f} (published {theirs[d]:.2f})" for d in here)
        return Claim(f"{own} with other weights: {what}.", verdict(order(theirs) == order(here)), shown)

    return [
        Claim(
            f"{own} with other weights is nearer to the published {own} over k than any other published backbone.",
            verdict(all(ours[d] < nearest[d] for d in pairs)),
            "mean distance in points: " + ", ".join(f"{d} {ours[d]:.2f} against {nearest[d]:.2f}" for d in pairs),
        ),
        same("data sets keep their order by NC1", *_both(pairs, lambda v: v["NC1"])),
        same("data sets keep their order by the gain of five proxies over one", *_both(pairs, _gain)),
    ]


def _both(pairs: Mapping[str, DatasetPair], value: Callable[[Mapping[str, float]], float]) -> list[dict[str, float]]:
    """A value of every data set, as published and here."""
    return [{d: value(p.theirs) for d, p in pairs.items()}, {d: value(p.ours) for d, p in pairs.items()}]
