"""Write the embeddings of a data set to a .npz or .parquet file.

A .npz file holds `train`, `train_labels` and `train_names`, the same for `test` if
there is a test split, and the widths and names of the blocks of the embeddings in
`blocks` and `block_names`. A .parquet file has the columns `label`, `name` and `split`,
and a column of lists for each block. Unreadable inputs are named and left out. After an
interruption, the same command resumes. It replaces only its own files.

With --engine ray, the nodes of a cluster compute the batches, each on one core, or on
--threads cores.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from imprint.cli import files, options, terminal
from imprint.core.blocks import column_slices
from imprint.core.errors import FileError, ParameterError
from imprint.core.files.atomic import atomic_write
from imprint.datasets import SPLITS, Split
from imprint.datasets.numpy_files import BLOCK_NAMES, BLOCKS, open_pack
from imprint.embeddings import EmbeddingProgress, Embeddings, Skipped, extract
from imprint.embeddings.extract import check_engine
from imprint.embeddings.pack import block_arrays
from imprint.evaluation.labelled_rows import all_splits
from imprint.imprinter import Embedded
from imprint.imprinter.embedder import BackboneEmbedder

ARRAYS = {
    f"{split}{ending}" for split in SPLITS for ending in ("", "_labels", "_names")
}
ARRAYS |= {BLOCKS, BLOCK_NAMES}
SUFFIXES = (".npz", ".parquet")
MARK = b"imprint embed"  # the key of metadata that marks a Parquet file as ours
WHOLE = "embedding"  # the column of embeddings without blocks


def command(
    data: str = options.DATA,
    output: Path = options.output("The .npz or .parquet file to write."),
    *,
    columns: options.DataColumns,
    tree: bool | None = options.TREE,
    network: options.Network,
    engine: str = options.ENGINE,
    json: bool = options.JSON,
) -> int:
    if output.suffix not in SUFFIXES:
        raise FileError(
            f"Cannot write {output}: its name must end in {' or '.join(SUFFIXES)}."
        )
    is_ours = _is_pack if output.suffix == ".npz" else _is_table
    files.check_writable(output, is_ours, "imprint embed did not write it")
    files.check_home(advice="")
    check_engine(engine)
    # Ray starts one process per core of a node
    cores = (network.threads or 1) if engine == "ray" else network.threads
    embedder = BackboneEmbedder(network.backbone, True, network.device, cores)
    arrays: dict[str, Any] = {}
    blocks: dict[str, int] = {}
    skipped: list[Skipped] = []
    with terminal.progress_bars() as bars:
        splits = all_splits(
            data,
            progress=bars.download,
            tree=tree,
            modality=embedder.requested,
            **vars(columns),
        )
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
            blocks = _blocks(embedder, split)
    with atomic_write(output) as f:
        if output.suffix == ".npz":
            np.savez(f, allow_pickle=False, **arrays, **block_arrays(blocks))
        else:
            _write_table(f, arrays, blocks)
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


def _blocks(embedder: BackboneEmbedder, split: Split) -> dict[str, int]:
    """The widths of the blocks of the embeddings, by name; none if they are whole."""
    if not split.kind.needs_backbone:
        widths = split.blocks
        return {f"block {i}": width for i, width in enumerate(widths, start=1)}
    blocks = embedder.backbone.blocks
    return {block.name: block.width for block in blocks} if len(blocks) > 1 else {}


def _write_table(
    file: IO[bytes], arrays: Mapping[str, Any], blocks: dict[str, int]
) -> None:
    """Write a Parquet file with one row per input."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    parts = [name for name in SPLITS if name in arrays]
    X = np.concatenate([arrays[name] for name in parts])
    labels = np.concatenate([arrays[f"{name}_labels"] for name in parts])
    names = np.concatenate([arrays[f"{name}_names"] for name in parts])
    splits = np.repeat(parts, [len(arrays[name]) for name in parts])
    columns: dict[str, Any] = {"label": labels, "name": names, "split": splits}
    widths = blocks or {WHOLE: X.shape[1]}
    for name, part in zip(widths, column_slices(tuple(widths.values()))):
        values = pa.array(np.ascontiguousarray(X[:, part]).ravel())
        columns[name] = pa.FixedSizeListArray.from_arrays(values, widths[name])
    table = pa.table(columns)
    pq.write_table(table.replace_schema_metadata({MARK: b"1"}), file)


def _is_table(path: Path) -> bool:
    """Whether this command wrote a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open(path, "rb") as f:
            return MARK in (pq.read_schema(f).metadata or {})
    except pa.ArrowException:
        return False


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
    embedder.choose(split.kind, split)
    if not split.kind.needs_backbone:
        return embedder.embed_labelled(split)
    workers = embedder.threads if engine == "ray" else None
    return extract(
        embedder.backbone, split, progress=progress, workers=workers, engine=engine
    )
