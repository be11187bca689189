"""The weight decay of least squares."""

from dataclasses import dataclass

from imprint.paper.artefact import Artefact
from imprint.paper.norms import bare
from imprint.paper.places import REGULARISATION, Places, regularisation
from imprint.paper.results import Results
from imprint.paper.work import Work, work
from imprint.report.sections import Cells, Section

VALUES = (1e-6, 1e-4, 1e-2, 0.05, 0.1, 1.0)


@dataclass(frozen=True, kw_only=True)
class Regularisation(Artefact):
    """Which weight decay each backbone takes, and what others would give."""

    def studies(self, places: Places) -> list[Work]:
        return work(places, "benchmark", [bare(f"least_squares(reg={v!r})") for v in VALUES])

    def section(self, name: str, results: Results) -> Section:
        scores = self.scores(results)
        if scores is None:
            return self.missing(name, results)
        lines = []
        for backbone in results.places.benchmark.backbones:
            own = scores.where(backbone=backbone)
            means = own.medians([bare(f"least_squares(reg={v!r})") for v in VALUES]).mean(axis=0)
            lines.append((backbone, f"{regularisation(backbone):g}", *(f"{m:.2f}" for m in means)))
        cells = Cells(("backbone", "used", *(f"λ = {v:g}" for v in VALUES)), tuple(lines), 1)
        given = ", ".join(f"{b} {v:g}" for b, v in REGULARISATION.items())
        tasks = len(scores.instances) // len(results.places.benchmark.backbones)
        text = f"Accuracy in % for several weight decays λ, the mean over {tasks} tasks."
        note = f"Published: {given}; other backbones take 1e-4."
        return Section(name, self.title, self.where, text, (cells,), (), note)


artefact = Regularisation(title="Weight decay of least squares", where="Table A.4", order=250)
