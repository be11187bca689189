from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from imprint.datasets.named._base import Dataset
from imprint.datasets.named.mnist import Mnist
from imprint.datasets.named.mnistm import MnistM
from imprint.datasets.named.svhn import Svhn
from imprint.datasets.named.usps import Usps
from imprint.datasets.record import DatasetRecord, DownloadProgress
from imprint.datasets.split import Joined, Split, classes_of

PARTS = (Mnist(), MnistM(), Svhn(), Usps())


@dataclass(frozen=True, kw_only=True)
class CombiDigitsDataset(Dataset):
    """Digits from MNIST, MNIST-M, SVHN and USPS as one set; `source` says where each row came from.

    Every picture keeps its own size and colours.
    """

    record: ClassVar[DatasetRecord] = DatasetRecord(
        title="CombiDigits: MNIST, MNIST-M, SVHN and USPS merged",
        modality="image",
        classes=10,
        train=sum(p.record.train for p in PARTS),
        test=sum(p.record.test for p in PARTS),
        homepage="https://github.com/DATEXIS/IMPRINT",
        licence="that of each part",
        citation="J. Westerhoff, G. Atefi, M. Koddenbrock, A. Figueroa, A. Löser, E. Rodner, F. A. Gers: Robust weight "
        "imprinting: insights from neural collapse and proxy-based aggregation. 2025; and each part's own.",
        note="Downloads its four parts.",
    )

    def load(self, split: str, progress: DownloadProgress | None = None) -> Split:
        parts = [p.load(split, progress) for p in PARTS]
        labels = np.concatenate([p.labels for p in parts])
        return Split(
            Joined([p.inputs for p in parts]),
            labels,
            Joined([p.names for p in parts]),
            classes_of(labels),
            "image",
            np.repeat([p.name for p in PARTS], [len(p) for p in parts]),
        )
