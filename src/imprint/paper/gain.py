"""What five proxies gain over one, against NC1."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from imprint.collapse import GainFit, gain_fit
from imprint.paper.artefact import Artefact, Report, Results
from imprint.paper.collapse import map_values, measure, set_values
from imprint.paper.modes import curve_means, curve_studies, map_curves, set_curves
from imprint.paper.published import NC1, NC1_OF_SETS, kmeans_over_k
from imprint.paper.setting import Setting
from imprint.paper.work import Work, cosine
from imprint.report.figures import Cloud, scatter
from imprint.report.sections import Cells, Claim, Picture, Section, verdict

FEWEST = 8  # points that are worth a fit


class GainPoint(NamedTuple):
    """A task: its NC1 and the points gained by k = 5 over k = 1."""

    backbone: str
    dataset: str
    nc1: float
    gain: float
    remapped: bool


def _method(k: int) -> str:
    return cosine(f"kmeans(k={k})")


@dataclass(frozen=True, kw_only=True)
class GainFigure(Artefact):
    """Points over log NC1, rank correlation and fit."""

    needs: str = "many"

    def studies(self, setting: Setting) -> list[Work]:
        return curve_studies(setting, _method)

    def measure(self, setting: Setting, folder: Path, report: Report) -> None:
        measure(setting, folder, report)

    def section(self, name: str, results: Results) -> Section:
        here, theirs = measured(results), published()
        if not any(p.remapped for p in here):
            return self.missing(name, results)
        fits = {"published": _fits(theirs), "here": _fits(here)}
        clouds = [
            Cloud("published", _groups(theirs), fits["published"]["all"]),
            Cloud(f"here, {results.aggregator}", _groups(here), fits["here"]["all"]),
        ]
        svg = scatter(clouds, "NC1 (log scale)", "gain of k = 5 over k = 1, points")
        caption = (
            "Filled: means over the maps of one d. Hollow: ten-class sets. Dashed: the least-squares line on log NC1."
        )
        text = (
            f"k-means, L2 throughout, {results.aggregator}. Published points: max, accuracies read exactly, NC1 partly "
            "from a drawing."
        )
        parts = (Picture(name, svg, caption), _table(fits))
        return Section(name, self.title, self.where, text, parts, tuple(_claims(fits)))


def measured(results: Results) -> list[GainPoint]:
    """The points of a run; NC1 by the formula of the paper."""
    found, maps, sets = [], map_values(results), set_values(results)
    if not (maps and sets):
        return []
    for b, values in (map_curves(results, _method) or {}).items():
        means = curve_means(values)
        found += [
            GainPoint(
                b, f"{d + 1} in 1", float(np.mean(maps[b][d][: results.setting.maps])), float(row[4] - row[0]), True
            )
            for d, row in enumerate(means)
        ]
    for (b, d), values in set_curves(results, _method).items():
        medians = np.median(values, axis=1)
        found.append(GainPoint(b, d, sets[b, d], float(medians[4] - medians[0]), False))
    return found


def published() -> list[GainPoint]:
    """The points of the paper."""
    curves = {key: v[4] - v[0] for key, v in kmeans_over_k().items()}
    many = [
        GainPoint(b, f"{d} in 1", v, curves[b, f"{d}_in_1"], True) for b, vs in NC1.items() for d, v in enumerate(vs, 1)
    ]
    return many + [GainPoint(b, d, v, curves[b, d], False) for b, vs in NC1_OF_SETS.items() for d, v in vs.items()]


def _fits(points: list[GainPoint]) -> dict[str, GainFit | None]:
    regions = {
        "all": points,
        "d in 1": [p for p in points if p.remapped],
        "NC1 < 1": [p for p in points if p.nc1 < 1],
        "NC1 > 1": [p for p in points if p.nc1 > 1],
        "NC1 > 1, d in 1": [p for p in points if p.nc1 > 1 and p.remapped],
    }
    return {
        name: gain_fit([p.nc1 for p in own], [p.gain for p in own]) if len(own) >= FEWEST else None
        for name, own in regions.items()
    }


def _groups(points: list[GainPoint]) -> dict[tuple[str, bool], tuple[list[float], list[float]]]:
    groups: dict[tuple[str, bool], tuple[list[float], list[float]]] = {}
    for p in points:
        own = groups.setdefault((p.backbone, p.remapped), ([], []))
        own[0].append(p.nc1)
        own[1].append(p.gain)
    return groups


def _table(fits: dict[str, dict[str, GainFit | None]]) -> Cells:
    lines = [
        (f"{who}, {region}", str(f.n), f"{f.spearman:.2f}", f"{f.p_value:.2g}", f"{f.r2:.2f}", f"{f.slope:.2f}")
        for who, regions in fits.items()
        for region, f in regions.items()
        if f is not None
    ]
    return Cells(("points", "n", "Spearman ρ", "p", "R²", "slope per tenfold NC1"), tuple(lines))


def _claims(fits: dict[str, dict[str, GainFit | None]]) -> list[Claim]:
    here, theirs = fits["here"], fits["published"]

    def shown(f: GainFit | None) -> str:
        return (
            "too few points" if f is None else f"ρ = {f.spearman:.2f} (p = {f.p_value:.2g}), R² = {f.r2:.2f}, n = {f.n}"
        )

    def coupled(f: GainFit | None) -> bool:
        return f is not None and f.spearman > 0 and f.p_value < 0.05

    lines = [
        Claim(
            "The gain of several proxies rises with NC1 over all tasks.",
            verdict(coupled(here["all"])),
            shown(here["all"]),
            verdict(coupled(theirs["all"])),
            shown(theirs["all"]),
        ),
        Claim(
            "Where NC1 exceeds 1 the gain is coupled to it too.",
            verdict(coupled(here["NC1 > 1"])),
            shown(here["NC1 > 1"]),
            verdict(coupled(theirs["NC1 > 1"])),
            shown(theirs["NC1 > 1"]) + "; the paper's own points give ρ = 0.05, p = 0.79",
        ),
    ]
    return lines
