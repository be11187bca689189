"""NC1 over d, and of the ten-class sets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from imprint.paper.artefact import Artefact, Report
from imprint.paper.collapse import map_values, measure, set_values
from imprint.paper.modes import D
from imprint.paper.places import COMBINED, Places
from imprint.paper.published import NC1, NC1_OF_SETS
from imprint.paper.results import Results
from imprint.report.figures import Panel, Series, draw, interval
from imprint.report.sections import Cells, Claim, Picture, Section, Verdict, verdict

Sets = Mapping[tuple[str, str], float]


@dataclass(frozen=True, kw_only=True)
class Collapse(Artefact):
    """NC1 of every backbone: lines over d, and a table of the ten-class sets."""

    def measure(self, places: Places, folder: Path, report: Report) -> None:
        measure(places, folder, report)

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


artefact = Collapse(title="Neural collapse over the number of classes per label", where="Figure 11a", order=90)
