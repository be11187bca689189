from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from imprint.datasets.named._base import TextDataset
from imprint.datasets.record import DatasetRecord, PublishedFile

FOLDER = "https://cogcomp.seas.upenn.edu/Data/QA/QC"


@dataclass(frozen=True, kw_only=True)
class Trec(TextDataset):
    """Questions and the kind of answer they ask for, six coarse classes."""

    record: ClassVar[DatasetRecord] = DatasetRecord(
        title="TREC question classification, coarse classes",
        modality="text",
        classes=6,
        train=5_452,
        test=500,
        homepage=f"{FOLDER}/",
        licence="not stated",
        citation="X. Li, D. Roth: Learning question classifiers. COLING, 2002.",
        sources=(
            PublishedFile(
                urls=(f"{FOLDER}/train_5500.label",),
                size=335_858,
                sha256="9e4c8bdcaffb96ed61041bd64b564183d52793a8e91d84fc3a8646885f466ec3",
            ),
            PublishedFile(
                urls=(f"{FOLDER}/TREC_10.label",),
                size=23_354,
                sha256="033f22c028c2bbba9ca682f68ffe204dc1aa6e1cf35dd6207f2d4ca67f0d0e8e",
            ),
        ),
        note="The files are latin-1.",
    )

    def read(self, files: Mapping[str, Path], split: str) -> tuple[list[str], list[str]]:
        """Lines such as `NUM:dist How far is it from Denver to Aspen ?`."""
        path = files["train_5500.label" if split == "train" else "TREC_10.label"]
        lines = [line.split(" ", 1) for line in path.read_text("latin-1").split("\n") if line.strip()]
        return [text.strip() for _, text in lines], [kind.split(":")[0] for kind, _ in lines]
