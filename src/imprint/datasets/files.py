"""Inputs in separate files, opened one at a time, so that memory does not grow with their number."""

import hashlib
import os
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from imprint.core.digest import digest
from imprint.core.errors import FileError
from imprint.core.files.atomic import home, make_folder
from imprint.core.files.notes import read_note, write_note
from imprint.datasets.split import UnreadableInput
from imprint.modalities import read_file
from imprint.modalities._base import LARGEST_FILE

SETTLED = 2.0  # seconds; a later change may have the same time stamp as an earlier one
SYSTEM_FILES = frozenset({"thumbs.db", "desktop.ini", "__macosx"})
UNREADABLE = "unreadable"  # instead of a digest
Decode = Callable[[bytes], Any]
ZIP_DAMAGE = (OSError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, KeyError)
"""What zipfile raises on damaged or encrypted archives."""


class FileInputs:
    """The inputs in files `root/name`, decoded on access. A slice of them is `FileInputs` too.

    After the fingerprint was computed, every file must still have the same content, on every machine.
    """

    def __init__(self, root: str | Path, names: Sequence[str], decode: Decode, digests: Sequence[str] = ()):
        self.root, self.names, self._decode, self._digests = os.fspath(root), names, decode, digests

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, i: int | slice) -> Any:
        if isinstance(i, slice):
            return self._part(self.names[i], self._digests[i])
        return self.decode(i, self.raw(i))

    def _part(self, names: Sequence[str], digests: Sequence[str]) -> "FileInputs":
        return FileInputs(os.path.abspath(self.root), names, self._decode, digests)

    def part(self, index: Sequence[int]) -> "FileInputs":
        """Some of the inputs."""
        return self._part([self.names[i] for i in index], [self._digests[i] for i in index] if self._digests else ())

    def equal(self) -> list[list[int]]:
        """The inputs in groups of equal bytes; a file that cannot be read equals no other."""
        self.fingerprint()
        groups: dict[str, list[int]] = {}
        for i, digest_ in enumerate(self._digests):
            groups.setdefault(f"{digest_} {i}" if digest_ == UNREADABLE else digest_, []).append(i)
        return list(groups.values())

    def raw(self, i: int) -> bytes:
        """The bytes of a file."""
        name, known = self.names[i], self._digests[i] if self._digests else None
        path = self._path(name)
        try:
            content = self._content(name)
        except UnreadableInput as e:
            raise UnreadableInput(name, e.reason) if known in (None, UNREADABLE) else _changed(path) from None
        if known is not None and hashlib.sha256(content).hexdigest() != known:
            raise _changed(path)
        return content

    def decode(self, i: int, raw: bytes) -> Any:
        """The input that the bytes of file `i` hold."""
        try:
            return self._decode(raw)
        except UnreadableInput as e:
            raise UnreadableInput(self.names[i], e.reason) from None

    def _path(self, name: str) -> str:
        return os.path.join(self.root, name)

    def _content(self, name: str) -> bytes:
        return read_file(self._path(name))

    def fingerprint(self) -> str:
        """The digest of the files' bytes in order.

        The digests are cached by names, sizes and times, so an unchanged folder is not read again.
        """
        note = home() / "fingerprints" / digest(self._marks())
        cached, started = _recall(note), time.time()
        self._digests = cached or [self._digest(name) for name in self.names]
        last_change = max((max(s.st_mtime, s.st_ctime) for s in self._stats() if s), default=0.0)
        if not cached and last_change < started - SETTLED:
            with suppress(OSError):  # a read-only home costs time, not correctness
                write_note(make_folder(note.parent) / note.name, {"digests": self._digests})
        return digest(self._digests)

    def _digest(self, name: str) -> str:
        """The SHA-256 of a file's bytes, or `UNREADABLE`."""
        try:
            return hashlib.sha256(self._content(name)).hexdigest()
        except UnreadableInput:
            return UNREADABLE

    def _marks(self) -> Iterator[str | bytes]:
        """What changes when a file is renamed or written to."""
        yield os.fsencode(os.path.realpath(self.root))
        for name, s in zip(self.names, self._stats()):
            yield name.encode("utf-8", "surrogateescape")
            yield f"{s.st_size} {s.st_mtime_ns} {s.st_ctime_ns} {s.st_ino}" if s else "missing"

    def _stats(self) -> Iterator[os.stat_result | None]:
        for name in self.names:
            try:
                yield os.stat(self._path(name))
            except OSError:
                yield None


class ZipInputs(FileInputs):
    """The inputs in the members of a `.zip` file, decoded on access."""

    def __init__(self, path: str | Path, members: Mapping[str, str], *files: Any):
        super().__init__(path, *files)
        self._members = members

    @staticmethod
    def members(path: Path) -> dict[str, str]:
        """The visible files of a `.zip` by relative path; a name that leads out of the archive is refused."""
        with _opened(path) as archive:
            names = [info.filename for info in archive.infolist() if not info.is_dir()]
        shown = {name: name.replace("\\", "/") for name in names}
        if outside := [name for name, path in shown.items() if path.startswith("/") or ".." in path.split("/")]:
            raise FileError(f"{path}: {outside[0]!r} is not a relative path inside the archive.")
        return {path: name for name, path in shown.items() if not any(map(is_hidden, path.split("/")))}

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key != "_archive"}

    def _part(self, names: Sequence[str], digests: Sequence[str]) -> "ZipInputs":
        return ZipInputs(os.path.abspath(self.root), self._members, names, self._decode, digests)

    @cached_property
    def _archive(self) -> zipfile.ZipFile:
        return _opened(Path(self.root))

    def _content(self, name: str) -> bytes:
        try:
            info = self._archive.getinfo(self._members[name])
            if info.file_size > LARGEST_FILE:
                raise UnreadableInput(name, f"{info.file_size:,} bytes; the limit is {LARGEST_FILE:,}")
            with self._archive.open(info) as member:
                return member.read(LARGEST_FILE + 1)
        except ZIP_DAMAGE as e:
            raise UnreadableInput(name, str(e) or "the archive is damaged") from None

    def _marks(self) -> Iterator[str | bytes]:
        """The files of two splits may have the same names, so their paths in the archive count too."""
        return chain(super()._marks(), (self._members[name].encode("utf-8", "surrogateescape") for name in self.names))

    def _stats(self) -> Iterator[os.stat_result | None]:
        return repeat(os.stat(self.root), len(self.names))


def is_hidden(name: str) -> bool:
    """Whether a file or folder is hidden, or was made by a file manager."""
    return name.startswith(".") or name.lower() in SYSTEM_FILES


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except ZIP_DAMAGE as e:
        raise FileError(f"Cannot read {path}: {getattr(e, 'strerror', None) or e}.") from None


def _changed(path: str) -> FileError:
    return FileError(
        f"{path} is not the file whose fingerprint was taken: it has changed, or is another on this machine."
    )


def _recall(note: Path) -> list[str]:
    """The digests in a note, or an empty list if it is missing or damaged."""
    try:
        return list(read_note(note, {"digests": list})["digests"])
    except OSError:
        return []
