"""Small labelled sets to try imprint with: images, texts and time series.

The images are handwritten digits that scikit-learn brings along (UCI Machine Learning
Repository, doi 10.24432/C50P49, CC BY 4.0). The texts are invented messages to a shop.
The series are computed: accelerations of a wrist.
"""

import csv
import io
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np

from imprint.core.errors import FileError, reporting, unknown
from imprint.core.files.atomic import expanded

__all__ = ["SampleKind", "kinds", "sample_archive", "sample_files", "write_sample"]

DIGIT_NAMES = ("zero", "one", "two", "three", "four")
LATER_DIGIT = 4  # not in train and test; to add to a fitted model
TRAIN_DIGITS, TEST_DIGITS, LATER_DIGITS = 40, 40, 12  # images of each class
NEW_DIGIT = (3, 100)  # the label and the position of the image without a label
# The digits have 8 x 8 pixels; enlarged, a person can recognise them in a folder.
SIDE = 64
MAX_GREY = 16  # the digits have 17 levels
# Movements of a wrist: frequency in 1/s, strength of each axis in units of gravity, and
# strength of the second harmonic, all invented.
MOVEMENTS = {
    "rest": (0.3, (0.02, 0.02, 0.02), 0.0),
    "walk": (1.8, (0.25, 0.15, 0.35), 0.4),
    "run": (2.7, (0.8, 0.5, 1.1), 0.3),
    "wave": (2.2, (0.7, 0.2, 0.1), 0.1),
}
LATER_MOVEMENT = "wave"  # not in train and test; to add to a fitted model
TRAIN_SERIES, TEST_SERIES, LATER_SERIES = 20, 10, 8  # windows of each class
SAMPLE_RATE, WINDOW_SAMPLES = 50, 128  # per second; in one window
# what the recording holds one after another, in seconds
RECORDING = (("rest", 10), ("walk", 20), ("run", 15), ("rest", 8))
NEW_MESSAGES = (
    "My order is still not here",
    "The lamp is gorgeous",
    "Give me back my money please",
)


@dataclass(frozen=True)
class SampleKind:
    """A set that `write_sample` can write."""

    name: str
    modality: str
    summary: str  # what the set holds, in words
    make: Callable[[], dict[str, bytes]]  # the contents of its files by relative path


def kinds() -> dict[str, SampleKind]:
    """The sets by name."""
    listed = (
        SampleKind(
            "photos",
            "image",
            "handwritten digits, from scikit-learn (UCI, CC BY 4.0)",
            _digits,
        ),
        SampleKind("messages", "text", "invented messages to a shop", _messages),
        SampleKind(
            "series", "series", "invented signals of a sensor on the wrist", _series
        ),
    )
    return {kind.name: kind for kind in listed}


def sample_files(name: str) -> dict[str, bytes]:
    """The contents of the files of a set by their relative paths.

    Parameters
    ----------
    name
        One of `kinds()`.
    """
    known = kinds()
    if name not in known:
        raise unknown("sample", name, sorted(known))
    return known[name].make()


def sample_archive(modality: str) -> bytes | None:
    """The train and test parts of the set of a modality as a `.zip`; None if there is
    no such set.
    """
    sets = [kind for kind in kinds().values() if kind.modality == modality]
    if not sets:
        return None
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path, content in sets[0].make().items():
            if path.startswith(("train", "test")):
                archive.writestr(path, content)
    return out.getvalue()


def write_sample(name: str, folder: str | os.PathLike[str]) -> list[Path]:
    """Write a set into a new or an empty folder; returns the paths of its files.

    `train` and `test` hold the same classes, so that the folder can be given to
    `imprint fit`. `more` holds another class, to be added later, and `new` inputs
    without a label. A failure leaves no files.
    """
    contents = sample_files(name)
    target = expanded(folder)
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise FileError(
            f"Cannot write sample data to {target}: it exists and is not an empty"
            " folder; name a new one."
        )
    with reporting("write sample data to", target):
        target.mkdir(parents=True, exist_ok=True)
        # Complete below a hidden folder first, so that a crash leaves no half set.
        staging = Path(tempfile.mkdtemp(prefix=".sample-", dir=target))
        try:
            for path, content in contents.items():
                file = staging / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
            for entry in sorted(staging.iterdir()):
                os.replace(entry, target / entry.name)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    return [target / path for path in contents]


