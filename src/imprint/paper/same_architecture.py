"""A published architecture with other weights, value by value."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from imprint.core.types import Array
from imprint.paper.artefact import Finding, Findings, NotRunError, Results, Scores
from imprint.paper.collapse import MeasuresCollapse, set_values
from imprint.paper.modes import KMEANS
from imprint.paper.published import KMEDOIDS_3, NC1_OF_SETS, K, kmeans_over_k
from imprint.paper.setting import Setting
from imprint.paper.studies import SEEDS, RoleStudy, cosine, role_study
from imprint.report.figures import Panel, Series, draw, interval
from imprint.report.sections import Claim, Picture, Section
from imprint.report.text_table import TextTable

OTHER_WEIGHTS = {"resnet50_keras": "resnet50"}
"""Backbones with a published architecture, and the published backbone."""
KMEDOIDS = cosine("kmedoids(k=3, method='alternate')")


class DatasetValues(NamedTuple):
    """The values of one backbone on one data set."""

    curve: Array  # accuracy of k-means over K
    nc1: float
    kmedoids: float | None

    @property
    def gain(self) -> float:
        """Points gained by five proxies over one."""
        return float(self.curve[4] - self.curve[0])


class DatasetPair(NamedTuple):
    """The published values on one data set, and those measured here."""

    published: DatasetValues
    here: DatasetValues
    seeds: Array  # (k, seeds), the curve measured here


Pairs = Mapping[str, DatasetPair]
"""By data set."""


def published_values(backbone: str, dataset: str) -> DatasetValues:
    """The published values of a backbone on a data set."""
    curve = np.array(kmeans_over_k()[backbone, dataset])
    return DatasetValues(curve, NC1_OF_SETS[backbone][dataset], KMEDOIDS_3.get(backbone, {}).get(dataset))


@dataclass(frozen=True, kw_only=True)
class SameArchitecture(MeasuresCollapse):
    """Curves over k, NC1, gain and single results of a backbone next to those of the published one."""

    def can_run(self, setting: Setting) -> bool:
        return super().can_run(setting) and bool(_alike(setting))

    def studies(self, setting: Setting) -> list[RoleStudy]:
        methods = [*(KMEANS.replace("{k}", str(k)) for k in K), KMEDOIDS]
        return role_study(setting, "benchmark", methods, ["all"], SEEDS)

    def missing(self, setting: Setting) -> str:
        return super().missing(setting) if _alike(setting) else "No pack is of a published architecture."

    def show(self, results: Results) -> Section:
        alike, scores, nc1 = _alike(results.setting), self.scores(results), set_values(results, "published")
        parts: list[TextTable | Picture] = []
        claims: list[Claim] = []
        for b in alike:
            pairs, published = _pairs(b, scores.where(backbone=b), nc1), OTHER_WEIGHTS[b]
            picture = self.picture(results, _drawing(b, pairs), backbone=b, published=published)
            parts += [replace(picture, name=f"{self.name}_{b}"), _curves(pairs), _values(pairs)]
            claims += self.judge_claims(check(b, pairs), backbone=published)
        weights = ", ".join(f"{b} is {OTHER_WEIGHTS[b]} with other weights" for b in alike)
        return replace(self.make_section(results, parts, weights=weights), claims=tuple(claims))


def _alike(setting: Setting) -> tuple[str, ...]:
    return tuple(b for b in setting.benchmark.backbones if b in OTHER_WEIGHTS)


def _pairs(backbone: str, scores: Scores, nc1: Mapping[tuple[str, str], float]) -> dict[str, DatasetPair]:
    """The data sets with published values and a measured NC1."""
    pairs = {}
    for at, curve, kmedoids in zip(scores.instances, scores.curve(KMEANS, K), scores.of(KMEDOIDS)):
        if (OTHER_WEIGHTS[backbone], at.dataset) in kmeans_over_k() and (backbone, at.dataset) in nc1:
            here = DatasetValues(np.median(curve, axis=1), nc1[backbone, at.dataset], float(np.median(kmedoids)))
            pairs[at.dataset] = DatasetPair(published_values(OTHER_WEIGHTS[backbone], at.dataset), here, curve)
    if not pairs:
        raise NotRunError(f"No data set of {backbone} has published values.")
    return pairs


def _drawing(backbone: str, pairs: Pairs) -> bytes:
    panels = []
    for dataset, pair in pairs.items():
        published = Series(f"published: {OTHER_WEIGHTS[backbone]}", K, pair.published.curve)
        panels.append(Panel(dataset, [published, Series(f"here: {backbone}", K, *interval(pair.seeds))]))
    return draw(panels, "proxies per class, k", "accuracy, %")


def _differences(published: float, here: float) -> tuple[str, str, str]:
    return f"{published:.2f}", f"{here:.2f}", f"{here - published:+.2f}"


def _curves(pairs: Pairs) -> TextTable:
    columns = [[_differences(*both) for both in zip(p.published.curve, p.here.curve)] for p in pairs.values()]
    lines = ((str(k), *(text for column in columns for text in column[i])) for i, k in enumerate(K))
    head = (f"{d}, {what}" for d in pairs for what in ("published", "here (other weights)", "difference"))
    return TextTable(("k", *head), tuple(lines), 1)


def _values(pairs: Pairs) -> TextTable:
    labels = {
        "nc1": "NC1 by the published computation",
        "gain": "points gained by k = 5 over k = 1",
        "kmedoids": "k-medoids, k = 3 (alternate)",
    }
    lines = [
        (f"{label}, {dataset}", *_differences(getattr(pair.published, name), getattr(pair.here, name)))
        for name, label in labels.items()
        for dataset, pair in pairs.items()
        if getattr(pair.published, name) is not None
    ]
    return TextTable(("", "published", "here (other weights)", "difference"), tuple(lines), 1)


def check(backbone: str, pairs: Pairs) -> Findings:
    """Test whether values are close to the published ones, and data sets in the same order."""

    def distance(dataset: str, curve: Array) -> float:
        """The mean distance of a curve over k from the published one, in points."""
        return float(np.abs(curve - pairs[dataset].published.curve).mean())

    def same_order(value: Callable[[DatasetValues], float]) -> Finding:
        published = {d: value(pair.published) for d, pair in pairs.items()}
        here = {d: value(pair.here) for d, pair in pairs.items()}
        shown = ", ".join(f"{d} {here[d]:.2f} (published {published[d]:.2f})" for d in pairs)
        return Finding(sorted(pairs, key=lambda d: -published[d]) == sorted(pairs, key=lambda d: -here[d]), shown)

    others = [b for b in NC1_OF_SETS if b != OTHER_WEIGHTS[backbone]]
    ours = {d: distance(d, pair.here.curve) for d, pair in pairs.items()}
    nearest = {d: min(distance(d, published_values(b, d).curve) for b in others) for d in pairs}
    distances = ", ".join(f"{d} {ours[d]:.2f} against {nearest[d]:.2f}" for d in pairs)
    return {
        "nearest": Finding(all(ours[d] < nearest[d] for d in pairs), f"mean distance in points: {distances}"),
        "nc1": same_order(lambda values: values.nc1),
        "gain": same_order(lambda values: values.gain),
    }
