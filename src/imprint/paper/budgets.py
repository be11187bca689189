"""Figures over the number of proxies k: all generators, and k-means with few rows per class."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from imprint.core.types import Array
from imprint.paper.artefact import Artefact, Finding, Findings, Results, Scores
from imprint.paper.setting import MAX, Setting
from imprint.paper.studies import SHOT_SEEDS, RoleStudy, cosine, role_study
from imprint.report.figures import Panel, Series, draw, interval
from imprint.report.sections import Section, Verdict

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

    def studies(self, setting: Setting) -> list[RoleStudy]:
        methods = [cosine(text.format(k=k)) for text in GENERATORS.values() for k in GENERATOR_K]
        return role_study(setting, "benchmark", [*methods, cosine("all")], ["all"])

    def show(self, results: Results) -> Section:
        scores, group = self.scores(results), results.setting.benchmark
        dataset = "cifar10" if "cifar10" in group.datasets else group.datasets[-1]
        curves = [Series(g, GENERATOR_K, v) for g, v in self.published.items() if g != "all"]
        published = Panel("published: resnet18, cifar10", curves, self.published["all"][0], "all data kept")
        panels = [published] if results.aggregator == MAX else []
        for backbone in group.backbones:
            one = scores.where(backbone=backbone, dataset=dataset)
            panels.append(Panel(f"{backbone}, {dataset}", _generator_lines(one), _median(one, "all"), "all data kept"))
        svg = draw(panels, "proxies per class, k", "accuracy, %", log_x=True)
        return self.make_section(results, [self.picture(results, svg, dataset=dataset)], _check_generators(scores))


def _generator_lines(scores: Scores) -> list[Series]:
    curves = ((label, scores.curve(cosine(text), GENERATOR_K)[0]) for label, text in GENERATORS.items())
    return [Series(label, GENERATOR_K, *interval(values)) for label, values in curves]


def _median(scores: Scores, generator: str) -> float:
    return float(np.median(scores.of(cosine(generator))[0]))


def _check_generators(scores: Scores) -> Findings:
    best, above = [], []
    for i, at in enumerate(scores.instances):
        one = replace(scores, instances=(at,), values=scores.values[i : i + 1])
        for k in GENERATOR_K:
            medians = {g: _median(one, text.format(k=k)) for g, text in GENERATORS.items()}
            best.append(max(medians, key=lambda g: medians[g]) == "kmeans")
        if _median(one, "kmeans(k=100)") > _median(one, "all"):
            above.append(f"{at.backbone}/{at.dataset}")
    total = len(scores.instances)
    on = f"at k = 100 on {len(above)} of {total} (backbone, data set): {', '.join(above) or 'none'}"
    return {
        "best": Finding(all(best), f"best at {sum(best)} of {len(best)} points (backbone, data set, k)"),
        "above_all": Finding(2 * len(above) > total, on),
    }


@dataclass(frozen=True, kw_only=True)
class LowData(Artefact):
    """Accuracy over the number of rows per class, a line for each k; with `max` also one for all rows."""

    first: int
    last: int = SHOTS[-1]
    per_backbone: bool = False
    """Whether every backbone has its own panels; by default they show the mean over backbones."""

    def studies(self, setting: Setting) -> list[RoleStudy]:
        methods = [*(cosine(f"kmeans(k={k})") for k in SHOT_K), *([cosine("all")] if setting.aggregator == MAX else [])]
        return role_study(setting, "benchmark", methods, ["all"], SHOT_SEEDS, _shots(setting))

    def show(self, results: Results) -> Section:
        scores, setting = self.scores(results), results.setting
        shots = [n for n in _shots(setting) if self.first <= n <= self.last]
        group = setting.benchmark
        averaged = [(b,) for b in group.backbones] if self.per_backbone else [group.backbones]
        panels = [
            Panel(f"{b[0] if len(b) == 1 else 'mean of the backbones'}, {d}", _shot_lines(scores, b, d, shots))
            for b in averaged
            for d in group.datasets
        ]
        height = 2.5 if self.per_backbone else 3.4
        svg = draw(panels, "rows per class, n", "accuracy, %", log_x=True, height=height)
        findings = {} if self.per_backbone else _check_shots(scores, setting)
        return self.make_section(results, [self.picture(results, svg)], findings, draws=len(SHOT_SEEDS))


def _shots(setting: Setting) -> list[int]:
    return [n for n in SHOTS if n <= setting.smallest]


def _curve(scores: Scores, method: str, backbones: Sequence[str], dataset: str, shots: Sequence[int]) -> Array:
    """Means over backbones.  # (shots, seeds)"""
    tasks = [f"all | shots(n={n})" for n in shots]
    values = [[scores.where(backbone=b, dataset=dataset, task=t).of(method)[0] for t in tasks] for b in backbones]
    return np.asarray(np.mean(values, axis=0))


def _shot_lines(scores: Scores, backbones: Sequence[str], dataset: str, shots: Sequence[int]) -> list[Series]:
    curves = [("k = 1 (mean)" if k == 1 else f"k = {k}", f"kmeans(k={k})", k) for k in SHOT_K]
    if scores.aggregator == MAX:
        curves.append(("k = n (all)", "all", 1))
    lines = []
    for label, generator, fewest in curves:
        if enough := [n for n in shots if n >= fewest]:
            values = _curve(scores, cosine(generator), backbones, dataset, enough)
            lines.append(Series(label, enough, *interval(values)))
    return lines


def crossing(scores: Scores, backbones: Sequence[str], dataset: str, shots: Sequence[int]) -> int | None:
    """The number of shots from which on some k > 1 below it is always better than the mean."""
    one, *several = (_curve(scores, cosine(f"kmeans(k={k})"), backbones, dataset, shots).mean(axis=1) for k in SHOT_K)
    allowed = np.array(shots) > np.array(SHOT_K[1:])[:, None]
    below = np.flatnonzero(np.where(allowed, several, -np.inf).max(axis=0) <= one)
    start = int(below[-1]) + 1 if len(below) else 0
    return shots[start] if start < len(shots) else None


def _check_shots(scores: Scores, setting: Setting) -> Findings:
    shots, group = _shots(setting), setting.benchmark
    start = {d: crossing(scores, group.backbones, d, shots) for d in group.datasets}
    shown = ", ".join(f"{d}: {n or f'not up to {max(shots)}'}" for d, n in start.items())

    def enough(datasets: Sequence[str], most: int) -> Finding:
        if not set(datasets) <= set(start):
            return Finding(Verdict.UNTESTABLE, "a data set is missing")
        holds = all((start[d] or np.inf) <= most for d in datasets)
        return Finding(holds, ", ".join(f"{d} from {start[d]}" for d in datasets))

    return {
        "overtakes": Finding(None not in start.values(), f"some k > 1 is above from n = ({shown})"),
        "fifty": enough(("mnist", "fashionmnist"), 50),
        "two_hundred": enough(("cifar10",), 200),
    }
