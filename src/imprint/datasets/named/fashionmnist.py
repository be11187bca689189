from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from imprint.datasets.idx import read_idx_pairs
from imprint.datasets.named._base import PackedDataset, Tables
from imprint.datasets.record import DatasetRecord, PublishedFile


def _source(file: str, size: int, sha256: str) -> PublishedFile:
    url = f"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/{file}"
    return PublishedFile(urls=(url,), size=size, sha256=sha256)


@dataclass(frozen=True, kw_only=True)
class FashionMnist(PackedDataset):
    """Articles of clothing, grey, 28 x 28."""

    record: ClassVar[DatasetRecord] = DatasetRecord(
        title="Fashion-MNIST",
        modality="image",
        classes=10,
        class_names=(
            "T-shirt/top",
            "Trouser",
            "Pullover",
            "Dress",
            "Coat",
            "Sandal",
            "Shirt",
            "Sneaker",
            "Bag",
            "Ankle boot",
        ),
        train=60_000,
        test=10_000,
        shape=(28, 28),
        homepage="https://github.com/zalandoresearch/fashion-mnist",
        licence="MIT",
        citation="H. Xiao, K. Rasul, R. Vollgraf: Fashion-MNIST: a novel image dataset for benchmarking machine "
        "learning algorithms. arXiv:1708.07747, 2017.",
        sources=(
            _source(
                "train-images-idx3-ubyte.gz",
                26_421_880,
                "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            ),
            _source(
                "train-labels-idx1-ubyte.gz",
                29_515,
                "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            ),
            _source(
                "t10k-images-idx3-ubyte.gz",
                4_422_102,
                "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            ),
            _source(
                "t10k-labels-idx1-ubyte.gz",
                5_148,
                "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
            ),
        ),
    )

    def convert(self, files: Mapping[str, Path]) -> Tables:
        return read_idx_pairs(files)
