"""Folders of pictures or of sounds: one sub-folder per class, decoded when asked for."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from imprint.core.errors import FileError
from imprint.core.types import Array
from imprint.datasets import sounds
from imprint.datasets.files import FileInputs
from imprint.datasets.split import NO_LABELS, Modality, Split

TEST_NAMES = ("test", "val", "validation")
UNLABELLED = "unlabelled"
"""The sub-folder that is not a class but holds inputs to label; see `imprint suggest`."""
IGNORED = frozenset({"thumbs.db", "desktop.ini", "__macosx"})


def load_folder(root: Path, split: str, *, labelled: bool = True) -> Split:
    """One split of a folder of pictures, or of sounds.

    Either the folder has `train` and `test` (or `val`) below it, with one sub-folder per class in each, or it has
    one sub-folder per class itself and is all `train`. A sub-folder `unlabelled` is not a class. Without labels, it is
    everything below the folder.
    """
    if not labelled:
        return _of_files(root, list(_files(root)), origin=root.name)
    folder, parts = _split_folder(root, split)
    classes = [e for e in _entries(folder) if _is_folder(e) and e.name != UNLABELLED]
    found = {e.name: [f"{e.name}/{name}" for name in _files(e.path)] for e in classes}
    loose = [e.name for e in _entries(folder) if not _is_folder(e)]
    if outside := [name for name in loose if _kind(name)]:
        raise FileError(
            f"{folder} has {len(outside)} {_noun(_kind(outside[0]))}(s) outside any class, such as {outside[0]}; "
            f"put every {_noun(_kind(outside[0]))} into the sub-folder of its class."
        )
    if not found:
        raise FileError(f"{folder} has no sub-folders; make one per class and put its pictures there.")
    for label, names in found.items():
        if not any(map(_kind, names)):
            raise _nothing_in(folder / label, names)
    names = [name for inside in found.values() for name in inside]
    labels = [label for label, inside in found.items() for name in inside if _kind(name)]
    return _of_files(folder, names + loose, np.array(labels), origin=root.resolve().name, parts=parts)


def load_files(paths: Iterable[str | os.PathLike[str]]) -> Split:
    """Pictures or sounds given one by one, without labels; a folder stands for all below it."""
    names: list[str] = []
    ignored: Counter[str] = Counter()
    for given in paths:
        place = Path(given).expanduser()
        if place.is_dir():
            inside = load_folder(place, "train", labelled=False)
            names += [os.path.join(place, name) for name in inside.names]
            ignored.update(inside.ignored)
        elif not os.path.lexists(place):
            raise FileError(f"There is no file or folder {os.fspath(given)}.")
        else:
            names.append(str(place))
    kinds: set[Modality] = {"sound" if _ending(name) in sounds.SUFFIXES else "image" for name in names}
    if len(kinds) != 1:
        raise FileError("Pictures and sounds together cannot be read." if kinds else "No files are given.")
    return _split_of("", names, NO_LABELS, kinds.pop(), ignored)


def _of_files(
    folder: Path, names: list[str], labels: Any = NO_LABELS, *, origin: str, parts: tuple[str, ...] = ("train",)
) -> Split:
    """A split of those of the files that can be read; the others are counted by their ending."""
    kept = [name for name in names if _kind(name)]
    kinds = Counter(map(_kind, kept))
    if not kept:
        raise _nothing_in(folder, names)
    if len(kinds) > 1:
        counts = " and ".join(f"{n:,} {_noun(kind)}(s)" for kind, n in kinds.items())
        raise FileError(f"{folder} has {counts}; keep one kind.")
    return _split_of(folder, kept, labels, _kind(kept[0]) or "image", _endings(names), origin=origin, parts=parts)


def _split_of(
    root: Path | str, names: Sequence[str], labels: Any, kind: Modality, ignored: dict[str, int], **facts: Any
) -> Split:
    decode = sounds.read_sound if kind == "sound" else _read_picture
    inputs = FileInputs(root, tuple(names), decode)
    classes = tuple(dict.fromkeys(labels.tolist()))
    return Split(inputs, labels, inputs.names, classes, kind, ignored=dict(ignored), **facts)


def _read_picture(raw: bytes) -> Array:
    """Pillow is imported for the first picture that is decoded: those known by their bytes need none."""
    from imprint.datasets.pictures import read_picture

    return read_picture(raw)


def _suffixes() -> frozenset[str]:
    from imprint.datasets.pictures import suffixes

    return suffixes()


def _nothing_in(folder: Path, names: Sequence[str]) -> FileError:
    others = ", ".join(f"{n:,} {ending or 'without ending'}" for ending, n in sorted(_endings(names).items())[:6])
    it_has = f"; it has {others}" if others else ""
    return FileError(f"{folder} has no pictures; they end in {', '.join(sorted(_suffixes()))}{it_has}.")


def _endings(names: Iterable[str]) -> dict[str, int]:
    """How many files are of no kind that is read, by their ending."""
    return dict(Counter(_ending(name) for name in names if not _kind(name)))


def _ending(name: str) -> str:
    return os.path.splitext(name)[1].lower()


def _kind(name: str) -> Modality | None:
    return "sound" if _ending(name) in sounds.SUFFIXES else "image" if _ending(name) in _suffixes() else None


def _noun(kind: Modality | None) -> str:
    return "sound" if kind == "sound" else "picture"


def _split_folder(root: Path, split: str) -> tuple[Path, tuple[str, ...]]:
    """The folder that holds the classes of one split, and the splits there are."""
    below = {e.name for e in _entries(root) if _is_folder(e)} - {UNLABELLED}
    tests = [name for name in TEST_NAMES if name in below]
    if "train" in below and (tests or below == {"train"}):
        chosen = "train" if split == "train" else next(iter(tests), "test")
        if chosen in below:
            return root / chosen, ("train", "test") if tests else ("train",)
    elif split == "train":
        return root, ("train",)
    raise FileError(f"{root} has no test split; put its classes below {root / 'train'} and {root / 'test'}.")


def _entries(folder: Path | str) -> list[Any]:
    """What a person put into a folder, by name; hidden files and those of file managers are left out."""
    try:
        with os.scandir(folder) as found:
            kept = [e for e in found if not e.name.startswith(".") and e.name.lower() not in IGNORED]
    except OSError as e:
        raise FileError(f"Cannot list {folder}: {e.strerror}.") from None
    return sorted(kept, key=lambda e: e.name)


def _files(folder: Path | str) -> Iterator[str]:
    """The files below a folder by their relative path; links to files are followed, links to folders not."""
    for entry in _entries(folder):
        if entry.is_dir(follow_symlinks=False):
            yield from (f"{entry.name}/{name}" for name in _files(entry.path))
        elif not _is_folder(entry):
            yield entry.name


def _is_folder(entry: Any) -> bool:
    try:
        return bool(entry.is_dir())
    except OSError:  # a link that leads round in a circle
        return False
