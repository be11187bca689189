import bz2
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from imprint.core.errors import FileError
from imprint.core.types import Array
from imprint.datasets.named._base import PackedDataset, Tables
from imprint.datasets.record import DatasetRecord, PublishedFile

FOLDER = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass"


@dataclass(frozen=True, kw_only=True)
class Usps(PackedDataset):
    """Digits scanned from envelopes, grey, 16 x 16; read from the LIBSVM version."""

    record: ClassVar[DatasetRecord] = DatasetRecord(
        title="USPS handwritten digits",
        modality="image",
        classes=10,
        train=7_291,
        test=2_007,
        shape=(16, 16),
        homepage=f"{FOLDER}.html#usps",
        licence="not stated",
        citation="J. J. Hull: A database for handwritten text recognition research. IEEE Transactions on Pattern "
        "Analysis and Machine Intelligence 16(5), 1994.",
        sources=(
            PublishedFile(urls=(f"{FOLDER}/usps.bz2",), md5="ec16c51db3855ca6c91edd34d0e9b197"),
            PublishedFile(urls=(f"{FOLDER}/usps.t.bz2",), md5="8ea070ee2aca1ac39742fdd1ef5ed118"),
        ),
        note="Grey values from -1 to 1 become bytes by (x + 1) / 2 * 255, cut to an integer.",
    )

    def convert(self, files: Mapping[str, Path]) -> Tables:
        return {"train": _read(files["usps.bz2"]), "test": _read(files["usps.t.bz2"])}


def _read(path: Path) -> tuple[Array, Array]:
    """Lines such as `7 1:-1 2:-0.5 ...`: the digit plus one, then 256 numbered values from -1 to 1."""
    with bz2.open(path, "rt", encoding="ascii") as f:
        rows = [line.replace(":", " ").split() for line in f if line.strip()]
    table = np.array(rows, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != 513 or (table[:, 1::2] != np.arange(1, 257)).any():
        raise FileError(f"{path} does not hold 256 numbered values per line.")
    grey, labels = table[:, 2::2], table[:, 0] - 1
    if abs(grey).max() > 1 or not np.isin(labels, range(10)).all():
        raise FileError(f"{path} must have values from -1 to 1 and labels from 1 to 10.")
    return ((grey + 1) / 2 * 255).astype(np.uint8).reshape(-1, 16, 16), labels.astype(np.uint8)
