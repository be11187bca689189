"""Inputs in separate files, opened one at a time, so that memory does not grow with
their number.
"""

import hashlib
import os
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from functools import cached_property
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from imprint.core.arrays import digest
from imprint.core.errors import (
    FileError,
    OutOfMemoryError,
    UnreadableInput,
    reporting_damage,
)
from imprint.core.files.atomic import home, make_folder, read_checked, write_checked
from imprint.core.files.unpacking import excess, unpacked_limit
from imprint.modalities import read_file
from imprint.modalities._base import MAX_FILE_BYTES

CLOCK_STEP = 2.0  # seconds after which a new change has a new time stamp
SYSTEM_FILES = frozenset({"thumbs.db", "desktop.ini", "__macosx"})
UNREADABLE = "unreadable"  # instead of a digest
Decode = Callable[[bytes], Any]


class FileInputs:
    """The inputs in files `root/name`, decoded on access. A slice of them is
    `FileInputs` too.

    Once their digests are computed, a file whose content differs is refused, on every
    machine.
    """

    def __init__(self, root: str | Path, names: Sequence[str], decode: Decode):
        self.root, self.names, self._decode = os.fspath(root), names, decode
        self._digests: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, i: int | slice) -> Any:
        return (
            self.part(range(len(self))[i])
            if isinstance(i, slice)
            else self.decode(i, self.raw(i))
        )

    def part(self, index: Iterable[int]) -> "FileInputs":
        """The inputs at the given indices."""
        part, index = copy(self), list(index)
        part.root, part.names = (
            os.path.abspath(self.root),
            [self.names[i] for i in index],
        )
        part._digests = [self._digests[i] for i in index] if self._digests else ()
        return part

    def raw(self, i: int) -> bytes:
        """The bytes of a file."""
        name = self.names[i]
        expected = self._digests[i] if self._digests else None
        reason, content = "", b""
        try:
            content = self._content(name)
        except UnreadableInput as e:
            reason = e.reason
        if expected not in (
            None,
            UNREADABLE if reason else hashlib.sha256(content).hexdigest(),
        ):
            path = os.path.join(self.root, name)
            raise FileError(
                f"{path} has changed since its fingerprint was computed, or differs on"
                " this machine."
            )
        if reason:
            raise UnreadableInput(name, reason)
        return content

    def decode(self, i: int, raw: bytes) -> Any:
        """The input that the bytes of file `i` hold."""
        try:
            return self._decode(raw)
        except UnreadableInput as e:
            raise UnreadableInput(self.names[i], e.reason) from None
        except MemoryError as e:
            reason = str(e) or "There is not enough memory."
            raise OutOfMemoryError(f"{self.names[i]}: {reason}") from None

    def fingerprint(self) -> str:
        """The digest of the bytes of all files, in order."""
        return digest(self.digests())

    def digests(self) -> Sequence[str]:
        """The SHA-256 of each file, or `UNREADABLE`.

        They are cached by the names, sizes and times of the files: an unchanged folder
        is not read again.
        """
        started = time.time()
        note = home() / "fingerprints" / digest(self._file_states())
        try:
            self._digests = read_checked(note, {"digests": list})["digests"]
        except OSError:  # it is missing or damaged
            self._digests = [self._digest(name) for name in self.names]
            last_change = max(
                (max(s.st_mtime, s.st_ctime) for s in self._stats() if s), default=0.0
            )
            if last_change < started - CLOCK_STEP:
                with suppress(OSError):  # a read-only home costs time, not correctness
                    write_checked(
                        make_folder(note.parent) / note.name, {"digests": self._digests}
                    )
        return self._digests

    def _digest(self, name: str) -> str:
        try:
            return hashlib.sha256(self._content(name)).hexdigest()
        except UnreadableInput:
            return UNREADABLE

    def _content(self, name: str) -> bytes:
        return read_file(os.path.join(self.root, name))

    def _file_states(self) -> Iterator[str | bytes]:
        """Values that change when a file is renamed or written to."""
        yield os.fsencode(os.path.realpath(self.root))
        for name, s in zip(self.names, self._stats()):
            yield name.encode("utf-8", "surrogateescape")
            yield (
                f"{s.st_size} {s.st_mtime_ns} {s.st_ctime_ns} {s.st_ino}"
                if s
                else "missing"
            )

    def _stats(self) -> Iterator[os.stat_result | None]:
        for name in self.names:
            try:
                yield os.stat(os.path.join(self.root, name))
            except OSError:
                yield None


class ZipInputs(FileInputs):
    """The inputs in the files `prefix + name` of a `.zip` file, decoded on access."""

    def __init__(self, path: str | Path, prefix: str, *files: Any):
        super().__init__(path, *files)
        self._prefix = prefix

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key != "_archive"}

    @cached_property
    def _archive(self) -> tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]:
        return open_zip(self.root)

    def _content(self, name: str) -> bytes:
        archive, members = self._archive
        try:
            info = members[self._prefix + name]
            limit = min(MAX_FILE_BYTES, unpacked_limit(info.compress_size))
            if info.file_size > limit:
                raise UnreadableInput(name, f"it {excess(limit)}; unpack the archive")
            with archive.open(info) as member:
                return member.read(limit + 1)
        except (UnreadableInput, MemoryError):
            raise
        except Exception as e:  # on damage, decompressors raise exceptions of any type
            raise UnreadableInput(name, str(e) or "the archive is damaged") from None

    def _file_states(self) -> Iterator[str | bytes]:
        return chain([self._prefix], super()._file_states())

    def _stats(self) -> Iterator[os.stat_result | None]:
        return repeat(os.stat(self.root), len(self.names))


def open_zip(path: str | Path) -> tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]:
    """A `.zip` file and its visible files by relative path; a name that leads out of
    the archive is refused.
    """
    with reporting_damage(path, ".zip file"):
        archive = zipfile.ZipFile(path)
    members = {
        info.filename.replace("\\", "/"): info
        for info in archive.infolist()
        if not info.is_dir()
    }
    if outside := [
        name for name in members if name.startswith("/") or ".." in name.split("/")
    ]:
        raise FileError(
            f"{path}: {outside[0]!r} is not a relative path inside the archive."
        )
    return archive, {
        name: info
        for name, info in members.items()
        if not any(map(is_hidden, name.split("/")))
    }


def is_hidden(name: str) -> bool:
    """Whether a file or folder is hidden, or was created by a file manager."""
    return name.startswith(".") or name.lower() in SYSTEM_FILES