def _digits() -> dict[str, bytes]:
    """Images of handwritten digits, one folder per class."""
    from sklearn.datasets import load_digits

    digits = load_digits()

    def rows_of(label: int) -> list[int]:
        return np.flatnonzero(digits.target == label).tolist()

    def add_class(part: str, label: int, rows: list[int]) -> None:
        for position, row in enumerate(rows):
            path = f"{part}/{DIGIT_NAMES[label]}/{position:02}.png"
            contents[path] = _png(digits.images[row])

    contents: dict[str, bytes] = {}
    for label in (1, 2, 3):
        rows = rows_of(label)
        # The data set is ordered by writer. Every second row for the test, so that both
        # parts have the same writers.
        add_class("train", label, rows[0::2][:TRAIN_DIGITS])
        add_class("test", label, rows[1::2][:TEST_DIGITS])
    add_class("more", LATER_DIGIT, rows_of(LATER_DIGIT)[:LATER_DIGITS])
    new_label, new_position = NEW_DIGIT
    new_row = rows_of(new_label)[new_position]
    contents["new.png"] = _png(digits.images[new_row])
    return contents


def _png(digit: np.ndarray) -> bytes:
    """A digit (8, 8) with values from 0 to 16 as a PNG file, with a margin."""
    from PIL import Image

    pixels = np.pad((digit * (255 / MAX_GREY)).round().astype(np.uint8), 1)
    image = Image.fromarray(pixels).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()


def _messages() -> dict[str, bytes]:
    """Tables of texts: `train.csv`, `test.csv`, `more.csv`, and `new.csv` without
    labels.
    """
    source = (files("imprint.datasets") / "sample_messages.csv").read_text("utf-8")
    rows = list(csv.DictReader(io.StringIO(source)))
    tables = {
        part: _table(("text", "label"), [row for row in rows if row["part"] == part])
        for part in ("train", "test", "more")
    }
    new = [{"text": text} for text in NEW_MESSAGES]
    contents = {f"{part}.csv": table for part, table in tables.items()}
    return {**contents, "new.csv": _table(("text",), new)}


def _series() -> dict[str, bytes]:
    """Windows of three axes, one folder per class, and a recording of several
    movements.
    """
    # the legacy generator, whose numbers never change
    rng = np.random.RandomState(0)
    contents: dict[str, bytes] = {}

    def add_class(part: str, label: str, number: int) -> None:
        for i in range(number):
            window = _movement(label, WINDOW_SAMPLES, rng)
            contents[f"{part}/{label}/{i:02}.csv"] = _samples(window)

    for label in MOVEMENTS:
        if label != LATER_MOVEMENT:
            add_class("train", label, TRAIN_SERIES)
            add_class("test", label, TEST_SERIES)
    add_class("more", LATER_MOVEMENT, LATER_SERIES)
    contents["new.csv"] = _samples(_movement("walk", WINDOW_SAMPLES, rng))
    parts = [
        _movement(label, seconds * SAMPLE_RATE, rng) for label, seconds in RECORDING
    ]
    contents["recording.csv"] = _samples(np.concatenate(parts))
    return contents


def _movement(label: str, samples: int, rng: np.random.RandomState) -> np.ndarray:
    """Accelerations of three axes: gravity, a movement and noise.  # (samples, 3)"""
    frequency, strengths, harmonic = MOVEMENTS[label]
    # persons and arms differ
    pace = frequency * rng.normal(1, 0.08)
    vigour = np.exp(rng.normal(0, 0.25))
    gravity = np.array([0.2, 0.1, 0.95]) + rng.normal(0, 0.1, 3)
    phases = rng.uniform(0, 2 * np.pi, 3)
    angles = 2 * np.pi * pace * np.arange(samples)[:, None] / SAMPLE_RATE + phases
    waves = np.sin(angles) + harmonic * np.sin(2 * angles)
    noise = rng.normal(0, 0.05, (samples, 3))
    return np.asarray(gravity + vigour * np.array(strengths) * waves + noise)


def _samples(window: np.ndarray) -> bytes:
    """A series as a CSV file with one column per axis."""
    lines = [",".join(f"{value:.3f}" for value in row) for row in window.tolist()]
    return "\n".join(["x,y,z", *lines, ""]).encode()


def _table(columns: tuple[str, ...], rows: list[dict[str, str]]) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()
