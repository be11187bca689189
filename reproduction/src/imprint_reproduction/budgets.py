"""Figures over the number of proxies k: all generators, and k-means with few rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from imprint.extend import Array
from imprint.report import Panel, Series, draw, interval
from imprint.study import Study
from imprint_reproduction.artefact import Artefact, Finding, Results
from imprint_reproduction.modes import KMEANS
from imprint_reproduction.sections import Section, Verdict
from imprint_reproduction.setting import MAX, SHOT_SEEDS, Setting, cosine, role_study

SHOTS = (1, 2, 5, 10, 20, 50, 100, 200, 400, 600, 800, 1000)
SHOT_K = (1, 2, 5, 10, 20, 50)


@dataclass(frozen=True, kw_only=True)
class GeneratorsOverK(Artefact):
    """Curves over k: a panel with the published ones, and one for each backbone."""

    k: Sequence[int]
    generators: Mapping[str, Sequence[Any]] = field(repr=False)
    """By label: the generator, and its published accuracy for every k, if it was
    published.
    """
    published_all: float  # published accuracy with all embeddings as proxies

    def studies(self, setting: Setting) -> list[Study]:
        methods = [
            cosine(text.format(k=k))
            for text, *_ in self.generators.values()
            for k in self.k
        ]
        return role_study(setting, "benchmark", [*methods, cosine("all")], ["all"])

    def show(self, results: Results) -> Section:
        scores, datasets = self.scores(results), results.setting.benchmark.datasets
        curves = {
            name: scores.curve(cosine(text), self.k)
            for name, (text, *_) in self.generators.items()
        }
        all_rows = np.median(scores.of(cosine("all")), axis=1)  # (instances,)
        dataset = "cifar10" if "cifar10" in datasets else datasets[-1]
        published = [
            Series(name, self.k, *values)
            for name, (_, *values) in self.generators.items()
            if values
        ]
        panels = [
            Panel(
                "published: resnet18, cifar10",
                published,
                self.published_all,
                "all data kept",
            )
        ]
        for i, at in enumerate(scores.instances):
            if at.dataset == dataset:
                lines = [
                    Series(name, self.k, *interval(values[i]))
                    for name, values in curves.items()
                ]
                panels.append(
                    Panel(
                        f"{at.backbone}, {dataset}",
                        lines,
                        float(all_rows[i]),
                        "all data kept",
                    )
                )
        shown = panels if results.aggregator == MAX else panels[1:]
        svg = draw(shown, "proxies per class, k", "accuracy, %", log_x=True)
        # (instances, k)
        medians = {name: np.median(values, axis=2) for name, values in curves.items()}
        names = [f"{at.backbone}/{at.dataset}" for at in scores.instances]
        findings = _check_generators(names, medians, all_rows)
        return self.make_section(results, [self.image(svg)], findings, dataset=dataset)


def _check_generators(
    names: Sequence[str], medians: Mapping[str, Array], all_rows: Array
) -> dict[str, Finding]:
    best = medians["kmeans"] >= np.max(list(medians.values()), axis=0)
    above = [
        name
        for name, gain in zip(names, medians["kmeans"][:, -1] - all_rows)
        if gain > 0
    ]
    on = (
        f"at k = 100 on {len(above)} of {len(names)} (backbone, data set):"
        f" {', '.join(above) or 'none'}"
    )
    return {
        "best": Finding(
            bool(best.all()),
            f"best at {best.sum()} of {best.size} points (backbone, data set, k)",
        ),
        "above_all": Finding(2 * len(above) > len(names), on),
    }


@dataclass(frozen=True, kw_only=True)
class LowData(Artefact):
    """Accuracy over the number of rows per class, a line for each k; with `max` also
    one for all rows.
    """

    first: int
    last: int = SHOTS[-1]
    per_backbone: bool = False
    """Whether every backbone has its own panels; by default they show the mean over
    backbones.
    """

    def obstacle(self, setting: Setting) -> str:
        few = (
            f"The smallest class has {setting.smallest} rows; the figure begins with"
            f" {self.first} rows per class."
        )
        return super().obstacle(setting) or (
            few if setting.smallest < self.first else ""
        )

    def studies(self, setting: Setting) -> list[Study]:
        methods = [method for method, _ in _shot_methods(setting).values()]
        shots = [n for n in SHOTS if n <= setting.smallest]
        return role_study(setting, "benchmark", methods, ["all"], SHOT_SEEDS, shots)

    def show(self, results: Results) -> Section:
        (study,), scores = self.studies(results.setting), self.scores(results)
        shape = [
            len(values)
            for values in (study.backbones, study.datasets, study.shots, study.seeds)
        ]
        methods, titles, shots = (
            _shot_methods(results.setting),
            study.backbones,
            np.array(study.shots),
        )
        curves = {
            label: scores.of(method).reshape(shape)
            for label, (method, _) in methods.items()
        }
        if not self.per_backbone and len(titles) > 1:
            titles = ("mean of the backbones",)
            curves = {
                label: values.mean(axis=0, keepdims=True)
                for label, values in curves.items()
            }
        panels = []
        for (i, title), (j, dataset) in product(
            enumerate(titles), enumerate(study.datasets)
        ):
            lines = []
            for label, (_, fewest) in methods.items():
                fits = (shots >= max(fewest, self.first)) & (shots <= self.last)
                if fits.any():
                    lines.append(
                        Series(label, shots[fits], *interval(curves[label][i, j, fits]))
                    )
            panels.append(Panel(f"{title}, {dataset}", lines))
        height = 2.5 if self.per_backbone else 3.4
        svg = draw(
            panels, "rows per class, n", "accuracy, %", log_x=True, height=height
        )
        findings = {}
        if not self.per_backbone:
            # (k, data sets, shots)
            means = np.array([values[0].mean(axis=2) for values in curves.values()])
            start = {
                d: crossing(means[: len(SHOT_K), j], shots)
                for j, d in enumerate(study.datasets)
            }
            findings = check_shots(start, max(study.shots))
        return self.make_section(
            results, [self.image(svg)], findings, draws=len(SHOT_SEEDS)
        )


def _shot_methods(setting: Setting) -> dict[str, tuple[str, int]]:
    """By label: the method, and the fewest rows per class for which it is shown."""
    names = {k: f"k = {k}" if k > 1 else "k = 1 (mean)" for k in SHOT_K}
    methods = {name: (KMEANS.replace("{k}", str(k)), k) for k, name in names.items()}
    return methods | (
        {"k = n (all)": (cosine("all"), 1)} if setting.aggregator == MAX else {}
    )


def crossing(means: Array, shots: Array) -> int | None:
    """The number of shots from which on some k > 1 below it is always better than k =
    1; `means` has a row per k.
    """
    allowed = shots > np.array(SHOT_K[1:])[:, None]
    below = np.flatnonzero(
        np.where(allowed, means[1:], -np.inf).max(axis=0) <= means[0]
    )
    return (
        next(iter(shots[below[-1] + 1 :].tolist()), None)
        if len(below)
        else int(shots[0])
    )


def check_shots(start: Mapping[str, int | None], most: int) -> dict[str, Finding]:
    """Test from how many rows per class on k-means is ahead, given this number by data
    set, and the largest tested.
    """
    never = f"not up to {most}"
    shown = ", ".join(f"{d}: {n or never}" for d, n in start.items())

    def enough(datasets: Sequence[str], rows: int) -> Finding:
        if not set(datasets) <= set(start):
            return Finding(Verdict.UNTESTABLE, "a data set is missing")
        holds = all((start[d] or np.inf) <= rows for d in datasets)
        shown = (
            f"{d} from {start[d]}" if start[d] else f"{d} {never}" for d in datasets
        )
        return Finding(holds, ", ".join(shown))

    return {
        "overtakes": Finding(
            None not in start.values(), f"some k > 1 is above from n = ({shown})"
        ),
        "fifty": enough(("mnist", "fashionmnist"), 50),
        "two_hundred": enough(("cifar10",), 200),
    }
