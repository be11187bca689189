from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from imprint.core.errors import FileError
from imprint.core.types import Array
from imprint.datasets.named._base import PackedDataset, Tables
from imprint.datasets.record import DatasetRecord, PublishedFile


@dataclass(frozen=True, kw_only=True)
class Svhn(PackedDataset):
    """Digits cropped from photographs of house numbers, colour, 32 x 32; the label 10 becomes 0."""

    record: ClassVar[DatasetRecord] = DatasetRecord(
        title="Street View House Numbers, cropped digits",
        modality="image",
        classes=10,
        train=73_257,
        test=26_032,
        shape=(32, 32, 3),
        homepage="http://ufldl.stanford.edu/housenumbers/",
        licence="non-commercial use only",
        citation="Y. Netzer, T. Wang, A. Coates, A. Bissacco, B. Wu, A. Y. Ng: Reading digits in natural images with "
        "unsupervised feature learning. NIPS workshop on deep learning and unsupervised feature learning, 2011.",
        sources=(
            PublishedFile(
                urls=("http://ufldl.stanford.edu/housenumbers/train_32x32.mat",),
                size=182_040_794,
                sha256="435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
                md5="e26dedcc434d2e4c54c9b2d4a06d8373",
            ),
            PublishedFile(
                urls=("http://ufldl.stanford.edu/housenumbers/test_32x32.mat",),
                size=64_275_384,
                sha256="cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
                md5="eb5a983be6a315427106f1b164d9cef3",
            ),
        ),
    )

    def convert(self, files: Mapping[str, Path]) -> Tables:
        return {split: _read(files[f"{split}_32x32.mat"]) for split in ("train", "test")}


def _read(path: Path) -> tuple[Array, Array]:
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        table = loadmat(path, variable_names=["X", "y"])
    except MatReadError as e:
        raise FileError(f"{path} is not a MATLAB file: {e}.") from None
    images = np.ascontiguousarray(table["X"].transpose(3, 0, 1, 2))  # (n, 32, 32, 3)
    return images, table["y"].ravel() % 10
