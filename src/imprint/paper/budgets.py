"""Figures over the number of proxies k: all generators, k-means with few rows, and a backbone with other weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from imprint.core.arrays import Array
from imprint.paper.artefact import Artefact, Finding, NotRunError, Results
from imprint.paper.collapse import measure_collapse, set_values
from imprint.paper.modes import KMEANS, KMEANS_OVER_K, KMEDOIDS_3, NC1_OF_SETS, K
from imprint.paper.setting import MAX, SHOT_SEEDS, Setting, cosine, role_study
from imprint.report.figures import Panel, Series, draw, interval
from imprint.report.sections import Picture, Section, Verdict
from imprint.report.tables import TextTable
from imprint.study import Study

SHOTS = (1, 2, 5, 10, 20, 50, 100, 200, 400, 600, 800, 1000)
SHOT_K = (1, 2, 5, 10, 20, 50)


@dataclass(frozen=True, kw_only=True)
class GeneratorsOverK(Artefact):
    """Curves over k: a panel with the published ones, and one for each backbone."""

    k: Sequence[int]
    generators: Mapping[str, Sequence[Any]] = field(repr=False)
    """By label: the generator, and its published accuracy for every k, if it was published."""
    published_all: float  # published accuracy with all embeddings as proxies

    def studies(self, setting: Setting) -> list[Study]:
        methods = [cosine(text.format(k=k)) for text, *_ in self.generators.values() for k in self.k]
        return role_study(setting, "benchmark", [*methods, cosine("all")], ["all"])

    def show(self, results: Results) -> Section:
        scores, datasets = self.scores(results), results.setting.benchmark.datasets
        curves = {name: scores.curve(cosine(text), self.k) for name, (text, *_) in self.generators.items()}
        all_rows = np.median(scores.of(cosine("all")), axis=1)  # (instances,)
        dataset = "cifar10" if "cifar10" in datasets else datasets[-1]
        published = [Series(name, self.k, *values) for name, (_, *values) in self.generators.items() if values]
        panels = [Panel("published: resnet18, cifar10", published, self.published_all, "all data kept")]
        for i, at in enumerate(scores.instances):
            if at.dataset == dataset:
                lines = [Series(name, self.k, *interval(values[i])) for name, values in curves.items()]
                panels.append(Panel(f"{at.backbone}, {dataset}", lines, float(all_rows[i]), "all data kept"))
        shown = panels if results.aggregator == MAX else panels[1:]
        svg = draw(shown, "proxies per class, k", "accuracy, %", log_x=True)
        medians = {name: np.median(values, axis=2) for name, values in curves.items()}  # (instances, k)
        names = [f"{at.backbone}/{at.dataset}" for at in scores.instances]
        findings = _check_generators(names, medians, all_rows)
        return self.make_section(results, [self.picture(svg)], findings, dataset=dataset)


def _check_generators(names: Sequence[str], medians: Mapping[str, Array], all_rows: Array) -> dict[str, Finding]:
    best = medians["kmeans"] >= np.max(list(medians.values()), axis=0)
    above = [name for name, gain in zip(names, medians["kmeans"][:, -1] - all_rows) if gain > 0]
    on = f"at k = 100 on {len(above)} of {len(names)} (backbone, data set): {', '.join(above) or 'none'}"
    return {
        "best": Finding(bool(best.all()), f"best at {best.sum()} of {best.size} points (backbone, data set, k)"),
        "above_all": Finding(2 * len(above) > len(names), on),
    }


@dataclass(frozen=True, kw_only=True)
class LowData(Artefact):
    """Accuracy over the number of rows per class, a line for each k; with `max` also one for all rows."""

    first: int
    last: int = SHOTS[-1]
    per_backbone: bool = False
    """Whether every backbone has its own panels; by default they show the mean over backbones."""

    def studies(self, setting: Setting) -> list[Study]:
        methods = [method for method, _ in _shot_methods(setting).values()]
        return role_study(setting, "benchmark", methods, ["all"], SHOT_SEEDS, _shots(setting))

    def show(self, results: Results) -> Section:
        scores, group = self.scores(results), results.setting.benchmark
        shots = np.array(_shots(results.setting))
        shape = len(group.backbones), len(group.datasets), len(shots), len(SHOT_SEEDS)
        methods, titles = _shot_methods(results.setting), list(group.backbones)
        curves = {label: scores.of(method).reshape(shape) for label, (method, _) in methods.items()}
        if not self.per_backbone and len(titles) > 1:
            titles = ["mean of the backbones"]
            curves = {label: values.mean(axis=0, keepdims=True) for label, values in curves.items()}
        panels = []
        for (i, title), (j, dataset) in product(enumerate(titles), enumerate(group.datasets)):
            lines = []
            for label, (_, fewest) in methods.items():
                fits = (shots >= max(fewest, self.first)) & (shots <= self.last)
                if fits.any():
                    lines.append(Series(label, shots[fits], *interval(curves[label][i, j, fits])))
            panels.append(Panel(f"{title}, {dataset}", lines))
        height = 2.5 if self.per_backbone else 3.4
        svg = draw(panels, "rows per class, n", "accuracy, %", log_x=True, height=height)
        findings = {}
        if not self.per_backbone:
            means = np.array([values[0].mean(axis=2) for values in curves.values()])  # (k, data sets, shots)
            start = {d: crossing(means[: len(SHOT_K), j], shots) for j, d in enumerate(group.datasets)}
            findings = check_shots(start, max(shots))
        return self.make_section(results, [self.picture(svg)], findings, draws=len(SHOT_SEEDS))


def _shot_methods(setting: Setting) -> dict[str, tuple[str, int]]:
    """By label: the method, and the fewest rows per class for which it is shown."""
    names = {k: f"k = {k}" if k > 1 else "k = 1 (mean)" for k in SHOT_K}
    methods = {name: (KMEANS.replace("{k}", str(k)), k) for k, name in names.items()}
    return methods | ({"k = n (all)": (cosine("all"), 1)} if setting.aggregator == MAX else {})


def _shots(setting: Setting) -> list[int]:
    return [n for n in SHOTS if n <= setting.smallest]


def crossing(means: Array, shots: Array) -> int | None:
    """The number of shots from which on some k > 1 below it is always better than k = 1; `means` has a row per k."""
    allowed = shots > np.array(SHOT_K[1:])[:, None]
    below = np.flatnonzero(np.where(allowed, means[1:], -np.inf).max(axis=0) <= means[0])
    return next(iter(shots[below[-1] + 1 :].tolist()), None) if len(below) else int(shots[0])


def check_shots(start: Mapping[str, int | None], most: int) -> dict[str, Finding]:
    """Test from how many rows per class on k-means is ahead, given this number by data set, and the largest tested."""
    never = f"not up to {most}"
    shown = ", ".join(f"{d}: {n or never}" for d, n in start.items())

    def enough(datasets: Sequence[str], rows: int) -> Finding:
        if not set(datasets) <= set(start):
            return Finding(Verdict.UNTESTABLE, "a data set is missing")
        holds = all((start[d] or np.inf) <= rows for d in datasets)
        shown = (f"{d} from {start[d]}" if start[d] else f"{d} {never}" for d in datasets)
        return Finding(holds, ", ".join(shown))

    return {
        "overtakes": Finding(None not in start.values(), f"some k > 1 is above from n = ({shown})"),
        "fifty": enough(("mnist", "fashionmnist"), 50),
        "two_hundred": enough(("cifar10",), 200),
    }


PUBLISHED, OTHER_WEIGHTS = "resnet50", "resnet50_keras"
KMEDOIDS = cosine("kmedoids(k=3, method='alternate')")
NC1, GAIN = "NC1 by the published computation", "points gained by k = 5 over k = 1"
SINGLE = (NC1, GAIN, "k-medoids, k = 3 (alternate)")
COLUMNS = ("published", "here (other weights)", "difference")
Values = Mapping[str, Mapping[str, float]]
"""By data set: the accuracy for every k in `K`, by its text, and the `SINGLE` values."""


def values_by_name(curve: Array, nc1: float, kmedoids: float) -> dict[str, float]:
    """The values of a data set by name; NaN if a value is not known."""
    return dict(zip(map(str, K), curve)) | dict(zip(SINGLE, (nc1, curve[4] - curve[0], kmedoids)))


def published_values(backbone: str, dataset: str) -> dict[str, float]:
    """The published values of a backbone on a data set."""
    kmedoids = KMEDOIDS_3.get(backbone, {}).get(dataset, np.nan)
    return values_by_name(KMEANS_OVER_K[backbone, dataset], NC1_OF_SETS[backbone][dataset], kmedoids)


class SameArchitecture(Artefact):
    """A published architecture with other weights, value by value: curves over k, NC1, gain and single results."""

    backbone = OTHER_WEIGHTS
    measure = measure_collapse

    def studies(self, setting: Setting) -> list[Study]:
        methods = [*(KMEANS.replace("{k}", str(k)) for k in K), KMEDOIDS]
        return role_study(setting, "benchmark", methods, ["all"])

    def show(self, results: Results) -> Section:
        scores = self.scores(results).where(backbone=OTHER_WEIGHTS)
        nc1 = set_values(results, "published").get(OTHER_WEIGHTS, {})
        panels, published, here = [], {}, {}
        for (_, d, _), curve, kmedoids in zip(scores.instances, scores.curve(KMEANS, K), scores.of(KMEDOIDS)):
            if (PUBLISHED, d) in KMEANS_OVER_K and d in nc1:
                published[d] = published_values(PUBLISHED, d)
                here[d] = values_by_name(np.median(curve, axis=1), nc1[d], float(np.median(kmedoids)))
                theirs = Series(f"published: {PUBLISHED}", K, KMEANS_OVER_K[PUBLISHED, d])
                panels.append(Panel(d, [theirs, Series(f"here: {OTHER_WEIGHTS}", K, *interval(curve))]))
        if not here:
            raise NotRunError(f"No data set of {OTHER_WEIGHTS} has published values.")
        svg = draw(panels, "proxies per class, k", "accuracy, %")
        picture = Picture(f"{self.name}_{OTHER_WEIGHTS}", svg, self.caption)
        return self.make_section(results, [picture, *_tables(published, here)], check_values(published, here))


def _tables(published: Values, here: Values) -> list[TextTable]:
    """The curves, and the single values that were published."""

    def cells(dataset: str, name: str) -> tuple[str, ...]:
        theirs, ours = published[dataset][name], here[dataset][name]
        return f"{theirs:.2f}", f"{ours:.2f}", f"{ours - theirs:+.2f}"

    curves = ((k, *(cell for d in here for cell in cells(d, k))) for k in map(str, K))
    known = [(name, d) for name in SINGLE for d in here if not np.isnan(published[d][name])]
    single = ((f"{name}, {d}", *cells(d, name)) for name, d in known)
    head = ("k", *(f"{d}, {column}" for d in here for column in COLUMNS))
    return [TextTable(head, tuple(curves)), TextTable(("", *COLUMNS), tuple(single))]


def check_values(published: Values, here: Values) -> dict[str, Finding]:
    """Test whether values are close to those of the published backbone, and data sets in the same order."""

    def distance(dataset: str, values: Mapping[str, float]) -> float:
        """The mean distance of a curve over k from the published one, in points."""
        return float(np.mean([abs(values[k] - published[dataset][k]) for k in map(str, K)]))

    def same_order(name: str) -> Finding:
        shown = ", ".join(f"{d} {v[name]:.2f} (published {published[d][name]:.2f})" for d, v in here.items())
        ours, theirs = (sorted(here, key=lambda d: -values[d][name]) for values in (here, published))
        return Finding(ours == theirs, shown)

    others = [b for b in NC1_OF_SETS if b != PUBLISHED]
    distances = {d: distance(d, values) for d, values in here.items()}
    nearest = {d: min(distance(d, published_values(b, d)) for b in others) for d in here}
    shown = ", ".join(f"{d} {distances[d]:.2f} against {nearest[d]:.2f}" for d in here)
    return {
        "nearest": Finding(all(distances[d] < nearest[d] for d in here), f"mean distance in points: {shown}"),
        "nc1": same_order(NC1),
        "gain": same_order(GAIN),
    }
