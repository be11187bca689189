"""k-means with few rows per class."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from imprint.core.types import Array
from imprint.paper.artefact import Artefact
from imprint.paper.norms import cosine
from imprint.paper.places import MAX, Places
from imprint.paper.results import Results, Scores
from imprint.paper.work import SHOT_SEEDS, Work, work
from imprint.report.figures import Panel, Series, draw, interval
from imprint.report.sections import Claim, Picture, Section, Verdict, verdict

SHOTS = (1, 2, 5, 10, 20, 50, 100, 200, 400, 600, 800, 1000)
K = (1, 2, 5, 10, 20, 50)


@dataclass(frozen=True, kw_only=True)
class LowData(Artefact):
    """Accuracy over the number of shots, a line for each k; keeping all rows is a line of `max` alone."""

    first: int
    last: int = SHOTS[-1]
    each: bool = False
    """A panel for every backbone and data set; else backbones are averaged."""

    def studies(self, places: Places) -> list[Work]:
        methods = [*(cosine(f"kmeans(k={k})") for k in K), *([cosine("all")] if places.aggregator == MAX else [])]
        return work(places, "benchmark", methods, ["all"], SHOT_SEEDS, _shots(places))

    def section(self, name: str, results: Results) -> Section:
        scores = self.scores(results)
        if scores is None:
            return self.missing(name, results)
        places = results.places
        shots = [n for n in _shots(places) if self.first <= n <= self.last]
        every = [(b,) for b in places.benchmark.backbones] if self.each else [places.benchmark.backbones]
        panels = [
            Panel(f"{b[0] if len(b) == 1 else 'mean of the backbones'}, {d}", _lines(scores, b, d, shots))
            for b in every
            for d in places.benchmark.datasets
        ]
        tall = 2.5 if self.each else 3.4
        svg = draw(panels, "rows per class, n", "accuracy, %", log_x=True, columns=3, height=tall)
        bands = "bands are 95 % confidence intervals over five seeds"
        caption = f"k-means, L2 throughout, {results.aggregator}; {bands}. Only k ≤ n is shown."
        text = f"Every class is cut to n rows, {len(SHOT_SEEDS)} draws; the smallest has {places.smallest:,}."
        claims = () if self.each else tuple(_claims(scores, places))
        return Section(name, self.title, self.where, text, (Picture(name, svg, caption),), claims)


def _shots(places: Places) -> list[int]:
    return [n for n in SHOTS if n <= places.smallest]


def _curve(scores: Scores, method: str, backbones: Sequence[str], dataset: str, shots: Sequence[int]) -> Array:
    """Means over backbones.  # (shots, seeds)"""
    task = "all | shots(n={})"
    own = [
        [scores.where(backbone=b, dataset=dataset, task=task.format(n)).of(method)[0] for n in shots] for b in backbones
    ]
    mean: Array = np.mean(own, axis=0)
    return mean


def _lines(scores: Scores, backbones: Sequence[str], dataset: str, shots: Sequence[int]) -> list[Series]:
    lines = []
    for k in K:
        own = [n for n in shots if n >= k]
        if own:
            label = "k = 1 (mean)" if k == 1 else f"k = {k}"
            values = _curve(scores, cosine(f"kmeans(k={k})"), backbones, dataset, own)
            lines.append(Series(label, own, *interval(values), kind=f"k = {k}"))
    if scores.aggregator == MAX:
        values = _curve(scores, cosine("all"), backbones, dataset, shots)
        lines.append(Series("k = n (all)", shots, *interval(values), kind="k = n"))
    return lines


def crossing(scores: Scores, backbones: Sequence[str], dataset: str, shots: Sequence[int]) -> int | None:
    """The fewest shots from which on some k > 1 (not all) is above the mean, and stays so."""
    one = _curve(scores, cosine("kmeans(k=1)"), backbones, dataset, shots).mean(axis=1)
    best = np.full(len(shots), -np.inf)
    for k in K[1:]:
        values = _curve(scores, cosine(f"kmeans(k={k})"), backbones, dataset, shots).mean(axis=1)
        best = np.where(np.array(shots) > k, np.maximum(best, values), best)
    below = np.flatnonzero(best <= one)
    start = int(below[-1]) + 1 if len(below) else 0
    return shots[start] if start < len(shots) else None


def _claims(scores: Scores, places: Places) -> list[Claim]:
    shots = _shots(places)
    found = {d: crossing(scores, places.benchmark.backbones, d, shots) for d in places.benchmark.datasets}
    shown = ", ".join(f"{d}: {n or f'not up to {max(shots)}'}" for d, n in found.items())
    claims = [
        Claim(
            "As n grows k-means overtakes the mean on every data set.",
            verdict(all(n is not None for n in found.values())),
            f"some k > 1 is above from n = ({shown})",
            Verdict.HOLDS,
            "about 50 on MNIST and FashionMNIST, about 200 on CIFAR-10",
        )
    ]
    for names, most, text in (
        (
            ("mnist", "fashionmnist"),
            50,
            "On MNIST and FashionMNIST 50 rows per class are enough for k-means to be ahead.",
        ),
        (("cifar10",), 200, "On CIFAR-10 200 rows per class are enough for k-means to be ahead."),
    ):
        own = {d: found[d] for d in names if d in found}
        if len(own) < len(names):
            claims.append(
                Claim(text, Verdict.UNTESTABLE, "a data set is missing", Verdict.HOLDS, "read from Figure 10")
            )
            continue
        holds = all(n is not None and n <= most for n in own.values())
        here = ", ".join(f"{d} from {n}" for d, n in own.items())
        claims.append(Claim(text, verdict(holds), here, Verdict.HOLDS, "as the paper reads Figure 10"))
    return claims
