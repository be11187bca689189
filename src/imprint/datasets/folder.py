"""Folders and `.zip` files with one sub-folder per class; each input is a file that is decoded when it is used."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from imprint.core.errors import FileError, reporting
from imprint.datasets.files import Decode, FileInputs, ZipInputs, is_hidden
from imprint.datasets.folder_labels import Nesting, folder_labels
from imprint.datasets.split import NO_LABELS, Split
from imprint.modalities import Modality, modality, of_file

TEST_NAMES = ("test", "val", "validation")
UNLABELLED = "unlabelled"
"""The sub-folder that is not a class but holds inputs to label; see `imprint suggest`."""
NAMED = 20  # files that one message names


class Listing(NamedTuple):
    """A folder, or one inside a `.zip`: its files by their relative paths, and its sub-folders, even empty ones."""

    where: Path
    files: Iterable[str]
    folders: set[str]
    open: Callable[[Sequence[str], Decode], FileInputs]


def load_folder(root: Path, split: str, *, labelled: bool = True, tree: Nesting = None) -> Split:
    """One split of a folder of pictures, sounds or texts.

    Either the folder has `train` and `test` (or `val`) below it, with one sub-folder per class in each, or it has
    one sub-folder per class itself and is all `train`. A sub-folder `unlabelled` is not a class. Without labels, the
    split is everything below the folder. `folder_labels` explains how nested folders are read; those of `test` are read
    as those of `train`.
    """

    def list_part(part: str) -> Listing:
        folder = root / part
        folders = {entry.name for entry in _entries(folder) if _is_folder(entry)}
        return Listing(folder, _files(folder, follow_links=labelled), folders, partial(FileInputs, folder))

    return _load(list_part, split, root.resolve().name, labelled, tree)


def load_zip(path: Path, split: str, *, labelled: bool = True, tree: Nesting = None) -> Split:
    """One split of a `.zip` of folders, laid out as `load_folder` expects; a single folder around them is skipped."""
    members = ZipInputs.members(path)
    while len({name.split("/", 1)[0] for name in members}) == 1 and all(name.count("/") > 1 for name in members):
        members = {name.split("/", 1)[1]: member for name, member in members.items()}

    def list_part(part: str) -> Listing:
        prefix = f"{part}/" if part else ""
        names = {n.removeprefix(prefix): member for n, member in sorted(members.items()) if n.startswith(prefix)}
        folders = {name.split("/", 1)[0] for name in names if "/" in name}
        return Listing(path, names, folders, partial(ZipInputs, path, names))

    return _load(list_part, split, path.name, labelled, tree)


def load_files(paths: Iterable[str | os.PathLike[str]], kind: str | None = None) -> Split:
    """Files given one by one, without labels; a folder stands for everything below it.

    They are read as the modality `kind`, by default that of their suffixes, or else as pictures. A missing file is
    refused; one that cannot be read raises `UnreadableInput` when it is used.
    """
    names: list[str] = []
    ignored: Counter[str] = Counter()
    for given in paths:
        path = Path(given).expanduser()
        if path.is_dir():
            files = list(_files(path))
            read = _modality(path, files, kind)
            names += [os.path.join(path, name) for name in files if of_file(name) == read]
            ignored.update(_suffixes(name for name in files if of_file(name) != read))
        elif not os.path.lexists(path):
            raise FileError(f"There is no file or folder {os.fspath(given)}.")
        else:
            names.append(str(path))
    kinds = {kind} if kind else {(of_file(name) or modality("image")).name for name in names}
    if not names:
        raise FileError("No files are given.")
    if len(kinds) != 1:
        raise FileError(f"{_listed([modality(k).plural for k in sorted(kinds)])} cannot be read together.")
    only = modality(kinds.pop())
    return Split(FileInputs("", names, only.read), NO_LABELS, names, (), only.name, ignored=dict(ignored))


def _load(list_part: Callable[[str], Listing], split: str, origin: str, labelled: bool, tree: Nesting = None) -> Split:
    """The files of one modality. Other files, files outside any class and empty folders are left out and reported."""
    listing = list_part("")
    parts: tuple[str, ...] = ("train",)
    if labelled:
        part, parts = _part_of(listing.where, listing.folders, split)
        listing = list_part(part) if part else listing
        if split == "test" and tree is None:
            tree = [str(label) for label in _load(list_part, "train", origin, labelled).classes]
    files = [name for name in listing.files if not (labelled and name.startswith(f"{UNLABELLED}/"))]
    folders = listing.folders - {UNLABELLED} if labelled else set()
    if labelled and not folders:
        raise FileError(f"{listing.where} has no sub-folders; make one per class and put its inputs there.")
    inside = [name for name in files if "/" in name or not labelled]
    kind = _modality(listing.where, inside)
    names = tuple(name for name in inside if of_file(name) == kind)
    labels, sentences = folder_labels(names, tree) if labelled else ([], ())
    stray = [name for name in files if labelled and "/" not in name and of_file(name) == kind]
    empty = sorted(folders - {name.split("/", 1)[0] for name in names})
    omissions = [
        *sentences,
        *_omitted(stray, f"{kind.count(len(stray))} outside any class folder"),
        *_omitted(empty, f"{len(empty):,} folder{'s' * (len(empty) != 1)} without {kind.plural}"),
    ]
    return Split(
        listing.open(names, kind.read),
        np.array(labels) if labelled else NO_LABELS,
        names,
        tuple(dict.fromkeys(labels)),
        kind.name,
        origin=origin,
        parts=parts,
        ignored=_suffixes([name for name in files if of_file(name) != kind]),
        omissions=tuple(omissions),
    )


def _modality(where: Path, names: Sequence[str], given: str | None = None) -> Modality:
    """What the files are. Texts count only if there is nothing else: many folders of pictures contain notes."""
    counts = Counter(kind for name in names if (kind := of_file(name)) is not None)
    kinds = [kind for kind in counts if not kind.typed] or list(counts)
    kinds = kinds if given is None else [kind for kind in counts if kind.name == given]
    if not kinds:
        others = ", ".join(f"{n:,} {suffix or 'without suffix'}" for suffix, n in sorted(_suffixes(names).items())[:6])
        suffixes = ", ".join(sorted(modality(given or "image").suffixes()))
        lacks = f"{modality(given).plural}, which" if given else "pictures, sounds or texts; pictures"
        raise FileError(f"{where} has no {lacks} end in {suffixes}{'; it has ' * bool(others)}{others}.")
    if len(kinds) > 1:
        raise FileError(f"{where} has {_listed([kind.count(counts[kind]) for kind in kinds])}; keep one kind.")
    return kinds[0]


def _omitted(names: Sequence[str], what: str) -> list[str]:
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return [f"Ignored {what}: {', '.join(names[:NAMED])}{more}."] if names else []


def _listed(phrases: Sequence[str]) -> str:
    return " and ".join([", ".join(phrases[:-1]), phrases[-1]] if len(phrases) > 1 else phrases)


def _suffixes(names: Iterable[str]) -> dict[str, int]:
    return dict(Counter(os.path.splitext(name)[1].lower() for name in names))


def _part_of(root: Path, below: set[str], split: str) -> tuple[str, tuple[str, ...]]:
    """The sub-folder that holds the classes of one split, if there is one, and the splits there are."""
    tests = [name for name in TEST_NAMES if name in below]
    if "train" in below and (tests or below - {UNLABELLED} == {"train"}):
        chosen = "train" if split == "train" else next(iter(tests), "test")
        if chosen in below:
            return chosen, ("train", "test") if tests else ("train",)
    elif split == "train":
        return "", ("train",)
    raise FileError(f"{root} has no test split; put its classes below {root / 'train'} and {root / 'test'}.")


def _entries(folder: Path | str) -> list[Any]:
    """The visible files and folders in a folder, by name."""
    with reporting("list", folder), os.scandir(folder) as entries:
        return sorted((e for e in entries if not is_hidden(e.name)), key=lambda e: e.name)


def _files(folder: Path | str, *, follow_links: bool = False) -> Iterator[str]:
    """The files below a folder by their relative path; `follow_links` follows links to its sub-folders, not deeper."""
    for entry in _entries(folder):
        if not _is_folder(entry):
            yield entry.name
        elif follow_links or not entry.is_symlink():
            yield from (f"{entry.name}/{name}" for name in _files(entry.path))


def _is_folder(entry: Any) -> bool:
    try:
        return bool(entry.is_dir())
    except OSError:  # a link that leads round in a circle
        return False
