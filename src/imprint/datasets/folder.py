"""Folders of pictures: one sub-folder per class, decoded when asked for."""

import hashlib
import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from imprint.core.atomic import atomic_write
from imprint.core.digest import digest
from imprint.core.errors import FileError
from imprint.core.home import home
from imprint.core.types import Array
from imprint.datasets.pictures import read_picture, suffixes
from imprint.datasets.split import Split, UnreadableInput

TEST_NAMES = ("test", "val", "validation")
IGNORED = frozenset({"thumbs.db", "desktop.ini", "__macosx"})
BLOCK = 1 << 20  # bytes that are hashed at once
SETTLED = 2.0  # seconds; a file changed more recently may change again within the clock's grain


class FolderInputs:
    """Pictures in files, opened one at a time: memory does not grow with their number."""

    def __init__(self, root: Path, names: Sequence[str]):
        self.root, self.names = root, names

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, i: int) -> Array:
        name = self.names[i]
        try:
            return read_picture(self._path(name))
        except UnreadableInput as e:
            raise UnreadableInput(name, e.reason) from None

    def _path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def fingerprint(self) -> str:
        """The digest of the files' bytes in order.

        It is remembered under the files' names, sizes and times, so an unchanged folder is not read again.
        """
        note = home() / "fingerprints" / digest(self._marks())
        try:
            known = note.read_text("ascii")
        except (OSError, UnicodeDecodeError):
            known = ""
        if re.fullmatch("[0-9a-f]{64}", known):
            return known
        started = time.time()
        found = digest(_file_digest(self._path(name)) for name in self.names)
        if self._last_change() < started - SETTLED:
            _remember(note, found)
        return found

    def _marks(self) -> Iterator[str | bytes]:
        yield os.fsencode(os.path.realpath(self.root))
        for name, s in self._stats():
            yield name.encode("utf-8", "surrogateescape")
            yield f"{s.st_size} {s.st_mtime_ns} {s.st_ctime_ns} {s.st_ino}" if s else "missing"

    def _last_change(self) -> float:
        return max((max(s.st_mtime, s.st_ctime) for _, s in self._stats() if s), default=0.0)

    def _stats(self) -> Iterator[tuple[str, os.stat_result | None]]:
        for name in self.names:
            try:
                yield name, os.stat(self._path(name))
            except OSError:
                yield name, None


def _file_digest(path: str) -> str:
    """The SHA-256 of a file's bytes; what cannot be opened counts as such."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return "not a file"
        with open(path, "rb", buffering=0) as f:
            found = hashlib.sha256()
            while block := f.read(BLOCK):
                found.update(block)
            return found.hexdigest()
    except OSError:
        return "unreadable"


def _remember(note: Path, found: str) -> None:
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(note) as f:
            f.write(found.encode())
    except OSError:  # a read-only home costs time, not correctness
        return


def load_folder(root: Path, split: str) -> Split:
    """One split of a folder of pictures.

    Either the folder has `train` and `test` (or `val`) below it, with one sub-folder per class in each, or it has
    one sub-folder per class itself and is all `train`.
    """
    folder = _split_folder(root, split)
    inside = _entries(folder)
    loose = [e.name for e in inside if not _is_folder(e) and _is_picture(e.name)]
    if loose:
        raise FileError(
            f"{folder} has {len(loose)} picture(s) outside any class, such as {loose[0]}; "
            "put every picture into the sub-folder of its class."
        )
    names: list[str] = []
    labels: list[str] = []
    for entry in inside:
        if _is_folder(entry):
            found = [f"{entry.name}/{name}" for name in _pictures(entry.path)]
            if not found:
                raise FileError(f"{entry.path} has no pictures; they end in {', '.join(sorted(suffixes()))}.")
            names += found
            labels += [entry.name] * len(found)
    if not names:
        raise FileError(f"{folder} has no sub-folders; make one per class and put its pictures there.")
    files = tuple(names)
    return Split(FolderInputs(folder, files), np.array(labels), files, tuple(dict.fromkeys(labels)), "image")


def _split_folder(root: Path, split: str) -> Path:
    below = {e.name for e in _entries(root) if _is_folder(e)}
    tests = [name for name in TEST_NAMES if name in below]
    if "train" in below and (tests or below == {"train"}):
        chosen = "train" if split == "train" else next(iter(tests), "test")
        if chosen in below:
            return root / chosen
    elif split == "train":
        return root
    raise FileError(f"{root} has no test split; put its classes below {root / 'train'} and {root / 'test'}.")


def _entries(folder: Path | str) -> list[Any]:
    """What a person put into a folder, by name; hidden files and those of file managers are left out."""
    try:
        with os.scandir(folder) as found:
            kept = [e for e in found if not e.name.startswith(".") and e.name.lower() not in IGNORED]
    except OSError as e:
        raise FileError(f"Cannot list {folder}: {e.strerror}.") from None
    return sorted(kept, key=lambda e: e.name)


def _pictures(folder: str) -> Iterator[str]:
    """The pictures below a folder by their relative path; links to files are followed, links to folders not."""
    for entry in _entries(folder):
        if entry.is_dir(follow_symlinks=False):
            yield from (f"{entry.name}/{name}" for name in _pictures(entry.path))
        elif _is_picture(entry.name) and not _is_folder(entry):
            yield entry.name


def _is_picture(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in suffixes()


def _is_folder(entry: Any) -> bool:
    try:
        return bool(entry.is_dir())
    except OSError:  # a link that leads round in a circle
        return False
