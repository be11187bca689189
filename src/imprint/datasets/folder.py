"""Folders and `.zip` files with one sub-folder per class; each input is a file that is
decoded when it is used.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from imprint.core.errors import FileError, count, first_names, reporting
from imprint.core.files.atomic import expanded
from imprint.datasets.files import Decode, FileInputs, ZipInputs, is_hidden, open_zip
from imprint.datasets.split import NO_LABELS, SPLITS, Split
from imprint.modalities import Modality, modality, of_file

TEST_FOLDERS = ("test", "val", "validation")
# the sub-folder that is not a class but holds inputs to label; see `imprint suggest`
UNLABELLED = "unlabelled"
ARCHIVE = ".zip"
MAX_NAMES = 20  # files that one message names
# folder names such as 2023-05-01, which divide a class rather than name one
NO_LETTERS = re.compile(r"[\W\d_]+")
Nesting: TypeAlias = bool | Collection[str] | None
"""How nested folders are read: as a tree (True), as one class per top folder (False),
by their names (None), or by the given classes of a model.
"""


class Listing(NamedTuple):
    """The content of a folder, on disk or in a `.zip` file; `open` returns the inputs
    in some of its files.
    """

    path: Path
    files: Iterable[str]  # relative paths
    folders: set[str]  # the names of all sub-folders, even empty ones
    open: Callable[[Sequence[str], Decode], FileInputs]


def load_folder(
    root: Path, split: str, *, labelled: bool = True, tree: Nesting = None
) -> Split:
    """One split of a folder of images, sounds or texts.

    Either the folder has `train` and `test` (or `val`) below it, with one sub-folder
    per class in each, or it has one sub-folder per class itself and is all `train`. A
    sub-folder `unlabelled` is not a class. Without labels, the split is everything
    below the folder. `folder_labels` explains how nested folders are read; those of
    `test` are read as those of `train`.
    """

    def list_part(part: str) -> Listing:
        folder = root / part
        folders = {entry.name for entry in _entries(folder) if _is_folder(entry)}
        return Listing(
            folder,
            _files(folder, follow_links=labelled),
            folders,
            partial(FileInputs, folder),
        )

    return _load(list_part, split, root.resolve().name, labelled, tree)


def load_zip(
    path: Path,
    split: str,
    *,
    labelled: bool = True,
    tree: Nesting = None,
    kind: str | None = None,
) -> Split:
    """One split of a `.zip` of folders, laid out as `load_folder` expects; a single
    folder around them is skipped. The inputs of the modality `kind` are read, by
    default those that there are.
    """
    archive, members = open_zip(path)
    archive.close()
    names, root = sorted(name.split("/") for name in members), ""
    while len({name[0] for name in names}) == 1 and all(
        len(name) > 2 for name in names
    ):
        root, names = f"{root}{names[0][0]}/", [name[1:] for name in names]

    def list_part(part: str) -> Listing:
        below = (
            [name[1:] for name in names if name[0] == part and len(name) > 1]
            if part
            else names
        )
        folders = {name[0] for name in below if len(name) > 1}
        prefix = f"{root}{part}/" if part else root
        return Listing(
            path, map("/".join, below), folders, partial(ZipInputs, path, prefix)
        )

    return _load(list_part, split, path.name, labelled, tree, kind)


def load_files(
    paths: Iterable[str | os.PathLike[str]], kind: str | None = None
) -> Split:
    """Files given one by one, without labels; a folder stands for everything below it,
    and so does a `.zip` file on its own.

    They are read as the modality `kind`, by default that of their suffixes, or else as
    images. A file that cannot be read raises `UnreadableInput` when it is used. If
    no path leads to anything, the first is refused.
    """
    arguments = list(paths)
    names: list[str] = []
    missing: list[str] = []
    ignored: Counter[str] = Counter()
    for argument in arguments:
        path = expanded(argument)
        if path.suffix.lower() == ARCHIVE and path.is_file():
            if len(arguments) > 1:
                raise FileError(
                    f"{path}: give one {ARCHIVE} at a time, not {len(arguments)}"
                    " arguments."
                )
            return load_zip(path, "train", labelled=False, kind=kind)
        if path.is_dir():
            files = list(_files(path))
            folder_kind = _modality(path, files, kind)
            names += [
                os.path.join(path, name)
                for name in files
                if of_file(name) == folder_kind
            ]
            ignored.update(
                _count_suffixes(name for name in files if of_file(name) != folder_kind)
            )
        else:
            names.append(str(path))
            if not os.path.lexists(path):
                missing.append(str(path))
    if not names:
        raise FileError("No files are given.")
    if len(missing) == len(names):
        raise FileError(f"There is no file or folder {os.fspath(arguments[0])}.")
    kinds = (
        {kind}
        if kind
        else {
            (of_file(name) or modality("image")).name
            for name in names
            if name not in missing
        }
    )
    if len(kinds) != 1:
        raise FileError(
            f"{' and '.join(modality(k).plural for k in sorted(kinds))} cannot be read"
            " together."
        )
    common_kind = modality(kinds.pop())
    inputs = FileInputs("", names, common_kind.read)
    return Split(inputs, NO_LABELS, names, (), common_kind.name, ignored=ignored)


def _load(
    list_part: Callable[[str], Listing],
    split: str,
    origin: str,
    labelled: bool,
    tree: Nesting = None,
    requested: str | None = None,
) -> Split:
    """The files of one modality. Other files, files outside any class, and empty
    folders are left out and reported.
    """
    listing = list_part("")
    parts: tuple[str, ...] = ("train",)
    if labelled:
        part, parts = _split_folder(listing.path, listing.folders, split)
        listing = list_part(part) if part else listing
        if split == "test" and tree is None:
            tree = [
                str(label)
                for label in _load(list_part, "train", origin, labelled).classes
            ]
        if not listing.folders - {UNLABELLED}:
            raise FileError(
                f"{listing.path} has no sub-folders; make one per class and put its"
                " inputs there."
            )
    files = [
        name
        for name in listing.files
        if not (labelled and name.startswith(f"{UNLABELLED}/"))
    ]
    in_classes = [name for name in files if "/" in name or not labelled]
    kind = _modality(listing.path, in_classes, requested)
    names = tuple(name for name in in_classes if of_file(name) == kind)
    labels, omissions = folder_labels(names, tree) if labelled else ([], ())
    if stray := [
        name for name in files if labelled and "/" not in name and of_file(name) == kind
    ]:
        omissions += (
            (
                f"Ignored {kind.count(len(stray))} outside any class folder:"
                f" {first_names(stray, MAX_NAMES)}."
            ),
        )
    if labelled and (
        empty := sorted(
            listing.folders - {UNLABELLED} - {name.split("/", 1)[0] for name in names}
        )
    ):
        omissions += (
            (
                f"Ignored {count(len(empty), 'folder')} without {kind.plural}:"
                f" {first_names(empty, MAX_NAMES)}."
            ),
        )
    return Split(
        listing.open(names, kind.read),
        np.array(labels) if labelled else NO_LABELS,
        names,
        tuple(dict.fromkeys(labels)),
        kind.name,
        folders=labelled,
        origin=origin,
        parts=parts,
        ignored=_count_suffixes(name for name in files if of_file(name) != kind),
        omissions=omissions,
    )


def _modality(
    folder: Path, names: Sequence[str], requested: str | None = None
) -> Modality:
    """The modality of the files: that of the highest rank, because many folders of
    images contain notes and tables.
    """
    counts = Counter(kind for name in names if (kind := of_file(name)) is not None)
    highest = max((kind.rank for kind in counts), default=0)
    kinds = [kind for kind in counts if kind.rank == highest]
    if requested is not None:
        kinds = [kind for kind in counts if kind.name == requested]
    if not kinds:
        present = sorted(_count_suffixes(names).items())[:6]
        it_has = ", ".join(
            f"{n:,} {suffix or 'without suffix'}" for suffix, n in present
        )
        suffixes = ", ".join(sorted(modality(requested or "image").suffixes()))
        missing = (
            f"{modality(requested).plural}, which"
            if requested
            else "images, sounds or texts; images"
        )
        raise FileError(
            f"{folder} has no {missing} end in"
            f" {suffixes}{'; it has ' * bool(present)}{it_has}."
        )
    if len(kinds) > 1:
        raise FileError(
            f"{folder} has {' and '.join(kind.count(counts[kind]) for kind in kinds)};"
            " keep one kind."
        )
    return kinds[0]


def _count_suffixes(names: Iterable[str]) -> Counter[str]:
    return Counter(os.path.splitext(name)[1].lower() for name in names)


def _split_folder(
    root: Path, folders: set[str], split: str
) -> tuple[str, tuple[str, ...]]:
    """The sub-folder with the classes of the split (empty for the folder itself), and
    the names of all splits.
    """
    tests = [name for name in TEST_FOLDERS if name in folders]
    if "train" in folders and (tests or folders - {UNLABELLED} == {"train"}):
        if split == "train" or tests:
            return "train" if split == "train" else tests[0], (
                SPLITS if tests else ("train",)
            )
    elif split == "train":
        return "", ("train",)
    raise FileError(
        f"{root} has no test split; put its classes below {root / 'train'} and"
        f" {root / 'test'}."
    )


def _entries(folder: Path | str) -> list[Any]:
    """The visible files and folders in a folder, by name."""
    with reporting("list", folder), os.scandir(folder) as entries:
        return sorted(
            (e for e in entries if not is_hidden(e.name)), key=lambda e: e.name
        )


def _files(folder: Path | str, *, follow_links: bool = False) -> Iterator[str]:
    """The files below a folder by their relative path; `follow_links` follows links to
    its sub-folders, not deeper.
    """
    for entry in _entries(folder):
        if not _is_folder(entry):
            yield entry.name
        elif follow_links or not entry.is_symlink():
            yield from (f"{entry.name}/{name}" for name in _files(entry.path))


def _is_folder(entry: Any) -> bool:
    """Whether an entry is a folder or a link to one; a link that leads in a circle is
    not.
    """
    return bool(
        entry.is_dir(follow_symlinks=False)
        or (entry.is_symlink() and os.path.isdir(entry))
    )


def folder_labels(
    names: Sequence[str], tree: Nesting = None
) -> tuple[list[str], tuple[str, ...]]:
    """The label of each file by its relative path, and sentences about how nested
    folders were read.

    A folder that holds files is a class, and so is everything below it. By default,
    sub-folders whose names have no letters belong to the folder above them, and folders
    of which none has two sub-folders are read as flat. `tree=True` reads all of these
    as classes, and `tree=False` makes each top folder one class. If `tree` holds the
    classes of a model, folders below one of them belong to it, folders below a node of
    its tree are new classes there, and the others are read as by default. If classes of
    the model have such names without letters, folders may too.
    """
    folders = [name.rpartition("/")[0] for name in names]
    with_files = set(folders)
    by_default = not isinstance(tree, bool)
    model_classes = set() if isinstance(tree, bool | None) else {*tree}
    # from the top
    paths = {
        folder: list(accumulate(folder.split("/"), "{}/{}".format))
        for folder in with_files
    }
    labels = {
        folder: next(above for above in path if above in with_files)
        for folder, path in paths.items()
    }
    if by_default and not any(
        _without_numbers(label) != label for label in model_classes
    ):
        labels = {folder: _without_numbers(label) for folder, label in labels.items()}
    children = Counter(
        label.rpartition("/")[0] for label in {*labels.values()} if "/" in label
    )
    if tree is False or (by_default and max(children.values(), default=0) < 2):
        top_nodes = {label.split("/", 1)[0] for label in model_classes if "/" in label}
        labels |= {
            folder: path[0]
            for folder, path in paths.items()
            if path[0] not in top_nodes
        }
    for folder, path in paths.items():
        if classes_above := [above for above in path if above in model_classes]:
            labels[folder] = classes_above[-1]
    return [labels[folder] for folder in folders], (
        _nesting_notices(labels, model_classes) if by_default else ()
    )


def _without_numbers(label: str) -> str:
    """The label without folders at its end whose names have no letters."""
    while "/" in label and NO_LETTERS.fullmatch(label.rpartition("/")[2]):
        label = label.rpartition("/")[0]
    return label


def _nesting_notices(
    labels: dict[str, str], model_classes: Collection[str]
) -> tuple[str, ...]:
    new = {
        folder: label for folder, label in labels.items() if label not in model_classes
    }
    notices = []
    if nested := sorted({label for label in new.values() if "/" in label}):
        reading = f"Nested folders are a tree of classes: {first_names(nested, 3)}"
        notices.append(
            f"{reading}; --flat (tree=False) makes each top folder one class."
        )
    if merged := sorted(folder for folder, label in new.items() if folder != label):
        reading = (
            f"Sub-folders such as {merged[0]} belong to their class {new[merged[0]]}"
        )
        notices.append(f"{reading}; --tree (tree=True) makes each a class.")
    return tuple(notices)
