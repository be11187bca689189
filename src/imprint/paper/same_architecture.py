"""A published architecture with other weights, value by value."""

from collections.abc import Mapping

import numpy as np

from imprint.core.types import Array
from imprint.paper.artefact import Artefact, Finding, NotRunError, Results
from imprint.paper.collapse import measure_collapse, set_values
from imprint.paper.modes import KMEANS
from imprint.paper.published import KMEDOIDS_3, NC1_OF_SETS, K, kmeans_over_k
from imprint.paper.setting import Setting
from imprint.paper.studies import cosine, role_study
from imprint.report.figures import Panel, Series, draw, interval
from imprint.report.sections import Picture, Section
from imprint.report.text_table import TextTable
from imprint.study import Study

PUBLISHED, OTHER_WEIGHTS = "resnet50", "resnet50_keras"
KMEDOIDS = cosine("kmedoids(k=3, method='alternate')")
SINGLE = ("NC1 by the published computation", "points gained by k = 5 over k = 1", "k-medoids, k = 3 (alternate)")
NC1, GAIN = len(K), len(K) + 1
"""Indices in the values of a data set: accuracies over `K`, then the `SINGLE` values."""
COLUMNS = ("published", "here (other weights)", "difference")
ByDataset = Mapping[str, Array]


def joined(curve: Array, nc1: float, kmedoids: float) -> Array:
    """The values of a data set in one array; NaN if there is none."""
    return np.append(curve, [nc1, curve[4] - curve[0], kmedoids])


def published_values(backbone: str, dataset: str) -> Array:
    """The published values of a backbone on a data set."""
    curve, kmedoids = np.array(kmeans_over_k()[backbone, dataset]), KMEDOIDS_3.get(backbone, {})
    return joined(curve, NC1_OF_SETS[backbone][dataset], kmedoids.get(dataset, np.nan))


class SameArchitecture(Artefact):
    """Curves over k, NC1, gain and single results of a backbone next to those of the published one."""

    measure = measure_collapse

    def can_run(self, setting: Setting) -> bool:
        return super().can_run(setting) and OTHER_WEIGHTS in setting.benchmark.backbones

    def studies(self, setting: Setting) -> list[Study]:
        methods = [*(KMEANS.replace("{k}", str(k)) for k in K), KMEDOIDS]
        return role_study(setting, "benchmark", methods, ["all"])

    def missing(self, setting: Setting) -> str:
        has_pack = OTHER_WEIGHTS in setting.benchmark.backbones
        return super().missing(setting) if has_pack else "No pack is of a published architecture."

    def show(self, results: Results) -> Section:
        scores, nc1 = self.scores(results).where(backbone=OTHER_WEIGHTS), set_values(results, "published")
        panels, published, here = [], {}, {}
        for (_, d, _), curve, kmedoids in zip(scores.instances, scores.curve(KMEANS, K), scores.of(KMEDOIDS)):
            if (PUBLISHED, d) in kmeans_over_k() and (OTHER_WEIGHTS, d) in nc1:
                published[d] = published_values(PUBLISHED, d)
                here[d] = joined(np.median(curve, axis=1), nc1[OTHER_WEIGHTS, d], float(np.median(kmedoids)))
                theirs = Series(f"published: {PUBLISHED}", K, published[d][: len(K)])
                panels.append(Panel(d, [theirs, Series(f"here: {OTHER_WEIGHTS}", K, *interval(curve))]))
        if not here:
            raise NotRunError(f"No data set of {OTHER_WEIGHTS} has published values.")
        svg = draw(panels, "proxies per class, k", "accuracy, %")
        picture = Picture(f"{self.name}_{OTHER_WEIGHTS}", svg, self.caption)
        return self.make_section(results, [picture, *_tables(published, here)], check(published, here))


def _tables(published: ByDataset, here: ByDataset) -> list[TextTable]:
    """The curves, and the single values that were published."""

    def cells(dataset: str, i: int) -> tuple[str, ...]:
        theirs, ours = published[dataset][i], here[dataset][i]
        return f"{theirs:.2f}", f"{ours:.2f}", f"{ours - theirs:+.2f}"

    curves = ((str(k), *(cell for d in here for cell in cells(d, i))) for i, k in enumerate(K))
    known = [(i, d) for i in range(len(K), len(K) + len(SINGLE)) for d in here if not np.isnan(published[d][i])]
    single = ((f"{SINGLE[i - len(K)]}, {d}", *cells(d, i)) for i, d in known)
    head = ("k", *(f"{d}, {column}" for d in here for column in COLUMNS))
    return [TextTable(head, tuple(curves), 1), TextTable(("", *COLUMNS), tuple(single), 1)]


def check(published: ByDataset, here: ByDataset) -> dict[str, Finding]:
    """Test whether values are close to those of the published backbone, and data sets in the same order."""

    def distance(dataset: str, values: Array) -> float:
        """The mean distance of a curve over k from the published one, in points."""
        return float(np.abs(values - published[dataset])[: len(K)].mean())

    def same_order(i: int) -> Finding:
        shown = ", ".join(f"{d} {v[i]:.2f} (published {published[d][i]:.2f})" for d, v in here.items())
        return Finding(sorted(here, key=lambda d: -here[d][i]) == sorted(here, key=lambda d: -published[d][i]), shown)

    others = [b for b in NC1_OF_SETS if b != PUBLISHED]
    distances = {d: distance(d, values) for d, values in here.items()}
    nearest = {d: min(distance(d, published_values(b, d)) for b in others) for d in here}
    shown = ", ".join(f"{d} {distances[d]:.2f} against {nearest[d]:.2f}" for d in here)
    return {
        "nearest": Finding(all(distances[d] < nearest[d] for d in here), f"mean distance in points: {shown}"),
        "nc1": same_order(NC1),
        "gain": same_order(GAIN),
    }
