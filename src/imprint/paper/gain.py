"""The gain of five proxies over one, as a function of NC1."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from imprint.collapse import GainFit, gain_fit
from imprint.paper.artefact import Finding, Findings, NotRunError, Results
from imprint.paper.collapse import MeasuresCollapse, map_values, set_values
from imprint.paper.modes import KMEANS, curve_means, curve_studies, map_curves, set_curves
from imprint.paper.published import NC1, NC1_OF_SETS, kmeans_over_k
from imprint.paper.setting import Setting
from imprint.paper.studies import RoleStudy
from imprint.report.figures import Cloud, scatter
from imprint.report.sections import Section
from imprint.report.text_table import TextTable

FEWEST = 8  # points for a fit
Fits = Mapping[str, GainFit | None]
"""By the region of the points; None if there are too few."""


class GainPoint(NamedTuple):
    """A task: its NC1, and the gain of k = 5 over k = 1 in percentage points."""

    backbone: str
    dataset: str
    nc1: float
    gain: float
    remapped: bool


@dataclass(frozen=True, kw_only=True)
class GainFigure(MeasuresCollapse):
    """Points over log NC1, rank correlation and fit."""

    needs: ClassVar[str] = "many"

    def studies(self, setting: Setting) -> list[RoleStudy]:
        return curve_studies(setting, KMEANS)

    def show(self, results: Results) -> Section:
        points = {"published": published(), "here": measured(results)}
        fits = {source: _fits(of_source) for source, of_source in points.items()}
        titles = {"published": "published", "here": f"here, {results.aggregator}"}
        clouds = [
            Cloud.of(titles[s], ((p.backbone, p.remapped, p.nc1, p.gain) for p in of_source), fits[s]["all"])
            for s, of_source in points.items()
        ]
        svg = scatter(clouds, "NC1 (log scale)", "gain of k = 5 over k = 1, points")
        parts = self.picture(results, svg), _table(fits)
        return self.make_section(results, parts, _check(fits["here"], fits["published"]))


def measured(results: Results) -> list[GainPoint]:
    """The points of a run; NC1 by the formula of the paper."""
    maps, sets, count = map_values(results), set_values(results), results.setting.maps
    if not maps:
        raise NotRunError(f"{results.folder}: NC1 of the label maps has not been measured.")
    points = [
        GainPoint(b, f"{d + 1} in 1", float(np.mean(maps[b][d][:count])), float(row[4] - row[0]), True)
        for b, values in map_curves(results, KMEANS).items()
        if b in maps
        for d, row in enumerate(curve_means(values))
    ]
    for (b, d), values in set_curves(results, KMEANS).items():
        medians = np.median(values, axis=1)
        points += [GainPoint(b, d, sets[b, d], float(medians[4] - medians[0]), False)] if (b, d) in sets else []
    return points


def published() -> list[GainPoint]:
    """The points of the paper."""
    gains = {key: v[4] - v[0] for key, v in kmeans_over_k().items()}
    maps = [
        GainPoint(b, f"{d} in 1", v, gains[b, f"{d}_in_1"], True) for b, vs in NC1.items() for d, v in enumerate(vs, 1)
    ]
    return maps + [GainPoint(b, d, v, gains[b, d], False) for b, vs in NC1_OF_SETS.items() for d, v in vs.items()]


def _fits(points: Sequence[GainPoint]) -> Fits:
    regions = {
        "all": points,
        "d in 1": [p for p in points if p.remapped],
        "NC1 < 1": [p for p in points if p.nc1 < 1],
        "NC1 > 1": [p for p in points if p.nc1 > 1],
        "NC1 > 1, d in 1": [p for p in points if p.nc1 > 1 and p.remapped],
    }
    return {
        name: gain_fit([p.nc1 for p in chosen], [p.gain for p in chosen]) if len(chosen) >= FEWEST else None
        for name, chosen in regions.items()
    }


def _table(fits: Mapping[str, Fits]) -> TextTable:
    lines = [
        (f"{source}, {region}", str(f.n), f"{f.spearman:.2f}", f"{f.p_value:.2g}", f"{f.r2:.2f}", f"{f.slope:.2f}")
        for source, regions in fits.items()
        for region, f in regions.items()
        if f is not None
    ]
    return TextTable(("points", "n", "Spearman ρ", "p", "R²", "slope per tenfold NC1"), tuple(lines))


def _check(here: Fits, theirs: Fits) -> Findings:
    def coupled(f: GainFit | None) -> tuple[bool, str]:
        if f is None:
            return False, "too few points"
        figures = f"ρ = {f.spearman:.2f} (p = {f.p_value:.2g}), R² = {f.r2:.2f}, n = {f.n}"
        return f.spearman > 0 and f.p_value < 0.05, figures

    holds, figures = coupled(theirs["NC1 > 1"])
    large = holds, f"{figures}; the paper's own points give ρ = 0.05, p = 0.79"
    return {
        "all": Finding(*coupled(here["all"]), published=coupled(theirs["all"])),
        "large": Finding(*coupled(here["NC1 > 1"]), published=large),
    }
