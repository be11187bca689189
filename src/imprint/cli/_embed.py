"""Splits of a data set as stored embeddings."""

from pathlib import Path
from typing import Any

import numpy as np

from imprint import backbones, datasets
from imprint.cli import _terminal as terminal
from imprint.core.atomic import atomic_write
from imprint.core.errors import FileError
from imprint.embeddings import Embeddings, extract
from imprint.imprinter.items import check_modality


def embed_splits(
    spec: str, backbone: str, device: str, threads: int | None, tests: bool, need_tests: bool = False
) -> dict[str, Embeddings]:
    """The `train` split and, if there is one and it is wanted, the `test` split."""
    network = backbones.load(backbone, device, threads)
    found = {}
    with terminal.bars() as bars:
        for name in ("train", "test") if tests else ("train",):
            try:
                split = datasets.load(spec, name, progress=bars.download)
            except FileError:
                if name == "train" or need_tests:
                    raise
                continue
            check_modality(network, split)
            found[name] = extract(network, split, progress=bars.embedding(f"Embedding {name}"))
    return found


def write(path: Path, splits: dict[str, Embeddings]) -> None:
    """One .npz file: `train`, `train_labels`, `train_names`, and the same for `test`."""
    if path.suffix != ".npz":
        raise FileError(f"Cannot write {path}: its name must end in .npz.")
    arrays: dict[str, Any] = {}
    for name, e in splits.items():
        arrays |= {name: np.asarray(e.X), f"{name}_labels": e.y, f"{name}_names": np.array(list(e.names))}
    with atomic_write(path) as f:
        np.savez(f, allow_pickle=False, **arrays)
