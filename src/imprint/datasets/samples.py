"""Small labelled sets to try imprint with: images, texts and time series.

The images are handwritten digits that scikit-learn brings along (UCI Machine Learning
Repository, doi 10.24432/C50P49, CC BY 4.0). The texts are invented messages to a shop.
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


def _table(columns: tuple[str, ...], rows: list[dict[str, str]]) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()
