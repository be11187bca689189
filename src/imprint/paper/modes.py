"""Classes of several modes: accuracy over k on "d in 1" label maps and on the ten-class sets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from imprint.core.types import Array
from imprint.paper.artefact import Artefact, Results
from imprint.paper.curve_claims import CLAIMS
from imprint.paper.published import D, K, kmeans_over_k
from imprint.paper.setting import MAX, Setting
from imprint.paper.work import SEEDS, Work, bare, cosine, work
from imprint.report.figures import Panel, Series, draw, interval
from imprint.report.sections import Cells, Claim, Picture, Section, Verdict, verdict


def maps(count: int) -> list[str]:
    """The tasks, d slowest."""
    return [f"d_in_1(d={d}, i={i})" for d in D for i in range(count)]


def curve_studies(setting: Setting, method: Callable[[int], str]) -> list[Work]:
    """A family of methods over k on the label maps, and on the whole ten-class sets."""
    methods = [method(k) for k in K]
    beside = [w for role in ("benchmark", "combined") for w in work(setting, role, methods, ["all"], SEEDS)]
    return [*work(setting, "many", methods, maps(setting.maps), SEEDS), *beside]


def map_curves(results: Results, method: Callable[[int], str]) -> dict[str, Array] | None:
    """Accuracy of every backbone.  # (d, map, k, seed)"""
    count = results.setting.maps
    asked = work(results.setting, "many", [method(k) for k in K], maps(count), SEEDS)
    scores = results.scores(asked)
    if scores is None:
        return None
    found = {}
    for backbone in results.setting.many.backbones:
        own = scores.where(backbone=backbone, dataset=results.setting.many.datasets[0])
        values = np.stack([own.of(method(k)) for k in K], axis=1)  # (tasks, k, seeds)
        found[backbone] = values.reshape(len(D), count, len(K), len(SEEDS))
    return found


def set_curves(results: Results, method: Callable[[int], str]) -> dict[tuple[str, str], Array]:
    """Accuracy on the whole ten-class sets, by backbone and data set.  # (k, seed)"""
    found: dict[tuple[str, str], Array] = {}
    for role in ("benchmark", "combined"):
        asked = work(results.setting, role, [method(k) for k in K], ["all"], SEEDS)
        scores = results.scores(asked)
        if scores is not None:
            values = np.stack([scores.of(method(k)) for k in K], axis=1)  # (instances, k, seeds)
            found |= {(at.backbone, at.dataset): own for at, own in zip(scores.instances, values)}
    return found


PUBLISHED_POOL = "imagenet"  # whose classes the published maps draw from
SHOWN = (0, 4, 14)  # setting in K


@dataclass(frozen=True, kw_only=True)
class ModeCurves(Artefact):
    """A panel for each backbone: a line for each d, dotted lines for the ten-class sets."""

    method: Callable[[int], str]
    what: str
    kind: str
    needs: str = "many"

    def studies(self, setting: Setting) -> list[Work]:
        return curve_studies(setting, self.method)

    def section(self, name: str, results: Results) -> Section:
        curves = map_curves(results, self.method)
        if curves is None:
            return self.missing(name, results)
        sets = set_curves(results, self.method)
        panels = [
            Panel(b, [*_mode_lines(values), *_set_lines(b, sets, results.setting)]) for b, values in curves.items()
        ]
        svg = draw(panels, "proxies per class, k", "accuracy, %", columns=3, height=3.6)
        maps = results.setting.maps
        bands = "bands are 95 % confidence intervals over three seeds"
        caption = f"{self.what}, {results.aggregator}. Means over {maps} label maps, marked at k = d; {bands}."
        means = {b: curve_means(v) for b, v in curves.items()}
        parts: tuple[Cells | Picture, ...] = (Picture(name, svg, caption), _peaks(means))
        parts += tuple(self._values(means, sets, results.setting))
        text = (
            f"New labels of d classes each from {results.setting.many.datasets[0]}; dotted: the whole ten-class sets."
        )
        return Section(name, self.title, self.where, text, parts, tuple(CLAIMS[self.kind](means)))

    def _values(
        self, means: Mapping[str, Array], sets: Mapping[tuple[str, str], Array], setting: Setting
    ) -> list[Cells]:
        """Value by value, where the same backbones saw the same data; published for L2 throughout and `max` only."""
        if self.kind != "l2" or setting.aggregator != MAX:
            return []
        found = {key: np.median(values, axis=1) for key, values in sets.items()}
        if setting.many.datasets[0] == PUBLISHED_POOL:
            found |= {(b, f"{d}_in_1"): row for b, rows in means.items() for d, row in zip(D, rows)}
        published = kmeans_over_k()
        lines = [_value_line(*key, ours, published[key]) for key, ours in found.items() if key in published]
        head = ("backbone, data", *(f"{what}, k = {K[i]}" for i in SHOWN for what in ("published", "here")))
        return [Cells((*head, "largest difference"), tuple(lines), 1)] if lines else []


