"""How long generation takes."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from imprint.paper.artefact import Artefact, Report
from imprint.paper.places import Places
from imprint.paper.results import Results
from imprint.paper.timing import GENERATORS, NAME, measure
from imprint.report.sections import Cells, Claim, Section, Verdict, verdict

PUBLISHED = {
    "mean": 0.0029,
    "k-means, k = 5": 1.2249,
    "k-means, k = 20": 1.7321,
    "least squares": 0.1593,
    "5-least-squares": 1.3724,
    "20-least-squares": 2.3717,
}


@dataclass(frozen=True, kw_only=True)
class Runtime(Artefact):
    """Seconds of generation."""

    def measure(self, places: Places, folder: Path, report: Report) -> None:
        measure(places, folder, report)

    def section(self, name: str, results: Results) -> Section:
        found = results.measured(NAME)
        if not found:
            return self.missing(name, results)
        lines, means = [], {}
        for label in GENERATORS:
            medians = np.array([np.median(times[label]) for times in found.values()])
            means[label] = float(medians.mean())
            numbers = (means[label], float(np.median(medians)), float(medians.min()), float(medians.max()))
            lines.append((label, f"{PUBLISHED[label]:.4f}", *(f"{v:.4f}" for v in numbers)))
        head = ("generator", "published mean, s", "mean here, s", "median", "least", "most")
        text = (
            f"Processor seconds of fitting on one thread, {len(found)} tasks, the median over three seeds of each. "
            "Published: wall seconds on eight cores of a Xeon Gold 6438Y+ with all rows of the data sets."
        )
        faster = means["k-means, k = 20"] / means["least squares"]
        claim = Claim(
            "Least squares is faster than k-means with 20 proxies.",
            verdict(faster > 1),
            f"{faster:.1f} times as fast",
            Verdict.HOLDS,
            f"{PUBLISHED['k-means, k = 20'] / PUBLISHED['least squares']:.1f} times as fast",
        )
        return Section(name, self.title, self.where, text, (Cells(head, tuple(lines), 1),), (claim,))


artefact = Runtime(title="Runtime of generation", where="Table A.5", order=290)
