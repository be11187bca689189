"""Classes of several modes: accuracy over k on "d in 1" label maps and on the ten-class
sets; published values.
"""

import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from imprint.extend import Array
from imprint.report import Panel, Series, TextTable, draw, interval
from imprint.study import Study
from imprint_reproduction.artefact import (
    Artefact,
    Finding,
    NotRunError,
    Results,
    listed,
)
from imprint_reproduction.sections import Section
from imprint_reproduction.setting import MAX, SEEDS, Setting, cosine, role_study

K, D = range(1, 16), range(1, 11)
"""Proxies per class, and classes per label of "d in 1", in the figures of the paper."""
KMEANS = cosine("kmeans(k={k})")
PUBLISHED_POOL = "imagenet"  # the data set of the published label maps
SHOWN = (0, 4, 14)  # indices in K
TRANSFORMERS = ("vit", "swin", "deit", "minilm")  # parts of their names
Means = Mapping[str, Array]
"""Accuracy by backbone.  # (d, k)"""
_PUBLISHED = tomllib.loads(
    (files("imprint_reproduction") / "published.toml").read_text("utf-8")
)
NC1: dict[str, list[float]] = _PUBLISHED["nc1"]
"""Published NC1 by backbone, the mean over the label maps for every d in `D`."""
NC1_OF_SETS: dict[str, dict[str, float]] = _PUBLISHED["nc1_of_sets"]
"""Published NC1 by backbone and data set."""
KMEANS_OVER_K = {
    (b, d): np.array(v, float)
    for b, sets in _PUBLISHED["kmeans_over_k"].items()
    for d, v in sets.items()
}
"""Published accuracy of k-means for every k in `K`, by backbone and data set; the maps
of one d are named `3_in_1`.
"""
PUBLISHED_CURVES = {
    b: np.array([KMEANS_OVER_K[b, f"{d}_in_1"] for d in D]) for b in NC1
}
"""The same for the label maps, by backbone.  # (d, k)"""


def maps(count: int) -> list[str]:
    """The "d in 1" tasks, all maps of one d together."""
    return [f"d_in_1(d={d}, i={i})" for d in D for i in range(count)]


def curve_studies(
    setting: Setting,
    method: str,
    roles: Sequence[str] = ("many", "benchmark", "combined"),
) -> list[Study]:
    """A method with `{k}` for all k: on the label maps, and on the whole ten-class
    sets.
    """
    methods, studies = [method.replace("{k}", str(k)) for k in K], []
    for role in roles:
        studies += role_study(
            setting, role, methods, maps(setting.maps) if role == "many" else ["all"]
        )
    return studies


def map_curves(results: Results, method: str) -> dict[str, Array]:
    """Accuracy on the label maps by backbone; raises `NotRunError` if some are missing.
    # (d, map, k, seed)
    """
    setting = results.setting
    scores = results.scores(curve_studies(setting, method, ["many"]))
    shape = len(D), setting.maps, len(K), len(SEEDS)
    chosen = {
        b: scores.where(backbone=b, dataset=setting.many.datasets[0])
        for b in setting.many.backbones
    }
    return {b: s.curve(method, K).reshape(shape) for b, s in chosen.items()}


def set_curves(results: Results, method: str) -> dict[tuple[str, str], Array]:
    """Accuracy on the whole ten-class sets, by backbone and data set, as far as they
    were run.  # (k, seed)
    """
    curves: dict[tuple[str, str], Array] = {}
    for study in curve_studies(results.setting, method, ["benchmark", "combined"]):
        with suppress(NotRunError):
            scores = results.scores([study])
            at = [
                (instance.backbone, instance.dataset) for instance in scores.instances
            ]
            curves |= dict(zip(at, scores.curve(method, K)))
    return curves


def curve_means(values: Array) -> Array:
    """The median over seeds, then the mean over maps.  # (d, k)"""
    means: Array = np.median(values, axis=3).mean(axis=1)
    return means


