from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from imprint.datasets.named._base import Dataset
from imprint.datasets.record import DatasetRecord, DownloadProgress
from imprint.datasets.split import Numbered, Split, classes_of

EVERY = 5


@dataclass(frozen=True, kw_only=True)
class DigitsDataset(Dataset):
    """Handwritten digits that come with scikit-learn, grey, 8 x 8: works without a network.

    The set has no published split. Within each class, in the order of the set, every fifth row is `test`.
    """

    record: ClassVar[DatasetRecord] = DatasetRecord(
        title="Optical recognition of handwritten digits",
        modality="image",
        classes=10,
        train=1_442,
        test=355,
        shape=(8, 8),
        homepage="https://archive.ics.uci.edu/dataset/80/optical+recognition+of+handwritten+digits",
        licence="CC BY 4.0",
        citation="E. Alpaydin, C. Kaynak: Optical recognition of handwritten digits. UCI machine learning "
        "repository, 1998.",
        note="Values from 0 to 16 become bytes by rounding x * 255 / 16.",
    )

    def load(self, split: str, progress: DownloadProgress | None = None) -> Split:
        from sklearn.datasets import load_digits

        data = load_digits()
        labels = data.target.astype(np.int64)
        place = np.empty_like(labels)  # of a row within its class
        for label in np.unique(labels):
            own = labels == label
            place[own] = np.arange(own.sum())
        rows = (place % EVERY == EVERY - 1) == (split == "test")
        images = np.rint(data.images[rows] * 255 / 16).astype(np.uint8)
        return Split(images, labels[rows], Numbered(f"digits/{split}", len(images)), classes_of(labels), "image")
