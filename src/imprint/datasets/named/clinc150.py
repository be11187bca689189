import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from imprint.datasets.named._base import TextDataset
from imprint.datasets.record import DatasetRecord, PublishedFile


@dataclass(frozen=True, kw_only=True)
class Clinc150(TextDataset):
    """Requests to an assistant and their 150 intents; without the out-of-scope and validation rows."""

    record: ClassVar[DatasetRecord] = DatasetRecord(
        title="CLINC150, in-scope intents",
        modality="text",
        classes=150,
        train=15_000,
        test=4_500,
        homepage="https://github.com/clinc/oos-eval",
        licence="CC BY 3.0",
        citation="S. Larson et al.: An evaluation dataset for intent classification and out-of-scope prediction. "
        "EMNLP-IJCNLP, 2019.",
        sources=(
            PublishedFile(
                urls=("https://raw.githubusercontent.com/clinc/oos-eval/master/data/data_full.json",),
                size=2_495_390,
                sha256="36923c3705a59e08fe9c3883d8bc2dd966ef93e22cb78ac41171782a698d56e0",
            ),
        ),
    )

    def read(self, files: Mapping[str, Path], split: str) -> tuple[list[str], list[str]]:
        with open(files["data_full.json"], encoding="utf-8") as f:
            rows = json.load(f)[split]
        return [str(text) for text, _ in rows], [str(label) for _, label in rows]
