"""Write the embeddings of a data set to a .npz file.

It holds `train`, `train_labels` and `train_names`, and the same for `test` if there is
a test split. Unreadable inputs are named and left out. After an interruption, the same
command resumes. It replaces only its own files.

With --engine ray, the nodes of a cluster compute the batches, each on one core, or on
--threads cores.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from imprint.cli import files, options, terminal
from imprint.core.errors import FileError, ParameterError
from imprint.core.files.atomic import atomic_write
from imprint.datasets import SPLITS, Split
from imprint.datasets.numpy_files import open_pack
from imprint.embeddings import EmbeddingProgress, Embeddings, Skipped, extract
from imprint.embeddings.extract import check_engine
from imprint.evaluation.labelled_rows import all_splits
from imprint.imprinter import Embedded
from imprint.imprinter.embedder import BackboneEmbedder

ARRAYS = {
    f"{split}{ending}" for split in SPLITS for ending in ("", "_labels", "_names")
}


def command(
    data: str = options.DATA,
    output: Path = options.output("The .npz file to write."),
    *,
    columns: options.DataColumns,
    tree: bool | None = options.TREE,
    network: options.Network,
    engine: str = options.ENGINE,
    json: bool = options.JSON,
) -> int:
    files.check_writable(output, _is_pack, "imprint embed did not write it")
    if output.suffix != ".npz":
        raise FileError(f"Cannot write {output}: its name must end in .npz.")
    files.check_home(advice="")
    check_engine(engine)
    # Ray starts one process per core of a node
    cores = (network.threads or 1) if engine == "ray" else network.threads
    embedder = BackboneEmbedder(network.backbone, True, network.device, cores)
    arrays: dict[str, Any] = {}
    skipped: list[Skipped] = []
    with terminal.progress_bars() as bars:
        splits = all_splits(data, progress=bars.download, tree=tree, **vars(columns))
        for name, split in zip(SPLITS, splits):
            rows = embed_split(
                embedder, split, bars.embedding(f"Embedding {name}"), engine
            )
            arrays |= {
                name: np.asarray(rows.X),
                f"{name}_labels": rows.y,
                f"{name}_names": np.array(list(rows.names)),
            }
            skipped += rows.skipped
    with atomic_write(output) as f:
        np.savez(f, allow_pickle=False, **arrays)
    width = arrays["train"].shape[1]
    sizes = {name: len(arrays[name]) for name in SPLITS if name in arrays}
    if json:
        terminal.emit({"file": str(output), "width": width, "rows": sizes})
    else:
        counts = " and ".join(f"{size:,} {name}" for name, size in sizes.items())
        terminal.note(
            f"{output}: {counts} rows of {width} numbers, {terminal.file_size(output)}."
        )
    return terminal.report_skipped(skipped)


def _is_pack(path: Path) -> bool:
    """Whether a file holds the arrays that this command writes, and no others."""
    with open_pack(path) as pack:
        return {"train", "train_names"} <= set(pack.files) <= ARRAYS


def embed_split(
    embedder: BackboneEmbedder,
    split: Split,
    progress: Callable[[EmbeddingProgress], None],
    engine: str = "local",
) -> Embeddings | Embedded:
    """The embeddings of a split; those that a backbone computes are stored on disk."""
    if split.tags:
        raise ParameterError(
            f"{split.origin}: a file of embeddings has one label per input, and these"
            " have tags."
        )
    embedder.choose(split.kind)
    if not split.kind.needs_backbone:
        return embedder.embed_labelled(split)
    workers = embedder.threads if engine == "ray" else None
    return extract(
        embedder.backbone, split, progress=progress, workers=workers, engine=engine
    )
