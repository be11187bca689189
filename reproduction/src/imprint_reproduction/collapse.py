"""NC1 of the embeddings that the studies use, measured once and stored; the gain of
five proxies over one by NC1.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from imprint import tasks
from imprint.collapse import GainFit, gain_fit, nc1
from imprint.extend import Array, unit_rows
from imprint.report import (
    Cloud,
    Panel,
    Point,
    Series,
    TextTable,
    draw,
    interval,
    scatter,
)
from imprint.study import Packs, Study
from imprint_reproduction import modes
from imprint_reproduction.artefact import (
    Artefact,
    Finding,
    NotRunError,
    OnProgress,
    Results,
    listed,
    read_json,
    write_json,
)
from imprint_reproduction.modes import KMEANS, KMEANS_OVER_K, NC1, NC1_OF_SETS, D
from imprint_reproduction.sections import Section, Verdict
from imprint_reproduction.setting import COMBINED, MAPS, Setting

NAME = "collapse"
FEWEST = 8  # points for a fit
Sets = Mapping[str, Mapping[str, float]]
"""NC1 by backbone and data set."""
Fits = Mapping[str, GainFit | None]
"""The fit of the gain to NC1 by region; None if the points are too few, or have all the
same gain.
"""


def measurements(setting: Setting) -> Iterator[tuple[str, str, str, str]]:
    """Backbone, data set, task and split of everything on which the paper shows NC1.

    These are the training rows of whole sets, and the test rows of "d in 1" tasks.
    """
    for group in (setting.benchmark, setting.combined):
        yield from (
            (b, d, "all", "train") for b in group.backbones for d in group.datasets
        )
    for b in setting.many.backbones:
        yield from (
            (b, setting.many.datasets[0], task, "test") for task in modes.maps(MAPS)
        )


def measure_collapse(
    artefact: Artefact, setting: Setting, folder: Path, report: OnProgress
) -> None:
    """Measure what is missing: NC1 of L2-normalised rows, by the formula and by the
    published computation.
    """
    path, source, planned = (
        folder / f"{NAME}.json",
        Packs(setting.embeddings),
        list(measurements(setting)),
    )
    values = read_json(path)
    for i, (backbone, dataset, task, split) in enumerate(planned):
        data, key = (
            source.open(backbone, dataset),
            f"{backbone} / {dataset} / {task} / {split}",
        )
        if values.get(key, {}).get("fingerprint") != data.fingerprint:
            X, y = (data.X, data.y) if split == "train" else (data.X_test, data.y_test)
            selection = tasks.resolve(task).select(y, 0, np.unique(data.y).tolist())
            rows, labels = unit_rows(np.asarray(X[selection.rows])), selection.labels
            both = {
                "nc1": nc1(rows, labels),
                "published": nc1(rows, labels, legacy=True),
            }
            values[key] = {"fingerprint": data.fingerprint, **both}
            write_json(path, values)
        report("Neural collapse", i + 1, len(planned))


def measured_nc1(results: Results, kind: str = "nc1") -> tuple[Sets, dict[str, Array]]:
    """NC1 of the whole ten-class sets, and of the "d in 1" maps by backbone.  # (d,
    map)

    `kind` is "nc1" for the formula of the paper, or "published" for the published
    computation. Backbones of which some maps have not been measured are left out.
    Raises `NotRunError` if no ten-class set has been measured.
    """
    values, sets, maps = (
        results.measured(NAME),
        dict[str, dict[str, float]](),
        dict[str, list[float]](),
    )
    for at in measurements(results.setting):
        (backbone, dataset, _, split), key = at, " / ".join(at)
        if key in values and split == "train":
            sets.setdefault(backbone, {})[dataset] = values[key][kind]
        elif key in values:
            maps.setdefault(backbone, []).append(values[key][kind])
    if not sets:
        raise NotRunError(
            f"{results.folder}: NC1 of the ten-class sets has not been measured."
        )
    return sets, {
        b: np.reshape(v, (len(D), MAPS))
        for b, v in maps.items()
        if len(v) == len(D) * MAPS
    }


class CollapseFigure(Artefact):
    """NC1 of every backbone: lines over d, and a table of the ten-class sets."""

    measure = measure_collapse

    def show(self, results: Results) -> Section:
        (sets, maps), (sets_as_published, maps_as_published) = (
            measured_nc1(results, kind) for kind in ("nc1", "published")
        )
        parts: list[Any] = [_table(sets, sets_as_published)]
        if maps:
            curves = {
                "published centring": maps_as_published,
                "the formula of the paper": maps,
            }
            panels = [Panel("published", [Series(b, D, v) for b, v in NC1.items()])]
            for name, nc1_of_maps in curves.items():
                panels.append(
                    Panel(
                        f"here, {name}",
                        [Series(b, D, *interval(v)) for b, v in nc1_of_maps.items()],
                    )
                )
            parts.insert(0, self.image(draw(panels, "classes per label, d", "NC1")))
        return self.make_section(
            results, parts, check_collapse(maps, sets, sets_as_published)
        )


def _table(sets: Sets, as_published: Sets) -> TextTable:
    """The measured values, then the published ones. Those of the published computation
    are in brackets.
    """
    datasets = list(dict.fromkeys(d for values in sets.values() for d in values))
    cells = {
        b: {d: f"{v:.2f} ({as_published[b][d]:.2f})" for d, v in values.items()}
        for b, values in sets.items()
    }
    for b, values in NC1_OF_SETS.items():
        cells[f"published: {b}"] = {
            d: f"({values[d]:.2f})" for d in datasets if d in values
        }
    lines = (
        (name, *(by_dataset.get(d, "") for d in datasets))
        for name, by_dataset in cells.items()
        if by_dataset
    )
    return TextTable(("NC1 (published centring)", *datasets), tuple(lines))


def check_collapse(
    maps: Mapping[str, Array], sets: Sets, as_published: Sets
) -> dict[str, Finding]:
    """Test the claims about NC1: over d, of the ten-class sets, and by the published
    computation.
    """
    linear = Finding(Verdict.UNTESTABLE, "there are no packs of a hundred classes")
    if maps:
        linear = _linear({b: v.mean(axis=1) for b, v in maps.items()})
    findings = {
        "linear": linear._replace(published=_linear(NC1)),
        "highest": _highest(sets),
    }
    if with_cifar10 := {
        b: values
        for b, values in sets.items()
        if "cifar10" in values and len(values) > 1
    }:
        findings["lowest"] = _lowest(with_cifar10)._replace(
            published=_lowest(NC1_OF_SETS)
        )
    more = [
        100 * (as_published[b][d] / v - 1)
        for b, values in sets.items()
        for d, v in values.items()
    ]
    larger = f"larger by {min(more):.1f} to {max(more):.1f} % on the ten-class sets"
    findings["formula"] = Finding(
        max(more) <= 0.1, f"the published computation gives values {larger}"
    )
    return findings


def _linear(curves: Mapping[str, Any]) -> Finding:
    """Whether NC1 is a linear function of d."""
    fits = {b: float(np.corrcoef(D, v)[0, 1] ** 2) for b, v in curves.items()}
    return Finding(
        all(r2 > 0.97 for r2 in fits.values()), f"R² of a line: {listed(fits, '.3f')}"
    )


def _highest(sets: Sets) -> Finding:
    """Whether CombiDigits has the highest NC1 of all sets of each backbone that has
    several.
    """
    several = {
        b: values
        for b, values in sets.items()
        if COMBINED in values and len(values) > 1
    }
    if not several:
        return Finding(Verdict.UNTESTABLE, "there are no packs of it")
    others = {
        b: max(v for d, v in values.items() if d != COMBINED)
        for b, values in several.items()
    }
    figures = ", ".join(
        f"{b} {values[COMBINED]:.2f} against {others[b]:.2f}"
        for b, values in several.items()
    )
    return Finding(
        all(values[COMBINED] > others[b] for b, values in several.items()), figures
    )


def _lowest(sets: Sets) -> Finding:
    """Whether CIFAR-10 has the lowest NC1 of all sets of each backbone."""
    lowest = {b: min(values, key=values.__getitem__) for b, values in sets.items()}
    return Finding(
        set(lowest.values()) == {"cifar10"},
        "lowest: " + ", ".join(f"{b} {d}" for b, d in lowest.items()),
    )


class GainFigure(Artefact):
    """The gain of k = 5 over k = 1 in percentage points against log NC1: points, rank
    correlation and fit.

    A point is a task of a backbone; those of "d in 1" are filled.
    """

    needs = "many"
    measure = measure_collapse

    def studies(self, setting: Setting) -> list[Study]:
        return modes.curve_studies(setting, KMEANS)

    def show(self, results: Results) -> Section:
        clouds, lines, fits = [], [], {}
        for source, points in {
            "published": published_gain_points(),
            "here": gain_points(results),
        }.items():
            fits[source] = fits_by_region(points)
            title = source if source == "published" else f"here, {results.aggregator}"
            clouds.append(Cloud(title, points, fits[source]["all"]))
            for region, f in fits[source].items():
                if f is not None:
                    numbers = (
                        f"{f.spearman:.2f}",
                        f"{f.p_value:.2g}",
                        f"{f.r2:.2f}",
                        f"{f.slope:.2f}",
                    )
                    lines.append((f"{source}, {region}", str(f.n), *numbers))
        svg = scatter(clouds, "NC1 (log scale)", "gain of k = 5 over k = 1, points")
        table = TextTable(
            ("points", "n", "Spearman ρ", "p", "R²", "slope per tenfold NC1"),
            tuple(lines),
        )
        findings = check_gain(fits["here"], fits["published"])
        return self.make_section(results, [self.image(svg), table], findings)


def gain_points(results: Results) -> list[Point]:
    """The points of a run; NC1 by the formula of the paper."""
    (sets, maps), count = measured_nc1(results), results.setting.maps
    if not maps:
        raise NotRunError(
            f"{results.folder}: NC1 of the label maps has not been measured."
        )
    points = [
        Point(b, True, float(np.mean(nc1_of_d[:count])), float(row[4] - row[0]))
        for b, values in modes.map_curves(results, KMEANS).items()
        for nc1_of_d, row in zip(maps.get(b, ()), modes.curve_means(values))
    ]
    for (b, d), values in modes.set_curves(results, KMEANS).items():
        if d in sets.get(b, {}):
            medians = np.median(values, axis=1)
            points.append(Point(b, False, sets[b][d], float(medians[4] - medians[0])))
    return points


def published_gain_points() -> list[Point]:
    """The points of the paper."""
    gains = {at: v[4] - v[0] for at, v in KMEANS_OVER_K.items()}
    maps = [
        Point(b, True, v, gains[b, f"{d}_in_1"])
        for b, vs in NC1.items()
        for d, v in zip(D, vs)
    ]
    return maps + [
        Point(b, False, v, gains[b, d])
        for b, vs in NC1_OF_SETS.items()
        for d, v in vs.items()
    ]


def fits_by_region(points: Sequence[Point]) -> Fits:
    """The fit of the points in several regions."""
    regions = {
        "all": points,
        "d in 1": [p for p in points if p.filled],
        "NC1 < 1": [p for p in points if p.x < 1],
        "NC1 > 1": [p for p in points if p.x > 1],
        "NC1 > 1, d in 1": [p for p in points if p.x > 1 and p.filled],
    }
    fits: dict[str, GainFit | None] = dict.fromkeys(regions)
    for name, chosen in regions.items():
        if len(chosen) >= FEWEST and len({p.y for p in chosen}) > 1:
            fits[name] = gain_fit([p.x for p in chosen], [p.y for p in chosen])
    return fits


def check_gain(here: Fits, published: Fits) -> dict[str, Finding]:
    """Test whether the gain rises with NC1."""
    all_here, large_here = _rises(here["all"]), _rises(here["NC1 > 1"])
    large = _rises(published["NC1 > 1"])
    large = large._replace(
        figures=f"{large.figures}; the paper's own points give ρ = 0.05, p = 0.79"
    )
    return {
        "all": all_here._replace(published=_rises(published["all"])),
        "large": large_here._replace(published=large),
    }


def _rises(f: GainFit | None) -> Finding:
    """Whether the gain rises significantly with NC1."""
    if f is None:
        return Finding(Verdict.UNTESTABLE, "too few points, or all with the same gain")
    figures = f"ρ = {f.spearman:.2f} (p = {f.p_value:.2g}), R² = {f.r2:.2f}, n = {f.n}"
    return Finding(f.spearman > 0 and f.p_value < 0.05, figures)