@dataclass(frozen=True, kw_only=True)
class ModeCurves(Artefact):
    """A panel for each backbone: a line for each d, dotted lines for the ten-class
    sets.
    """

    method: str = KMEANS
    needs = "many"

    def studies(self, setting: Setting) -> list[Study]:
        return curve_studies(setting, self.method)

    def show(self, results: Results) -> Section:
        curves, sets = (
            map_curves(results, self.method),
            set_curves(results, self.method),
        )
        setting, panels = results.setting, []
        for b, values in curves.items():
            lines = [
                Series(
                    f"d = {d}",
                    K,
                    *interval(accuracies.mean(axis=0)),
                    shade=(d - 1) / (len(D) - 1),
                    marked=[d - 1],
                )
                for d, accuracies in zip(D, values)
            ]
            on_sets = {
                d: interval(v) for (backbone, d), v in sets.items() if backbone == b
            }
            lines += [
                Series(d, K, *bands, dotted=True, marked=[0, 14])
                for d, bands in on_sets.items()
            ]
            panels.append(Panel(b, lines))
        svg = draw(panels, "proxies per class, k", "accuracy, %", height=3.6)
        means = {b: curve_means(v) for b, v in curves.items()}
        best = tuple(
            (b, *(str(K[int(np.argmax(row))]) for row in rows))
            for b, rows in means.items()
        )
        tables = [TextTable(("best k for", *(f"d = {d}" for d in D)), best)]
        # the only published curves
        if self.method == KMEANS and setting.aggregator == MAX:
            tables += _against_published(means, sets, setting.many.datasets[0])
        here, theirs = (
            check(means),
            check(PUBLISHED_CURVES) if self.method == KMEANS else {},
        )
        findings = {
            claim: here[claim]._replace(published=theirs.get(claim))
            for claim in self.claims
        }
        return self.make_section(
            results,
            [self.image(svg), *tables],
            findings,
            pool=setting.many.datasets[0],
        )


def _against_published(
    means: Means, sets: Mapping[tuple[str, str], Array], pool: str
) -> list[TextTable]:
    """The curves of published backbones on published data, next to the published
    values.
    """
    curves = {key: np.median(values, axis=1) for key, values in sets.items()}
    if pool == PUBLISHED_POOL:
        curves |= {
            (b, f"{d}_in_1"): row
            for b, rows in means.items()
            for d, row in zip(D, rows)
        }
    published = {key: KMEANS_OVER_K[key] for key in curves if key in KMEANS_OVER_K}
    lines = [value_line(*key, curves[key], theirs) for key, theirs in published.items()]
    head = (
        "backbone, data",
        *(f"{what}, k = {K[i]}" for i in SHOWN for what in ("published", "here")),
    )
    return [TextTable((*head, "largest difference"), tuple(lines))] if lines else []


def value_line(
    backbone: str, dataset: str, ours: Array, theirs: Array
) -> tuple[str, ...]:
    """A row of the table: some values of both curves, and their largest difference."""
    values = (f"{row[i]:.2f}" for i in SHOWN for row in (theirs, ours))
    gaps = ours - theirs
    at = int(np.abs(gaps).argmax())
    return f"{backbone}, {dataset}", *values, f"{gaps[at]:+.2f} at k = {K[at]}"


