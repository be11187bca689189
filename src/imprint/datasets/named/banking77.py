from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from imprint.datasets.named._base import TextDataset
from imprint.datasets.record import DatasetRecord, PublishedFile
from imprint.datasets.tables import load_table

FOLDER = "https://raw.githubusercontent.com/PolyAI-LDN/task-specific-datasets/master/banking_data"


@dataclass(frozen=True, kw_only=True)
class Banking77(TextDataset):
    """Questions to a bank and what they are about."""

    record: ClassVar[DatasetRecord] = DatasetRecord(
        title="BANKING77",
        modality="text",
        classes=77,
        train=10_003,
        test=3_080,
        homepage="https://github.com/PolyAI-LDN/task-specific-datasets",
        licence="CC BY 4.0",
        citation="I. Casanueva, T. Temčinas, D. Gerz, M. Henderson, I. Vulić: Efficient intent detection with dual "
        "sentence encoders. NLP4ConvAI, 2020.",
        sources=(
            PublishedFile(
                urls=(f"{FOLDER}/train.csv",),
                size=839_073,
                sha256="b06e26ac675513959a63135f11b94ea7786ed02da65db93a5650d8838cbc664b",
            ),
            PublishedFile(
                urls=(f"{FOLDER}/test.csv",),
                size=239_961,
                sha256="d12d6e3bc4c3103966ae786dc435913c0c563dfa328f5a3646d0e62cfeeb474d",
            ),
        ),
    )

    def read(self, files: Mapping[str, Path], split: str) -> tuple[list[str], list[str]]:
        table = load_table(files[f"{split}.csv"], None)
        return [table.inputs[i] for i in range(len(table))], table.labels.tolist()
