"""NC1 of the embeddings that the studies use: measured once and kept, drawn over d, and its claims."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from imprint import tasks
from imprint.collapse import nc1
from imprint.normalisers.l2 import L2
from imprint.paper.artefact import Artefact, Report, Results, write_json
from imprint.paper.modes import maps
from imprint.paper.published import NC1, NC1_OF_SETS, D
from imprint.paper.setting import COMBINED, MAPS, Setting
from imprint.report.figures import Panel, Series, draw, interval
from imprint.report.sections import Cells, Claim, Picture, Section, Verdict, verdict
from imprint.study import Packs

NAME = "collapse"


class Point(NamedTuple):
    """Where NC1 is measured: as published on the training rows, of "d in 1" on the test rows."""

    backbone: str
    dataset: str
    task: str
    split: str

    @property
    def key(self) -> str:
        """The name of the measurement."""
        return " / ".join(self)


def points(setting: Setting) -> Iterator[Point]:
    """All measurements that the paper shows."""
    for role in ("benchmark", "combined"):
        group = setting.group(role)
        yield from (Point(b, d, "all", "train") for b in group.backbones for d in group.datasets)
    for b in setting.many.backbones:
        yield from (Point(b, setting.many.datasets[0], task, "test") for task in maps(MAPS))


def measure(setting: Setting, folder: Path, report: Report) -> None:
    """Measure what is missing: NC1 of L2-normalised rows, and the same by the published computation."""
    found, source, wanted = Results(folder).measured(NAME), Packs(setting.embeddings), list(points(setting))
    for i, point in enumerate(wanted):
        data = source.open(point.backbone, point.dataset)
        known = found.get(point.key, {})
        if known.get("fingerprint") != data.fingerprint:
            values = _measure(point, setting)
            found[point.key] = {"fingerprint": data.fingerprint, **values}
            if i % 25 == 0:
                write_json(folder / f"{NAME}.json", found)
        report("Neural collapse", i + 1, len(wanted))
    write_json(folder / f"{NAME}.json", found)


def _measure(point: Point, setting: Setting) -> dict[str, float]:
    data = Packs(setting.embeddings).open(point.backbone, point.dataset)
    X, y = (data.X, data.y) if point.split == "train" else (data.X_test, data.y_test)
    chosen = tasks.resolve(point.task).select(y, 0, np.unique(data.y).tolist())
    rows = L2().apply(np.asarray(X[chosen.rows]))
    return {"nc1": nc1(rows, chosen.labels), "published": nc1(rows, chosen.labels, legacy=True)}


def set_values(results: Results, kind: str = "nc1") -> dict[tuple[str, str], float]:
    """NC1 of the whole ten-class sets."""
    found = results.measured(NAME)
    every = (p for p in points(results.setting) if p.task == "all" and p.key in found)
    return {(p.backbone, p.dataset): found[p.key][kind] for p in every}


def map_values(results: Results, kind: str = "nc1") -> dict[str, list[list[float]]]:
    """NC1 of the "d in 1" maps of every backbone, by d."""
    found = results.measured(NAME)
    out: dict[str, list[list[float]]] = {}
    for p in points(results.setting):
        if p.task != "all" and p.key in found:
            own = out.setdefault(p.backbone, [[]])
            if len(own[-1]) == MAPS:
                own.append([])
            own[-1].append(found[p.key][kind])
    return out


Sets = Mapping[tuple[str, str], float]


@dataclass(frozen=True, kw_only=True)
class CollapseFigure(Artefact):
    """NC1 of every backbone: lines over d, and a table of the ten-class sets."""

    def measure(self, setting: Setting, folder: Path, report: Report) -> None:
        measure(setting, folder, report)

    def section(self, name: str, results: Results) -> Section:
        maps, sets = map_values(results), set_values(results)
        if not sets:
            return self.missing(name, results)
        old_maps, old_sets = map_values(results, "published"), set_values(results, "published")
        panels = [
            Panel("published", [Series(b, D, v, kind=b) for b, v in NC1.items()]),
            Panel("here, published centring", _lines(old_maps)),
            Panel("here, the formula of the paper", _lines(maps)),
        ]
        svg = draw([p for p in panels if p.lines], "classes per label, d", "NC1", columns=3)
        caption = (
            "Means over ten label maps (test rows, L2-normalised); bands are 95 % confidence intervals over the maps."
        )
        parts = (Picture(name, svg, caption), _table(sets, old_sets)) if maps else (_table(sets, old_sets),)
        text = (
            "NC1 is 0 where classes have collapsed to their means. The published computation centres rows wrongly and "
            "so gives larger values; both are shown. Ten-class sets: training rows."
        )
        claims = (_linear(maps), *_claims(sets), _centring(sets, old_sets))
        return Section(name, self.title, self.where, text, parts, claims)


def _lines(maps: Mapping[str, Sequence[Sequence[float]]]) -> list[Series]:
    return [Series(b, D, *interval(np.array(v)), kind=b) for b, v in maps.items()]


def _table(sets: Sets, old: Sets) -> Cells:
    datasets = list(dict.fromkeys(d for _, d in sets))
    lines = []
    for b in dict.fromkeys(b for b, _ in sets):
        cells = (f"{sets[b, d]:.2f} ({old[b, d]:.2f})" if (b, d) in sets else "" for d in datasets)
        lines.append((b, *cells))
    for b, values in NC1_OF_SETS.items():
        if not values.keys() & set(datasets):
            continue
        lines.append((f"published: {b}", *(f"({values[d]:.2f})" if d in values else "" for d in datasets)))
    return Cells(("NC1 (published centring)", *datasets), tuple(lines))


def _linear(maps: Mapping[str, Sequence[Sequence[float]]]) -> Claim:
    fits = {b: float(np.corrcoef(D, np.mean(v, axis=1))[0, 1] ** 2) for b, v in maps.items()}
    theirs = {b: float(np.corrcoef(D, v)[0, 1] ** 2) for b, v in NC1.items()}

    def shown(found: Mapping[str, float]) -> str:
        return "R² of a line: " + ", ".join(f"{b} {v:.3f}" for b, v in found.items())

    return Claim(
        "NC1 grows linearly with d for every backbone.",
        verdict(all(r2 > 0.97 for r2 in fits.values())) if fits else Verdict.UNTESTABLE,
        shown(fits) if fits else "there are no packs of a hundred classes",
        verdict(all(r2 > 0.97 for r2 in theirs.values())),
        shown(theirs),
    )


def _claims(sets: Sets) -> list[Claim]:
    claims = []
    digits = {b: v for (b, d), v in sets.items() if d == COMBINED}
    text = "CombiDigits has the highest NC1 of the ten-class sets."
    if not digits:
        claims.append(Claim(text, Verdict.UNTESTABLE, "there are no packs of it", Verdict.HOLDS, "10.7 to 37.0"))
    else:
        most = {b: max(v for (c, d), v in sets.items() if c == b and d != COMBINED) for b in digits}
        shown = ", ".join(f"{b} {v:.2f} against {most[b]:.2f}" for b, v in digits.items())
        holds = verdict(all(v > most[b] for b, v in digits.items()))
        claims.append(Claim(text, holds, shown, Verdict.HOLDS, "10.7 to 37.0 against at most 7.5"))
    if any(d == "cifar10" for _, d in sets):
        least = {b: min((v, d) for (c, d), v in sets.items() if c == b)[1] for b in dict.fromkeys(b for b, _ in sets)}
        theirs_least = {b: min(v, key=lambda d: v[d]) for b, v in NC1_OF_SETS.items()}
        claims.append(
            Claim(
                "CIFAR-10 has the lowest NC1 of the ten-class sets.",
                verdict(set(least.values()) == {"cifar10"}),
                "lowest: " + ", ".join(f"{b} {d}" for b, d in least.items()),
                verdict(set(theirs_least.values()) == {"cifar10"}),
                "lowest: " + ", ".join(f"{b} {d}" for b, d in theirs_least.items()),
            )
        )
    return claims


def _centring(sets: Sets, old: Sets) -> Claim:
    more = [100 * (old[key] / value - 1) for key, value in sets.items()]
    return Claim(
        "The published NC1 values follow the formula of the paper.",
        Verdict.FAILS if max(more) > 0.1 else Verdict.HOLDS,
        f"the published computation gives values larger by {min(more):.1f} to {max(more):.1f} % on the ten-class sets",
        Verdict.FAILS,
        "published traces within and between classes sum to 1.000; those of unit vectors around a mean sum to less",
    )
