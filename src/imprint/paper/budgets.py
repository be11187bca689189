"""Figures over the number of proxies k: all generators, and k-means with few rows per class."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from imprint.core.types import Array
from imprint.paper.artefact import Artefact, Finding, Results
from imprint.paper.setting import MAX, Setting
from imprint.paper.studies import SHOT_SEEDS, cosine, role_study
from imprint.report.figures import Panel, Series, draw, interval
from imprint.report.sections import Section, Verdict
from imprint.study import Study

GENERATOR_K = (1, 2, 3, 5, 10, 20, 50, 100)
GENERATORS = {
    "kmeans": "kmeans(k={k})",
    "kmedoids (alternate)": "kmedoids(k={k}, method='alternate')",
    "kmedoids (FasterPAM)": "kmedoids(k={k})",
    "covmax": "covmax(k={k})",
    "random": "random(k={k})",
    "fps": "fps(k={k})",
}
SHOTS = (1, 2, 5, 10, 20, 50, 100, 200, 400, 600, 800, 1000)
SHOT_K = (1, 2, 5, 10, 20, 50)


@dataclass(frozen=True, kw_only=True)
class GeneratorsOverK(Artefact):
    """Curves over k: a panel with the published ones, and one for each backbone."""

    published: Mapping[str, Any] = field(repr=False)
    """Accuracy of each generator over `GENERATOR_K`, and of `all`."""

    def studies(self, setting: Setting) -> list[Study]:
        methods = [cosine(text.format(k=k)) for text in GENERATORS.values() for k in GENERATOR_K]
        return role_study(setting, "benchmark", [*methods, cosine("all")], ["all"])

    def show(self, results: Results) -> Section:
        scores, group = self.scores(results), results.setting.benchmark
        curves = {name: scores.curve(cosine(text), GENERATOR_K) for name, text in GENERATORS.items()}
        all_rows = np.median(scores.of(cosine("all")), axis=1)  # (instances,)
        dataset = "cifar10" if "cifar10" in group.datasets else group.datasets[-1]
        published = [Series(g, GENERATOR_K, v) for g, v in self.published.items() if g != "all"]
        panels = [Panel("published: resnet18, cifar10", published, self.published["all"][0], "all data kept")]
        for i, at in enumerate(scores.instances):
            if at.dataset == dataset:
                lines = [Series(name, GENERATOR_K, *interval(values[i])) for name, values in curves.items()]
                panels.append(Panel(f"{at.backbone}, {dataset}", lines, float(all_rows[i]), "all data kept"))
        shown = panels if results.aggregator == MAX else panels[1:]
        svg = draw(shown, "proxies per class, k", "accuracy, %", log_x=True)
        medians = {name: np.median(values, axis=2) for name, values in curves.items()}  # (instances, k)
        names = [f"{at.backbone}/{at.dataset}" for at in scores.instances]
        return self.make_section(results, [svg], _check_generators(names, medians, all_rows), dataset=dataset)


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
        methods = [*(cosine(f"kmeans(k={k})") for k in SHOT_K), *([cosine("all")] if setting.aggregator == MAX else [])]
        return role_study(setting, "benchmark", methods, ["all"], SHOT_SEEDS, _shots(setting))

    def show(self, results: Results) -> Section:
        scores, group, shots = self.scores(results), results.setting.benchmark, np.array(_shots(results.setting))
        shape = len(group.backbones), len(group.datasets), len(shots), len(SHOT_SEEDS)
        generators = {f"k = {k}" if k > 1 else "k = 1 (mean)": (f"kmeans(k={k})", k) for k in SHOT_K}
        if results.aggregator == MAX:
            generators["k = n (all)"] = "all", 1
        curves = {label: scores.of(cosine(text)).reshape(shape) for label, (text, _) in generators.items()}
        if self.per_backbone or len(group.backbones) == 1:
            averaged = {b: slice(i, i + 1) for i, b in enumerate(group.backbones)}
        else:
            averaged = {"mean of the backbones": slice(None)}
        panels = []
        for title, backbones in averaged.items():
            for j, dataset in enumerate(group.datasets):
                lines = []
                for label, (_, k) in generators.items():
                    fits, values = (shots >= max(k, self.first)) & (shots <= self.last), curves[label][backbones, j]
                    lines += [Series(label, shots[fits], *interval(values.mean(axis=0)[fits]))] if fits.any() else []
                panels.append(Panel(f"{title}, {dataset}", lines))
        height = 2.5 if self.per_backbone else 3.4
        svg = draw(panels, "rows per class, n", "accuracy, %", log_x=True, height=height)
        means = np.array([values.mean(axis=0).mean(axis=2) for values in curves.values()])  # (k, data sets, shots)
        start = {d: crossing(means[: len(SHOT_K), j], shots) for j, d in enumerate(group.datasets)}
        findings = {} if self.per_backbone else _check_shots(start, max(shots))
        return self.make_section(results, [svg], findings, draws=len(SHOT_SEEDS))


def _shots(setting: Setting) -> list[int]:
    return [n for n in SHOTS if n <= setting.smallest]


def crossing(means: Array, shots: Array) -> int | None:
    """The number of shots from which on some k > 1 below it is always better than k = 1; `means` has a row for each k.

    >>> crossing(np.array([[5, 5, 5], [4, 6, 6], [9, 9, 4], *[[0] * 3] * 3]), np.array([1, 10, 20]))
    10
    """
    allowed = shots > np.array(SHOT_K[1:])[:, None]
    below = np.flatnonzero(np.where(allowed, means[1:], -np.inf).max(axis=0) <= means[0])
    return next(iter(shots[below[-1] + 1 :].tolist()), None) if len(below) else int(shots[0])


def _check_shots(start: Mapping[str, int | None], most: int) -> dict[str, Finding]:
    shown = ", ".join(f"{d}: {n or f'not up to {most}'}" for d, n in start.items())

    def enough(datasets: Sequence[str], rows: int) -> Finding:
        if not set(datasets) <= set(start):
            return Finding(Verdict.UNTESTABLE, "a data set is missing")
        holds = all((start[d] or np.inf) <= rows for d in datasets)
        return Finding(holds, ", ".join(f"{d} from {start[d]}" for d in datasets))

    return {
        "overtakes": Finding(None not in start.values(), f"some k > 1 is above from n = ({shown})"),
        "fifty": enough(("mnist", "fashionmnist"), 50),
        "two_hundred": enough(("cifar10",), 200),
    }