def _value_line(backbone: str, dataset: str, ours: Array, theirs: Sequence[float]) -> tuple[str, ...]:
    values = (f"{row[i]:.2f}" for i in SHOWN for row in (theirs, ours))
    gaps = ours - np.array(theirs)
    at = int(np.abs(gaps).argmax())
    return f"{backbone}, {dataset}", *values, f"{gaps[at]:+.2f} at k = {K[at]}"


def curve_means(values: Array) -> Array:
    """The median over seeds, then the mean over maps.  # (d, k)"""
    means: Array = np.median(values, axis=3).mean(axis=1)
    return means


def _mode_lines(values: Array) -> list[Series]:
    lines = []
    for d, own in zip(D, values):
        label = f"d = {d}"
        lines.append(
            Series(label, K, *interval(own.mean(axis=0)), kind=label, shade=(d - 1) / (len(D) - 1), marked=[d - 1])
        )
    return lines


def _set_lines(backbone: str, sets: Mapping[tuple[str, str], Array], setting: Setting) -> list[Series]:
    datasets = (*setting.benchmark.datasets, *setting.combined.datasets)
    own = ((d, sets[backbone, d]) for d in datasets if (backbone, d) in sets)
    return [Series(d, K, *interval(v), kind=d, dotted=True, marked=[0, 14]) for d, v in own]


def _peaks(means: Mapping[str, Array]) -> Cells:
    """Where the best k lies."""

    def best(row: Sequence[float]) -> str:
        return str(K[int(np.argmax(row))])

    lines = tuple((b, *(best(row) for row in values)) for b, values in means.items())
    return Cells(("best k for", *(f"d = {d}" for d in D)), lines, 1)


NAMES = ("mean", "k-means, best k", "least squares", "k-least-squares, best k")


def _kmeans(k: int) -> str:
    return cosine(f"kmeans(k={k})")


def _kls(k: int) -> str:
    return bare(f"k_least_squares(k={k}, reg={{reg}})")


@dataclass(frozen=True, kw_only=True)
class BestK(Artefact):
    """A panel for each backbone."""

    needs: str = "many"

    def studies(self, setting: Setting) -> list[Work]:
        return [*curve_studies(setting, _kmeans), *curve_studies(setting, _kls)]

    def section(self, name: str, results: Results) -> Section:
        count = results.setting.maps
        ours, theirs = (map_curves(results, method) for method in (_kmeans, _kls))
        if ours is None or theirs is None:
            return self.missing(name, results)
        found = {b: dict(zip(NAMES, (*_one_and_best(ours[b]), *_one_and_best(theirs[b])))) for b in ours}
        panels = [Panel(b, [Series(n, D, *interval(v), kind=n) for n, v in own.items()]) for b, own in found.items()]
        svg = draw(panels, "classes per label, d", "accuracy, %", columns=3)
        caption = f"Means over {count} label maps; bands are 95 % confidence intervals over three seeds; k = 1 to 15."
        text = (
            "k-means with L2 throughout, least squares with nothing normalised; the best k is that of the mean curve."
        )
        return Section(name, self.title, self.where, text, (Picture(name, svg, caption),), tuple(_best_k_claims(found)))


def _one_and_best(values: Array) -> tuple[Array, Array]:
    """Accuracy with one proxy and with the best number.  # (d, seeds)"""
    means = values.mean(axis=1)  # (d, k, seeds)
    best = means.mean(axis=2).argmax(axis=1)
    return means[:, 0], means[np.arange(len(D)), best]


def _best_k_claims(found: dict[str, dict[str, Array]]) -> list[Claim]:
    last = {b: {n: float(v[-1].mean()) for n, v in own.items()} for b, own in found.items()}
    more = all(
        v["k-means, best k"] > v["mean"] and v["k-least-squares, best k"] > v["least squares"] for v in last.values()
    )
    wins = {
        b: [int(d) for d, x in zip(D, own[NAMES[1]].mean(axis=1) - own[NAMES[3]].mean(axis=1)) if x >= 0]
        for b, own in found.items()
    }
    return [
        Claim(
            "With many modes (d = 10) several proxies beat one, for k-means and for least squares.",
            verdict(more),
            "; ".join(f"{b}: " + ", ".join(f"{n} {v:.1f}" for n, v in own.items()) for b, own in last.items()),
            Verdict.HOLDS,
            "as the paper reads its figure",
        ),
        Claim(
            "k-means is competitive: k-least-squares is not consistently better.",
            verdict(any(wins.values())),
            "k-means is at least as good at "
            + "; ".join(f"{b}: d = {', '.join(map(str, w)) or 'none'}" for b, w in wins.items()),
            Verdict.HOLDS,
            "k-least-squares is better on resnet50 at d = 10 only",
        ),
    ]
