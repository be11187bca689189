"""`imprint embed`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from imprint.cli import _options as options
from imprint.cli import _terminal as terminal

if TYPE_CHECKING:
    from imprint.embeddings import Embeddings
    from imprint.imprinter import Embedded

ARRAYS = {f"{split}{what}" for split in ("train", "test") for what in ("", "_labels", "_names")}


def command(
    data: options.Data,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The .npz file to write.")],
    labels: options.Labels = None,
    label_column: options.LabelColumn = None,
    text_column: options.TextColumn = None,
    tree: options.Tree = None,
    backbone: options.Network = None,
    device: options.Device = "cpu",
    threads: options.Threads = None,
    engine: options.Engine = "local",
    json: options.Json = False,
) -> None:
    """Write the embeddings of a data set to a .npz file.

    It holds `train`, `train_labels` and `train_names`, and the same for `test` if there is a test split. Unreadable
    inputs are named and left out. After an interruption, the same command resumes. It replaces only its own files.

    With --engine ray the nodes of a cluster compute, on one core per batch, or as many as --threads says.
    """
    check_target(output)
    columns = {"labels": labels, "label_column": label_column, "text_column": text_column, "tree": tree}
    splits = embed_splits(data, backbone, device, threads, tests=True, columns=columns, engine=engine)
    write(output, splits)
    for split in splits.values():
        terminal.skipped(split.skipped)
    if json:
        sizes = {name: len(s.X) for name, s in splits.items()}
        terminal.emit({"file": str(output), "width": splits["train"].X.shape[1], "rows": sizes})
    else:
        rows = " and ".join(f"{len(s.X):,} {name}" for name, s in splits.items())
        width = splits["train"].X.shape[1]
        terminal.note(f"{output}: {rows} rows of {width} numbers, {terminal.bytes_of(output)}.")
    terminal.end(s for split in splits.values() for s in split.skipped)


def check_target(path: Path) -> None:
    """Refuse to write embeddings over a file that `imprint embed` did not write."""
    import numpy as np

    from imprint.cli._files import check_place
    from imprint.core.errors import FileError
    from imprint.datasets.numpy_files import DAMAGE

    check_place(path)
    if path.suffix != ".npz":
        raise FileError(f"Cannot write {path}: its name must end in .npz.")
    if path.exists() and path.stat().st_size:
        try:
            with np.load(path, allow_pickle=False) as pack:
                is_ours = {"train", "train_names"} <= set(pack.files) <= ARRAYS
        except DAMAGE:
            is_ours = False
        if not is_ours:
            raise FileError(f"Cannot write {path}: it exists and imprint embed did not write it; choose another name.")


def embed_splits(
    spec: str,
    backbone: str | None,
    device: str,
    threads: int | None,
    tests: bool,
    columns: dict[str, Any],
    engine: str = "local",
) -> dict[str, "Embeddings | Embedded"]:
    """The `train` split and, with `tests`, the `test` split if there is one."""
    from imprint import datasets
    from imprint.cli._files import check_home
    from imprint.core.errors import FileError, ParameterError
    from imprint.embeddings import extract
    from imprint.embeddings.extract import check_engine
    from imprint.imprinter.embedder import BackboneEmbedder

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


def write(path: Path, splits: dict[str, "Embeddings | Embedded"]) -> None:
    """One .npz file: `train`, `train_labels`, `train_names`, and the same for `test`."""
    import numpy as np

    from imprint.core.files.atomic import atomic_write

    arrays: dict[str, Any] = {}
    for name, e in splits.items():
        arrays |= {name: np.asarray(e.X), f"{name}_labels": e.y, f"{name}_names": np.array(list(e.names))}
    with atomic_write(path) as f:
        np.savez(f, allow_pickle=False, **arrays)
