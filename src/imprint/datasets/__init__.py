"""Labelled inputs: named data sets, folders of images or sounds, tables, packs and
matrices.
"""

import difflib
import os
from dataclasses import replace
from pathlib import Path
from typing import TypedDict, Unpack

from imprint.core.errors import FileError, ParameterError, UnreadableInput, unknown
from imprint.core.files.atomic import expanded
from imprint.datasets.collections import (
    collection_in,
    kind_of_collection,
    load_collection,
    load_collection_folder,
)
from imprint.datasets.folder import Nesting, load_files, load_folder, load_zip
from imprint.datasets.named import (
    DatasetRecord,
    DownloadProgress,
    PublishedFile,
    load_named,
    record,
    records,
)
from imprint.datasets.numpy_files import load_matrix, load_pack
from imprint.datasets.split import NO_LABELS, SPLITS, Label, Split
from imprint.datasets.tables import (
    SUFFIXES,
    load_table,
    load_table_folder,
    table_in,
    table_suffix,
    with_tags,
)

__all__ = [
    "SPLITS",
    "DatasetRecord",
    "DownloadProgress",
    "Label",
    "PublishedFile",
    "Split",
    "UnreadableInput",
    "load",
    "load_files",
    "names",
    "record",
]


def names() -> list[str]:
    """The names of all named data sets."""
    return sorted(records())


class TableOptions(TypedDict, total=False):
    """How a table is read: its columns of labels and of texts, the separator of several
    labels in a cell, the encoding of a text file, and the modality of its rows if that
    does not follow from the names of its columns.
    """

    label_column: str | None
    text_column: str | None
    separator: str | None
    encoding: str | None
    modality: str | None


def load(
    data: str | os.PathLike[str],
    split: str = "train",
    *,
    labels: str | os.PathLike[str] | None = None,
    labelled: bool = True,
    tree: Nesting = None,
    progress: DownloadProgress | None = None,
    **table: Unpack[TableOptions],
) -> Split:
    """One split of a data set: by name, or by the path of a folder, table, pack or
    matrix.

    - a folder per class, of images or of `.wav` sounds; or such folders in `train/`
      and `test/`. Nested folders are a tree: `animal/cat/` is the class `animal/cat`.
      `tree=False` makes each top folder one class, `tree=True` makes sub-folders
      classes even if their names are numbers. With a list of classes, folders below a
      class belong to it;
    - a table `.csv`, `.tsv`, `.jsonl` or `.parquet`, of texts (`text`, or
      `text_column`) or of embeddings (columns of numbers, or one column of lists), with
      `label` (or `label_column`); a folder may hold `train.csv` and `test.csv`;
    - tags, several labels per input: a table whose cells hold lists of labels, or
      labels separated by `separator`, or with several columns in `label_column`, such
      as "joy,love"; with a `separator`, equal files in several folders;
    - a pack `.npz` of images, or of embeddings as `imprint embed` writes them; an
      indicator matrix of labels, with the names of its columns in `label_names`, is
      tags;
    - a matrix `.npy` of embeddings, with one label per row in the file `labels`;
    - time series: a `.npz` with `series` (n, channels, length) and `labels`, a `.ts`
      file, a table with columns `t0`, `t1`, ... or with a column `series` and one row
      per sample, or a folder per class of `.csv` files with one column per channel.
      With `modality="series"`, all columns of numbers in a table are samples.

    The modality follows from the data: see `modality`, `found` and `parts` of the
    split. `labelled=False` ignores labels. The options of a table, all None by default,
    are `label_column`, `text_column`, `separator`, `encoding` (None is UTF-8) and
    `modality`. The
    columns `label`, `labels`, `category`, `target` and `y` are labels by their names,
    in upper or lower case. A name takes precedence over a path: write `./mnist` for a
    folder of that name. Public data sets are downloaded once, into `data` in
    `IMPRINT_HOME`; `progress` is called for every block.

    >>> load("digits"), load("digits", "test")
    (Split(1442 images, 10 classes), Split(355 images, 10 classes))
    >>> load("digits").found
    '1,442 images of 10 classes (digits)'
    """
    if split not in SPLITS:
        raise ParameterError(
            f"load(split={split!r}): split must be one of 'train', 'test'."
        )
    if unexpected := sorted(table.keys() - TableOptions.__annotations__.keys()):
        raise TypeError(f"load() got an unexpected keyword argument {unexpected[0]!r}")
    path = expanded(data)
    suffix, separator = path.suffix.lower(), table.get("separator")
    if labels is not None and suffix != ".npy":
        raise ParameterError(
            f"load({os.fspath(data)!r}, labels={os.fspath(labels)!r}): labels go with a"
            " .npy file."
        )
    is_named = isinstance(data, str) and data in names()
    if not is_named and not path.exists():
        raise _no_such_data(data)
    is_table = not is_named and bool(
        table_in(path, "train") if path.is_dir() else table_suffix(path)
    )
    for name in ("label_column", "text_column", "encoding"):
        if (
            (column := table.get(name)) is not None
            and not is_table
            and (suffix, name) != (".npy", "label_column")
        ):
            raise ParameterError(
                f"load({os.fspath(data)!r}, {name}={column!r}):"
                f" {'encodings' if name == 'encoding' else 'columns'} go with a table."
            )
    if is_named:
        named = replace(
            load_named(str(data), split, progress), origin=str(data), parts=SPLITS
        )
        return named if labelled else replace(named, labels=NO_LABELS, classes=())
    if path.is_dir() and is_table:
        return load_table_folder(path, split, labelled=labelled, **table)
    if path.is_dir() and collection_in(path, "train"):
        return load_collection_folder(path, split, labelled=labelled)
    if kind_of_collection(path):
        if split != "train":
            raise FileError(
                f"{path} has no test split; give the test file as data of its own."
            )
        return load_collection(path, labelled=labelled)
    if path.is_dir() or suffix == ".zip":
        inputs = (load_folder if path.is_dir() else load_zip)(
            path, split, labelled=labelled, tree=tree
        )
        return (
            with_tags(inputs, separator)
            if separator is not None and len(inputs.labels)
            else inputs
        )
    if suffix == ".npz":
        return load_pack(path, split, labelled=labelled)
    if is_table:
        return load_table(path, split, labelled=labelled, **table)
    if suffix != ".npy":
        formats = (
            f"a table ({', '.join(SUFFIXES)}), a .npz pack, a .ts file or a .npy matrix"
        )
        raise FileError(f"Cannot load {path}: give a folder per class, {formats}.")
    if split != "train":
        raise FileError(
            f"{path} has no test split; give the test rows as a file of their own."
        )
    labels_file = None if labels is None else expanded(labels)
    return load_matrix(
        path, labels_file, labelled=labelled, label_column=table.get("label_column")
    )


def _no_such_data(data: str | os.PathLike[str]) -> FileError | ParameterError:
    """The error for a path that does not exist; a word without a suffix may be a
    mistyped name.
    """
    text = os.fspath(data)
    may_be_name = (
        isinstance(data, str)
        and not Path(text).suffix
        and os.path.basename(text) == text
    )
    if may_be_name and difflib.get_close_matches(text, names(), 1):
        return unknown("dataset", text, [*names(), "or a path"])
    return FileError(
        "There is no file or folder"
        f" {text}{', and no data set of that name' * may_be_name}."
    )
