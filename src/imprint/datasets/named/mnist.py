from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from imprint.datasets.idx import read_idx_pairs
from imprint.datasets.named._base import PackedDataset, Tables
from imprint.datasets.record import DatasetRecord, PublishedFile


def _source(file: str, size: int, sha256: str) -> PublishedFile:
    mirrors = ("https://ossci-datasets.s3.amazonaws.com/mnist", "https://storage.googleapis.com/cvdf-datasets/mnist")
    return PublishedFile(urls=tuple(f"{m}/{file}" for m in mirrors), size=size, sha256=sha256)


@dataclass(frozen=True, kw_only=True)
class Mnist(PackedDataset):
    """Handwritten digits, grey, 28 x 28."""

    record: ClassVar[DatasetRecord] = DatasetRecord(
        title="MNIST handwritten digits",
        modality="image",
        classes=10,
        train=60_000,
        test=10_000,
        shape=(28, 28),
        homepage="http://yann.lecun.com/exdb/mnist/",
        licence="CC BY-SA 3.0",
        citation="Y. LeCun, L. Bottou, Y. Bengio, P. Haffner: Gradient-based learning applied to document "
        "recognition. Proceedings of the IEEE 86(11), 1998.",
        sources=(
            _source(
                "train-images-idx3-ubyte.gz",
                9_912_422,
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            ),
            _source(
                "train-labels-idx1-ubyte.gz",
                28_881,
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            ),
            _source(
                "t10k-images-idx3-ubyte.gz",
                1_648_877,
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            ),
            _source(
                "t10k-labels-idx1-ubyte.gz",
                4_542,
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            ),
        ),
    )

    def convert(self, files: Mapping[str, Path]) -> Tables:
        return read_idx_pairs(files)
