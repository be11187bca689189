"""Figures of accuracy over k for "d in 1", with the ten-class sets beside them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from imprint.core.types import Array
from imprint.paper.artefact import Artefact
from imprint.paper.curve_claims import CLAIMS
from imprint.paper.modes import D, K, curve_studies, map_curves, set_curves
from imprint.paper.places import MAX, Places
from imprint.paper.published import kmeans_over_k
from imprint.paper.results import Results
from imprint.paper.work import Work
from imprint.report.figures import Panel, Series, draw, interval
from imprint.report.sections import Cells, Picture, Section

PUBLISHED_POOL = "imagenet"  # whose classes the published maps draw from
SHOWN = (0, 4, 14)  # places in K


@dataclass(frozen=True, kw_only=True)
class Curves(Artefact):
    """A panel for each backbone: a line for each d, dotted lines for the ten-class sets."""

    method: Callable[[int], str]
    what: str
    kind: str
    needs: str = "many"

    def studies(self, places: Places) -> list[Work]:
        return curve_studies(places, self.method)

    def section(self, name: str, results: Results) -> Section:
        curves = map_curves(results, self.method)
        if curves is None:
            return self.missing(name, results)
        sets = set_curves(results, self.method)
        panels = [
            Panel(b, [*_mode_lines(values), *_set_lines(b, sets, results.places)]) for b, values in curves.items()
        ]
        svg = draw(panels, "proxies per class, k", "accuracy, %", columns=3, height=3.6)
        maps = results.places.maps
        bands = "bands are 95 % confidence intervals over three seeds"
        caption = f"{self.what}, {results.aggregator}. Means over {maps} label maps, marked at k = d; {bands}."
        means = {b: curve_means(v) for b, v in curves.items()}
        parts: tuple[Cells | Picture, ...] = (Picture(name, svg, caption), _peaks(means))
        parts += tuple(self._values(means, sets, results.places))
        text = f"New labels of d classes each from {results.places.many.datasets[0]}; dotted: the whole ten-class sets."
        return Section(name, self.title, self.where, text, parts, tuple(CLAIMS[self.kind](means)))

    def _values(self, means: Mapping[str, Array], sets: Mapping[tuple[str, str], Array], places: Places) -> list[Cells]:
        """Value by value, where the same backbones saw the same data; published for L2 throughout and `max` only."""
        if self.kind != "l2" or places.aggregator != MAX:
            return []
        found = {key: np.median(values, axis=1) for key, values in sets.items()}
        if places.many.datasets[0] == PUBLISHED_POOL:
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


def _set_lines(backbone: str, sets: Mapping[tuple[str, str], Array], places: Places) -> list[Series]:
    datasets = (*places.benchmark.datasets, *places.combined.datasets)
    own = ((d, sets[backbone, d]) for d in datasets if (backbone, d) in sets)
    return [Series(d, K, *interval(v), kind=d, dotted=True, marked=[0, 14]) for d, v in own]


def _peaks(means: Mapping[str, Array]) -> Cells:
    """Where the best k lies."""

    def best(row: Sequence[float]) -> str:
        return str(K[int(np.argmax(row))])

    lines = tuple((b, *(best(row) for row in values)) for b, values in means.items())
    return Cells(("best k for", *(f"d = {d}" for d in D)), lines, 1)
