"""How "d in 1" gives classes new labels."""

from dataclasses import dataclass
from typing import Any

from imprint.paper.artefact import Artefact
from imprint.paper.results import Results
from imprint.report.figures import COLOURS, GRID, INK, PALE, canvas
from imprint.report.sections import Picture, Section
from imprint.tasks.d_in_1 import DIn1

SHOWN, LABELS, POOL = (1, 2, 3), 3, 9


@dataclass(frozen=True, kw_only=True)
class LabelMaps(Artefact):
    """Which classes share a label, for three values of d."""

    def section(self, name: str, results: Results) -> Section:
        caption = (
            f"{POOL} classes, {LABELS} new labels (rows); coloured: the classes that a label takes, by their numbers."
        )
        text = (
            "A hundred classes are shuffled and cut into ten blocks; new label j takes the first d classes of block j. "
            "The published maps are nested like this, though the paper's text takes the next d classes for each label."
        )
        return Section(name, self.title, self.where, text, (Picture(name, _drawing(), caption),))


def _drawing() -> bytes:
    with canvas(7.2, 2.2) as (figure, out):
        for axes, d in zip(figure.subplots(1, len(SHOWN)), SHOWN):
            whole, taken = (DIn1(d=n, labels=LABELS, pool=POOL).mapping(range(POOL)) for n in (POOL // LABELS, d))
            counts = [0] * LABELS
            for number, label in whole.items():
                _cell(axes, counts[int(label)], int(label), str(number), number in taken)
                counts[int(label)] += 1
            axes.set_title(f"{d} in 1", loc="left")
            axes.set_xlim(-0.5, POOL // LABELS - 0.5)
            axes.set_ylim(LABELS - 0.5, -0.5)
            axes.set_xticks([])
            axes.set_yticks(range(LABELS))
            axes.set_xlabel("classes of the block")
            axes.grid(False)
        figure.supylabel("new label", fontsize=9)
    return out.getvalue()


def _cell(axes: Any, x: int, y: int, text: str, taken: bool) -> None:
    from matplotlib.patches import Rectangle

    face = COLOURS[5] if taken else GRID
    axes.add_patch(Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, facecolor=face, edgecolor="none"))
    axes.text(x, y, text, ha="center", va="center", fontsize=9, color=INK if taken else PALE)


artefact = LabelMaps(title='The label maps of "d in 1"', where="Figure 4", order=25)
