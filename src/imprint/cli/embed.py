"""`imprint embed`."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from imprint import datasets
from imprint.cli import _options as options
from imprint.cli import _terminal as terminal
from imprint.cli._files import check_home, check_writable
from imprint.cli._progress import progress_bars
from imprint.core.errors import FileError, ParameterError
from imprint.core.files.atomic import atomic_write
from imprint.datasets.numpy_files import DAMAGE
from imprint.embeddings import Embeddings, extract
from imprint.embeddings.extract import check_engine
from imprint.imprinter import Embedded
from imprint.imprinter.embedder import BackboneEmbedder

ARRAYS = {f"{split}{what}" for split in ("train", "test") for what in ("", "_labels", "_names")}


def command(
    data: options.Data,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The .npz file to write.")],
    labels: options.Labels = None,
    label_column: options.LabelColumn = None,
    text_column: options.TextColumn = None,
    tree: options.Tree = None,
    backbone: options.Backbone = None,
    device: options.Device = "cpu",
    threads: options.Threads = None,
    engine: options.Engine = "local",
    json: options.Json = False,
) -> None:
    """Write the embeddings of a data set to a .npz file.

    It holds `train`, `train_labels` and `train_names`, and the same for `test` if there is a test split. Unreadable
    inputs are named and left out. After an interruption, the same command resumes. It replaces only its own files.

    With --engine ray the nodes of a cluster compute, on one core per batch, or on --threads cores.
    """
    check_writable(output, _is_pack, "imprint embed did not write it")
    if output.suffix != ".npz":
        raise FileError(f"Cannot write {output}: its name must end in .npz.")
    columns = {"labels": labels, "label_column": label_column, "text_column": text_column, "tree": tree}
    splits = embed_splits(data, backbone, device, threads, tests=True, columns=columns, engine=engine)
    _write(output, splits)
    width = splits["train"].X.shape[1]
    if json:
        sizes = {name: len(s.X) for name, s in splits.items()}
        terminal.emit({"file": str(output), "width": width, "rows": sizes})
    else:
        rows = " and ".join(f"{len(s.X):,} {name}" for name, s in splits.items())
        terminal.note(f"{output}: {rows} rows of {width} numbers, {terminal.bytes_of(output)}.")
    terminal.finish([s for split in splits.values() for s in split.skipped])


def _is_pack(path: Path) -> bool:
    """Whether a file holds the arrays that this command writes, and no others."""
    try:
        with np.load(path, allow_pickle=False) as pack:
            return {"train", "train_names"} <= set(pack.files) <= ARRAYS
    except DAMAGE:
        return False


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
    cores = (threads or 1) if engine == "ray" else threads  # Ray starts one process per core of a node
    embedder = BackboneEmbedder(backbone, True, device, cores)
    embedded: dict[str, Embeddings | Embedded] = {}
    with progress_bars() as bars:
        for name in ("train", "test") if tests else ("train",):
            try:
                split = datasets.load(spec, name, progress=bars.download, **columns)
            except FileError:
                if name == "train":
                    raise
                continue
            if split.tags:
                raise ParameterError(f"{spec}: a file of embeddings has one label per input, and these have tags.")
            embedder.choose(split.kind)
            if not split.kind.needs_backbone:
                embedded[name] = embedder.labelled(split)
            else:
                progress = bars.embedding(f"Embedding {name}")
                workers = cores if engine == "ray" else None
                embedded[name] = extract(embedder.backbone, split, progress=progress, workers=workers, engine=engine)
    return embedded


def _write(path: Path, splits: dict[str, Embeddings | Embedded]) -> None:
    """One .npz file: `train`, `train_labels`, `train_names`, and the same for `test`."""
    arrays: dict[str, Any] = {}
    for name, e in splits.items():
        arrays |= {name: np.asarray(e.X), f"{name}_labels": e.y, f"{name}_names": np.array(list(e.names))}
    with atomic_write(path) as f:
        np.savez(f, allow_pickle=False, **arrays)
