"""Labelled inputs: named data sets, folders of pictures or sounds, tables, packs and matrices."""

import difflib
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from imprint.core.errors import FileError, ParameterError
from imprint.core.family import unknown
from imprint.datasets.folder_labels import Nesting
from imprint.datasets.named import DatasetRecord, DownloadProgress, PublishedFile, load_named, record_of, records
from imprint.datasets.split import NO_LABELS, SPLITS, Label, Split, UnreadableInput, check_split

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
    """The data sets that have a name.

    >>> "digits" in names()
    True
    """
    return sorted(records())


def record(name: str) -> DatasetRecord:
    """The record of a named data set, without loading it.

    >>> record("usps").train
    7291
    """
    return record_of(name)


def load(
    data: str | os.PathLike[str],
    split: str = "train",
    *,
    labels: str | os.PathLike[str] | None = None,
    labelled: bool = True,
    label_column: str | None = None,
    text_column: str | None = None,
    separator: str | None = None,
    tree: Nesting = None,
    progress: DownloadProgress | None = None,
) -> Split:
    """One split of a data set: by name, or by the path of a folder, table, pack or matrix.

    - a folder per class, of pictures or of `.wav` sounds; or such folders in `train/` and `test/`. Nested folders are a
      tree: `animal/cat/` is the class `animal/cat`. `tree=False` makes each top folder one class, `tree=True` makes
      sub-folders classes even if their names are numbers. With a list of classes, folders below one belong to it;
    - a table `.csv`, `.tsv`, `.jsonl` or `.parquet`, of texts (`text`, or `text_column`) or of embeddings (columns of
      numbers, or one column of lists), with `label` (or `label_column`); a folder may hold `train.csv` and `test.csv`;
    - tags, several labels per input: a table whose cells hold lists of labels, or labels separated by `separator`, or
      with several columns in `label_column`, such as "joy,love"; with a `separator`, equal files in several folders;
    - a pack `.npz` of pictures, or of embeddings as `imprint embed` writes them;
    - a matrix `.npy` of embeddings, with one label per row in the file `labels`.

    The modality follows from the data: see `modality`, `found` and `parts` of the split. `labelled=False` ignores
    labels. A name takes precedence over a path: write `./mnist` for a folder of that name. Public data sets are
    downloaded once, into `data` in `IMPRINT_HOME`; `progress` is called for every block.

    >>> load("digits"), load("digits", "test")
    (Split(1442 images, 10 classes), Split(355 images, 10 classes))
    >>> load("digits").found
    '1,442 pictures of 10 classes (digits)'
    """
    check_split(split)
    if isinstance(data, str) and data in names():
        named = replace(load_named(data, split, progress), origin=data, parts=SPLITS)
        return named if labelled else replace(named, labels=NO_LABELS, classes=())
    path = Path(data).expanduser()
    if labels is not None and path.suffix.lower() != ".npy":
        raise ParameterError(f"load({os.fspath(data)!r}, labels={os.fspath(labels)!r}): labels go with a .npy file.")
    columns = {"label_column": label_column, "text_column": text_column, "separator": separator}
    if path.is_dir():
        return _load_folder(path, split, labelled, columns, tree)
    if not path.exists():
        text = os.fspath(data)
        if not isinstance(data, str) or path.suffix or os.path.basename(text) != text:
            raise FileError(f"There is no file or folder {text}.")
        if difflib.get_close_matches(text, names(), 1):
            raise unknown("dataset", text, [*names(), "or a path"])
        raise FileError(f"There is no file or folder {text}, and no data set of that name.")
    if path.suffix.lower() == ".zip":
        from imprint.datasets.folder import load_zip

        return _tagged(load_zip(path, split, labelled=labelled, tree=tree), separator)
    return _load_file(path, split, None if labels is None else Path(labels).expanduser(), labelled, columns)


def load_files(paths: Iterable[str | os.PathLike[str]], kind: str | None = None) -> Split:
    """Files given one by one, without labels; a folder stands for everything below it.

    They are read as the modality `kind`, by default that of their suffixes. A missing file is refused; one that
    cannot be read raises `UnreadableInput` when it is used.
    """
    from imprint.datasets.folder import load_files

    return load_files(paths, kind)


def _load_file(path: Path, split: str, labels: Path | None, labelled: bool, columns: dict[str, Any]) -> Split:
    from imprint.datasets.numpy_files import load_matrix, load_pack
    from imprint.datasets.tables import SUFFIXES, load_table, table_suffix

    suffix = path.suffix.lower()
    if suffix == ".npz":
        return load_pack(path, split, labelled=labelled)
    if table_suffix(path):
        return load_table(path, split, labelled=labelled, **columns)
    if suffix == ".npy":
        _check_train(path, split)
        return load_matrix(path, labels, labelled=labelled, label_column=columns["label_column"])
    raise FileError(
        f"Cannot load {path}: give a folder per class, a table ({', '.join(SUFFIXES)}), a .npz pack or a .npy matrix."
    )


def _check_train(path: Path, split: str) -> None:
    if split != "train":
        raise FileError(f"{path} has no test split; give the test rows as a file of their own.")


def _load_folder(path: Path, split: str, labelled: bool, columns: dict[str, Any], tree: Nesting) -> Split:
    from imprint.datasets.folder import load_folder
    from imprint.datasets.tables import has_tables, load_table_folder

    if has_tables(path):
        return load_table_folder(path, split, labelled=labelled, **columns)
    return _tagged(load_folder(path, split, labelled=labelled, tree=tree), columns["separator"])


def _tagged(split: Split, separator: str | None) -> Split:
    from imprint.datasets.tags import with_tags

    return split if separator is None or not len(split.labels) else with_tags(split, separator)
