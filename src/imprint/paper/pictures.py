"""Drawings of the data: the label maps of "d in 1", and one class of CombiDigits."""

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from imprint.core.errors import FileError
from imprint.core.files.atomic import atomic_write, home
from imprint.core.types import Array
from imprint.datasets.numpy_files import load_pack
from imprint.normalisers.l2 import L2
from imprint.paper.artefact import Artefact, OnProgress, Results, read_json, write_json
from imprint.paper.setting import COMBINED, Setting
from imprint.report.figures import COLOURS, GRID, INK, PALE, Cloud, Point, canvas, scatter
from imprint.report.sections import Picture, Section
from imprint.study import Packs
from imprint.tasks.d_in_1 import DIn1

SHOWN, LABELS, POOL = (1, 2, 3), 3, 9


class LabelMaps(Artefact):
    """The classes that share a label, for three values of d."""

    def show(self, results: Results) -> Section:
        return self.make_section(results, [_draw_maps()], {}, pool=POOL, labels=LABELS)


def _draw_maps() -> bytes:
    with canvas(7.2, 2.2) as (figure, out):
        from matplotlib.patches import Rectangle

        for axes, d in zip(figure.subplots(1, len(SHOWN)), SHOWN):
            whole, taken = (DIn1(d=n, labels=LABELS, pool=POOL).mapping(range(POOL)) for n in (POOL // LABELS, d))
            counts = [0] * LABELS
            for number, label in whole.items():
                y = int(label)
                x, counts[y] = counts[y], counts[y] + 1
                face, ink = (COLOURS[5], INK) if number in taken else (GRID, PALE)
                axes.add_patch(Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, facecolor=face, edgecolor="none"))
                axes.text(x, y, str(number), ha="center", va="center", fontsize=9, color=ink)
            axes.set_title(f"{d} in 1", loc="left")
            axes.set_xlim(-0.5, POOL // LABELS - 0.5)
            axes.set_ylim(LABELS - 0.5, -0.5)
            axes.set_xticks([])
            axes.set_yticks(range(LABELS))
            axes.set_xlabel("classes of the block")
            axes.grid(False)
        figure.supylabel("new label", fontsize=9)
    return out.getvalue()


SOURCES, DIGIT, EACH, SIZE = ("mnist", "mnistm", "svhn", "usps"), 6, 5, 32
POINTS = 60  # embeddings shown of each source
FILE, NAME = "combidigits.npy", "combidigits"


@dataclass(frozen=True, kw_only=True)
class CombiDigitsFigure(Artefact):
    """The digit 6 from four sources: pictures if there are packs of them, embeddings if their sources are known."""

    embeddings: str  # the caption of the drawing of embeddings
    lacking: str  # what to do if there is no drawing
    needs = "combined"

    def measure(self, setting: Setting, folder: Path, report: OnProgress) -> None:
        folders = home() / "data", Path(setting.embeddings)  # of downloads, and of the embeddings, which is preferred
        packs = {n: f / f"{n}.npz" for f in folders for n in SOURCES if (f / f"{n}.npz").is_file()}
        if len(packs) == len(SOURCES):
            buffer = io.BytesIO()  # np.save into a file does not report a full disk
            np.save(buffer, np.stack([_samples(packs[name]) for name in SOURCES]))
            with atomic_write(folder / FILE) as f:
                f.write(buffer.getbuffer())
        sources = _sources(setting)
        if sources is not None:
            points = {b: _project(Packs(setting.embeddings), b, sources) for b in setting.combined.backbones}
            write_json(folder / f"{NAME}.json", points)

    def show(self, results: Results) -> Section:
        parts: list[Any] = []
        if (results.folder / FILE).is_file():
            parts.append(_draw_samples(np.load(results.folder / FILE)))
        if points := read_json(results.folder / f"{NAME}.json"):
            clouds = [
                Cloud(b, [Point(s, False, *at) for s, both in sources.items() for at in zip(*both)])
                for b, sources in points.items()
            ]
            svg = scatter(clouds, "first component", "second component", log_x=False, side=2.9, size=14)
            caption = self.embeddings.format(digit=DIGIT, points=POINTS)
            parts.append(Picture(f"{self.name}_embeddings", svg, caption))
        sources = ", ".join(SOURCES)
        lacking = "" if parts else self.lacking.format(sources=sources, file=f"sources-{COMBINED}.npz")
        words = {"digit": DIGIT, "sources": sources, "lacking": lacking}
        return self.make_section(results, parts, {}, **words)


def _samples(path: Path) -> Array:
    """The first pictures of the digit, as RGB of one size.  # (EACH, SIZE, SIZE, 3)"""
    from PIL import Image

    split = load_pack(path, "train")
    rows = np.flatnonzero(np.asarray(split.labels) == DIGIT)[:EACH]
    pictures = (Image.fromarray(np.asarray(split.inputs[i])).convert("RGB").resize((SIZE, SIZE)) for i in rows)
    return np.stack([np.asarray(p) for p in pictures])


def _sources(setting: Setting) -> Array | None:
    """The source of each training row; None if the folder has no file of them."""
    path = Path(setting.embeddings) / f"sources-{COMBINED}.npz"
    if not path.is_file():
        return None
    try:
        with np.load(path, allow_pickle=False) as pack:
            return np.asarray(pack["train"])
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        raise FileError(f"{path}: it must hold `train`, the source of every training row.") from None


def _project(source: Packs, backbone: str, sources: Array) -> dict[str, list[list[float]]]:
    """The first two principal components of the digit's rows, by source."""
    from sklearn.decomposition import PCA

    data = source.open(backbone, COMBINED)
    if len(sources) != len(data.y):
        raise FileError(f"sources-{COMBINED}.npz has {len(sources):,} rows, the embeddings have {len(data.y):,}.")
    chosen = np.asarray(data.y) == DIGIT
    rows, origin = L2().apply(np.asarray(data.X[chosen])).astype(np.float64), sources[chosen]
    flat = np.round(PCA(2, svd_solver="full").fit_transform(rows), 4)
    return {name: flat[origin == i][:POINTS].T.tolist() for i, name in enumerate(SOURCES)}


def _draw_samples(pictures: Array) -> bytes:
    with canvas(3.6, 3.0) as (figure, out):
        grid = figure.subplots(len(SOURCES), EACH)
        for axes, picture in zip(grid.flat, pictures.reshape(-1, SIZE, SIZE, 3)):
            axes.imshow(picture, interpolation="none")
            axes.set_axis_off()
    return out.getvalue()
