"""One and many proxies, by k-means and by least squares, over d."""

from dataclasses import dataclass

import numpy as np

from imprint.core.types import Array
from imprint.paper.artefact import Artefact
from imprint.paper.modes import D, curve_studies, map_curves
from imprint.paper.norms import bare, cosine
from imprint.paper.places import Places
from imprint.paper.results import Results
from imprint.paper.work import Work
from imprint.report.figures import Panel, Series, draw, interval
from imprint.report.sections import Claim, Picture, Section, Verdict, verdict

NAMES = ("mean", "k-means, best k", "least squares", "k-least-squares, best k")


def _kmeans(k: int) -> str:
    return cosine(f"kmeans(k={k})")


def _kls(k: int) -> str:
    return bare(f"k_least_squares(k={k}, reg={{reg}})")


@dataclass(frozen=True, kw_only=True)
class Against(Artefact):
    """A panel for each backbone."""

    needs: str = "many"

    def studies(self, places: Places) -> list[Work]:
        return [*curve_studies(places, _kmeans), *curve_studies(places, _kls)]

    def section(self, name: str, results: Results) -> Section:
        count = results.places.maps
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
        return Section(name, self.title, self.where, text, (Picture(name, svg, caption),), tuple(_claims(found)))


def _one_and_best(values: Array) -> tuple[Array, Array]:
    """Accuracy with one proxy and with the best number.  # (d, seeds)"""
    means = values.mean(axis=1)  # (d, k, seeds)
    best = means.mean(axis=2).argmax(axis=1)
    return means[:, 0], means[np.arange(len(D)), best]


def _claims(found: dict[str, dict[str, Array]]) -> list[Claim]:
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


artefact = Against(title="k-means against least squares over d", where="Figure A.7", order=270)
