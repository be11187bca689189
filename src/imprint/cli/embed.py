"""`imprint embed`."""

from pathlib import Path
from typing import Annotated

import typer

from imprint.cli import _options as options
from imprint.cli import _terminal as terminal


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
    from imprint.cli._embed import check_target, embed_splits, write

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
