import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from imprint.core.errors import FileError
from imprint.core.extras import missing
from imprint.core.types import Array
from imprint.datasets.named._base import PackedDataset, Tables
from imprint.datasets.record import DatasetRecord, PublishedFile

FOLDER = "https://github.com/liyxi/mnist-m/releases/download/data"


@dataclass(frozen=True, kw_only=True)
class MnistM(PackedDataset):
    """MNIST's digits as the absolute difference to patches of photographs, colour, 28 x 28.

    The authors' own page is gone. The files here are a re-creation by others, published as torch tensors, and the
    one behind the numbers of the paper; converting them needs torch once, the pack does not.
    """

    record: ClassVar[DatasetRecord] = DatasetRecord(
        title="MNIST-M",
        modality="image",
        classes=10,
        train=60_000,
        test=10_000,
        shape=(28, 28, 3),
        homepage="https://github.com/liyxi/mnist-m",
        licence="not stated; made from MNIST (CC BY-SA 3.0) and BSDS500 (non-commercial research)",
        citation="Y. Ganin, E. Ustinova, H. Ajakan, P. Germain, H. Larochelle, F. Laviolette, M. Marchand, "
        "V. Lempitsky: Domain-adversarial training of neural networks. JMLR 17(59), 2016.",
        sources=(
            PublishedFile(urls=(f"{FOLDER}/mnist_m_train.pt.tar.gz",), md5="191ed53db9933bd85cc9700558847391"),
            PublishedFile(urls=(f"{FOLDER}/mnist_m_test.pt.tar.gz",), md5="e11cb4d7fff76d7ec588b1134907db59"),
        ),
        note="A re-creation: the authors' own files are no longer online. Converting it needs torch.",
    )

    def convert(self, files: Mapping[str, Path]) -> Tables:
        return {split: _read(files[f"mnist_m_{split}.pt.tar.gz"]) for split in ("train", "test")}


def _read(path: Path) -> tuple[Array, Array]:
    try:
        import torch
    except ImportError:
        raise missing("torch", "Converting mnistm needs torch") from None
    with tarfile.open(path, "r:gz") as tar:
        members = [m for m in tar if m.isfile() and m.name.endswith(".pt")]
        file = tar.extractfile(members[0]) if len(members) == 1 else None
        if file is None:
            raise FileError(f"{path} must hold one .pt file.")
        images, labels = torch.load(file, map_location="cpu", weights_only=True)
    return images.numpy().reshape(-1, 28, 28, 3), labels.numpy()