@dataclass(frozen=True, kw_only=True)
class BestK(Artefact):
    """k-means and k-least-squares over d, with one proxy and with the best number; a
    panel for each backbone.
    """

    methods: Mapping[str, tuple[str, str]]
    """By method: the labels of the lines with one proxy and with the best number;
    k-means comes first.
    """
    needs = "many"

    def studies(self, setting: Setting) -> list[Study]:
        return [
            study for method in self.methods for study in curve_studies(setting, method)
        ]

    def show(self, results: Results) -> Section:
        lines: dict[str, dict[str, Array]] = {}  # by backbone and label  # (d, seeds)
        for method, (one, best) in self.methods.items():
            for b, values in map_curves(results, method).items():
                means = values.mean(axis=1)  # (d, k, seeds)
                best_k = means.mean(axis=2).argmax(axis=1)
                lines.setdefault(b, {}).update(
                    {one: means[:, 0], best: means[np.arange(len(D)), best_k]}
                )
        panels = [
            Panel(b, [Series(n, D, *interval(v)) for n, v in by_label.items()])
            for b, by_label in lines.items()
        ]
        svg = draw(panels, "classes per label, d", "accuracy, %")
        return self.make_section(results, [self.image(svg)], self._check(lines))

    def _check(self, lines: Mapping[str, Mapping[str, Array]]) -> dict[str, Finding]:
        """Test whether several proxies beat one at d = 10, and whether k-means is as
        good as k-least-squares.
        """
        (mean, kmeans), (one, many) = self.methods.values()
        last = {
            b: {n: float(v[-1].mean()) for n, v in by_label.items()}
            for b, by_label in lines.items()
        }
        several = all(v[kmeans] > v[mean] and v[many] > v[one] for v in last.values())
        wins = {
            b: [d for d, x, y in zip(D, v[kmeans], v[many]) if x.mean() >= y.mean()]
            for b, v in lines.items()
        }
        figures = "; ".join(
            f"{b}: {listed(by_label, '.1f')}" for b, by_label in last.items()
        )
        at = "; ".join(
            f"{b}: d = {', '.join(map(str, w)) or 'none'}" for b, w in wins.items()
        )
        return {
            "several": Finding(several, figures),
            "competitive": Finding(
                any(wins.values()), f"k-means is at least as good at {at}"
            ),
        }


def peaks(values: Array) -> list[int]:
    """The d at which k = d is better than its neighbours k = d - 1 and k = d + 1."""
    rows = zip(D, values)
    return [
        d
        for d, row in rows
        if row[d - 1] > row[d] and (d == 1 or row[d - 1] > row[d - 2])
    ]


def check(means: Means) -> dict[str, Finding]:
    """Test all claims about curves over k."""
    at_peak = {b: peaks(v) for b, v in means.items()}
    shown = (
        f"{b}: " + (f"d = {', '.join(map(str, d))}" if d else "no d")
        for b, d in at_peak.items()
    )
    peaks_at = f"peaks at {'; '.join(shown)}"
    hits = [K[int(np.argmax(row))] == d for v in means.values() for d, row in zip(D, v)]
    several = all(
        row[d - 1] > row[0] for v in means.values() for d, row in zip(D[1:], v[1:])
    )
    gains = {b: v[9][9] - v[9][0] for b, v in means.items()}
    dips = {
        b: max(row[0] - row[: d - 1].min() for d, row in zip(D[2:], v[2:]))
        for b, v in means.items()
    }
    falls = {
        b: float(np.mean([row[d - 1] - row[-1] for d, row in zip(D, v)]))
        for b, v in means.items()
    }
    one = {b: sum(int(np.argmax(row)) == 0 for row in v) for b, v in means.items()}
    transformer = {b: any(word in b for word in TRANSFORMERS) for b in means}
    dip = all((dips[b] > 0.5) == transformer[b] for b in means)
    kinds = all(one[b] > 5 if transformer[b] else len(at_peak[b]) >= 8 for b in means)
    best_for = ", ".join(f"{b} {n} of 10 d" for b, n in one.items())
    return {
        "peaks": Finding(all(len(d) == len(D) for d in at_peak.values()), peaks_at),
        "best": Finding(all(hits), f"{sum(hits)} of {len(hits)}"),
        "several": Finding(several, f"at d = 10: {listed(gains, '+.2f')}"),
        "dips": Finding(dip, f"largest dip below k = 1, points: {listed(dips)}"),
        "declines": Finding(
            min(falls.values()) > 0,
            f"from k = d to k = 15 on average, points lost: {listed(falls)}",
        ),
        "kinds": Finding(kinds, f"{peaks_at}; k = 1 is best for {best_for}"),
    }
