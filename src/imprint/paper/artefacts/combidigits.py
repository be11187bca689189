"""Samples of one class of CombiDigits."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from imprint.core.home import home
from imprint.core.types import Array
from imprint.datasets.packs import load_pack
from imprint.paper.artefact import Artefact, Report
from imprint.paper.places import Places
from imprint.paper.results import Results
from imprint.report.figures import canvas
from imprint.report.sections import Picture, Section

SOURCES, DIGIT, EACH, SIZE = ("mnist", "mnistm", "svhn", "usps"), 6, 5, 32
FILE = "combidigits.npy"


@dataclass(frozen=True, kw_only=True)
class Samples(Artefact):
    """Five pictures of the digit 6 from each of the four sources, where their packs are at hand."""

    def measure(self, places: Places, folder: Path, report: Report) -> None:
        packs = [home() / "data" / f"{name}.npz" for name in SOURCES]
        if all(p.is_file() for p in packs):
            np.save(folder / FILE, np.stack([_samples(p) for p in packs]))

    def section(self, name: str, results: Results) -> Section:
        if not (results.folder / FILE).is_file():
            lacking = (
                f"The packs of {', '.join(SOURCES)} are not in the folder of downloads, so there is nothing to show."
            )
            return Section(name, self.title, self.where, lacking)
        pictures = np.load(results.folder / FILE)
        caption = f"The digit {DIGIT}, a row for each source: {', '.join(SOURCES)}."
        text = "Ten classes, each of digits from four sources."
        return Section(name, self.title, self.where, text, (Picture(name, _drawing(pictures), caption),))


def _samples(path: Path) -> Array:
    """The first pictures of the digit, as RGB of one size.  # (EACH, SIZE, SIZE, 3)"""
    from PIL import Image

    split = load_pack(path, "train")
    rows = np.flatnonzero(np.asarray(split.labels) == DIGIT)[:EACH]
    made = (Image.fromarray(np.asarray(split.inputs[i])).convert("RGB").resize((SIZE, SIZE)) for i in rows)
    return np.stack([np.asarray(p) for p in made])


def _drawing(pictures: Array) -> bytes:
    with canvas(3.6, 3.0) as (figure, out):
        grid = figure.subplots(len(SOURCES), EACH)
        for axes, picture in zip(grid.flat, pictures.reshape(-1, SIZE, SIZE, 3)):
            axes.imshow(picture, interpolation="none")
            axes.set_axis_off()
    return out.getvalue()


artefact = Samples(title="CombiDigits", where="Figure A.5", order=233)
