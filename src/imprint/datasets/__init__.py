"""Labelled inputs: named data sets, folders of pictures, packs, tables of texts."""

import os
from pathlib import Path

from imprint.core.errors import FileError
from imprint.core.family import unknown
from imprint.datasets.named import family
from imprint.datasets.record import Progress, Record, Source
from imprint.datasets.split import SPLITS, Label, Split, UnreadableInput, check_split

__all__ = ["SPLITS", "Label", "Progress", "Record", "Source", "Split", "UnreadableInput", "load", "names", "record"]


def names() -> list[str]:
    """The data sets that have a name.

    >>> "digits" in names()
    True
    """
    return family.names()


def record(name: str) -> Record:
    """What is known of a named data set, without loading it.

    >>> record("usps").train
    7291
    """
    return family.load(name).record


def load(spec: str | os.PathLike[str], split: str = "train", *, progress: Progress | None = None) -> Split:
    """One split of a named data set, or of a folder, pack, CSV or JSONL file given by its path.

    A name goes before a path: write `./mnist` for a folder of that name. Public sets are downloaded once, into
    the folder that `imprint.core.home.home()` names; `progress` hears of every block.

    >>> load("digits"), load("digits", "test")
    (Split(1442 images, 10 classes), Split(355 images, 10 classes))
    """
    check_split(split)
    if isinstance(spec, str) and spec in names():
        return family.load(spec)().load(split, progress)
    path = Path(spec).expanduser()
    if path.is_dir():
        return _load_dir(path, split)
    if not path.exists():
        text = os.fspath(spec)
        if isinstance(spec, str) and not path.suffix and os.path.basename(text) == text:
            raise unknown("dataset", spec, [*names(), "or a path"])
        raise FileError(f"There is no file or folder {text}.")
    return _load_file(path, split)


def _load_file(path: Path, split: str) -> Split:
    from imprint.datasets.packs import load_pack
    from imprint.datasets.texts import SUFFIXES, load_text_file

    suffix = path.suffix.lower()
    if suffix == ".npz":
        return load_pack(path, split)
    if suffix in SUFFIXES:
        return load_text_file(path, split)
    raise FileError(f"Cannot load {path}: give a folder of pictures, a .npz pack, a .csv or a .jsonl file.")


def _load_dir(path: Path, split: str) -> Split:
    from imprint.datasets.folder import load_folder
    from imprint.datasets.texts import has_tables, load_text_folder

    return load_text_folder(path, split) if has_tables(path) else load_folder(path, split)
