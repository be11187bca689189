import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from imprint.core.errors import FileError
from imprint.core.types import Array
from imprint.datasets.named._base import PackedDataset, Tables
from imprint.datasets.record import DatasetRecord, PublishedFile

ROW = 1 + 3 * 32 * 32  # a label, then the red, green and blue planes


@dataclass(frozen=True, kw_only=True)
class Cifar10(PackedDataset):
    """Photographs of ten kinds of animals and vehicles, colour, 32 x 32; read from the binary version."""

    record: ClassVar[DatasetRecord] = DatasetRecord(
        title="CIFAR-10",
        modality="image",
        classes=10,
        class_names=(
            "airplane",
            "automobile",
            "bird",
            "cat",
            "deer",
            "dog",
            "frog",
            "horse",
            "ship",
            "truck",
        ),
        train=50_000,
        test=10_000,
        shape=(32, 32, 3),
        homepage="https://www.cs.toronto.edu/~kriz/cifar.html",
        licence="not stated; cite the report",
        citation="A. Krizhevsky: Learning multiple layers of features from tiny images. Technical report, "
        "University of Toronto, 2009.",
        sources=(
            PublishedFile(
                urls=("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
                size=170_052_171,
                sha256="c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
                md5="c32a1d4ab5d03f1284b67883e8d87530",
            ),
        ),
    )

    def convert(self, files: Mapping[str, Path]) -> Tables:
        with tarfile.open(files["cifar-10-binary.tar.gz"], "r:gz") as tar:
            batches = [_read(tar, f"data_batch_{i}.bin") for i in range(1, 6)]
            images, labels = (np.concatenate(part) for part in zip(*batches))
            return {"train": (images, labels), "test": _read(tar, "test_batch.bin")}


def _read(tar: tarfile.TarFile, name: str) -> tuple[Array, Array]:
    member = tar.extractfile(f"cifar-10-batches-bin/{name}")
    raw = np.frombuffer(member.read() if member else b"", np.uint8)
    if not raw.size or raw.size % ROW:
        raise FileError(f"{name} is not made of records of {ROW} bytes.")
    rows = raw.reshape(-1, ROW)
    return np.ascontiguousarray(rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)), rows[:, 0]
