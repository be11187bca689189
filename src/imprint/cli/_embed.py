"""Splits of a data set as stored embeddings."""

from pathlib import Path
from typing import Any

import numpy as np

from imprint import datasets
from imprint.cli import _terminal as terminal
from imprint.cli._files import check_home, check_place
from imprint.core.errors import FileError
from imprint.core.files.atomic import atomic_write
from imprint.datasets.matrices import DAMAGE
from imprint.embeddings import Embeddings, extract
from imprint.embeddings.extract import check_engine
from imprint.imprinter import Embedded
from imprint.imprinter.embedder import BackboneEmbedder

ARRAYS = {f"{split}{what}" for split in ("train", "test") for what in ("", "_labels", "_names")}


def check_target(path: Path) -> None:
    """Refuse to write embeddings over a file that `imprint embed` did not write."""
    check_place(path)
    if path.suffix != ".npz":
        raise FileError(f"Cannot write {path}: its name must end in .npz.")
    if path.exists() and path.stat().st_size:
        try:
            with np.load(path, allow_pickle=False) as pack:
                ours = {"train", "train_names"} <= set(pack.files) <= ARRAYS
        except (OSError, *DAMAGE):
            ours = False
        if not ours:
            raise FileError(f"Cannot write {path}: it exists and imprint embed did not write it; choose another name.")


def embed_splits(
    spec: str,
    backbone: str | None,
    device: str,
    threads: int | None,
    tests: bool,
    columns: dict[str, Any],
    engine: str = "local",
) -> dict[str, Embeddings | Embedded]:
    """The `train` split and, with `tests`, the `test` split if there is one."""
    check_home(optional=False)
    check_engine(engine)
    cores = (threads or 1) if engine == "ray" else threads  # a node has a process for every core
    embedder = BackboneEmbedder(backbone, True, device, cores)
    embedded: dict[str, Embeddings | Embedded] = {}
    with terminal.bars() as bars:
        for name in ("train", "test") if tests else ("train",):
            try:
                split = datasets.load(spec, name, progress=bars.download, **columns)
            except FileError:
                if name == "train":
                    raise
                continue
            embedder.choose(split.kind)
            if not split.kind.needs_backbone:
                embedded[name] = embedder.labelled(split)
            else:
                progress = bars.embedding(f"Embedding {name}")
                workers = cores if engine == "ray" else None
                embedded[name] = extract(embedder.backbone, split, progress=progress, workers=workers, engine=engine)
    return embedded


def write(path: Path, splits: dict[str, Embeddings | Embedded]) -> None:
    """One .npz file: `train`, `train_labels`, `train_names`, and the same for `test`."""
    arrays: dict[str, Any] = {}
    for name, e in splits.items():
        arrays |= {name: np.asarray(e.X), f"{name}_labels": e.y, f"{name}_names": np.array(list(e.names))}
    with atomic_write(path) as f:
        np.savez(f, allow_pickle=False, **arrays)
