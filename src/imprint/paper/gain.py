"""The gain of five proxies over one, as a function of NC1."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from imprint.collapse import GainFit, gain_fit
from imprint.paper.artefact import Artefact, Finding, NotRunError, Results
from imprint.paper.collapse import map_values, measure_collapse, set_values
from imprint.paper.modes import KMEANS, curve_means, curve_studies, map_curves, set_curves
from imprint.paper.published import NC1, NC1_OF_SETS, kmeans_over_k
from imprint.paper.setting import Setting
from imprint.report.figures import Cloud, scatter
from imprint.report.sections import Section
from imprint.report.text_table import TextTable
from imprint.study import Study

FEWEST = 8  # points for a fit


class GainPoint(NamedTuple):
    """A task: its NC1, and the gain of k = 5 over k = 1 in percentage points."""

    backbone: str
    dataset: str
    nc1: float
    gain: float
    remapped: bool


@dataclass(frozen=True, kw_only=True)
class GainFigure(Artefact):
    """Points over log NC1, rank correlation and fit."""

    needs: ClassVar[str] = "many"
    measure = measure_collapse

    def studies(self, setting: Setting) -> list[Study]:
        return curve_studies(setting, KMEANS)

    def show(self, results: Results) -> Section:
        clouds, lines, fits = [], [], {}
        for source, points in {"published": published(), "here": measured(results)}.items():
            fits[source] = fits_by_region(points)
            title = source if source == "published" else f"here, {results.aggregator}"
            values = ((p.backbone, p.remapped, p.nc1, p.gain) for p in points)
            clouds.append(Cloud.of(title, values, fits[source]["all"]))
            for region, f in fits[source].items():
                if f is not None:
                    numbers = f"{f.spearman:.2f}", f"{f.p_value:.2g}", f"{f.r2:.2f}", f"{f.slope:.2f}"
                    lines.append((f"{source}, {region}", str(f.n), *numbers))
        svg = scatter(clouds, "NC1 (log scale)", "gain of k = 5 over k = 1, points")
        table = TextTable(("points", "n", "Spearman ρ", "p", "R²", "slope per tenfold NC1"), tuple(lines))
        holds, figures = _rises(fits["published"]["NC1 > 1"])
        large = holds, f"{figures}; the paper's own points give ρ = 0.05, p = 0.79"
        findings = {
            "all": Finding(*_rises(fits["here"]["all"]), _rises(fits["published"]["all"])),
            "large": Finding(*_rises(fits["here"]["NC1 > 1"]), large),
        }
        return self.make_section(results, [svg, table], findings)


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


def fits_by_region(points: Sequence[GainPoint]) -> Mapping[str, GainFit | None]:
    """The fit of the points in several regions; None if there are too few."""
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


def _rises(f: GainFit | None) -> tuple[bool, str]:
    """Whether the gain rises significantly with NC1, and the figures."""
    if f is None:
        return False, "too few points"
    figures = f"ρ = {f.spearman:.2f} (p = {f.p_value:.2g}), R² = {f.r2:.2f}, n = {f.n}"
    return f.spearman > 0 and f.p_value < 0.05, figures
