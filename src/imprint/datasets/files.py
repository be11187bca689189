"""Inputs that lie in files of their own, opened one at a time: memory does not grow with their number."""

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, overload

from imprint.core.digest import digest
from imprint.core.errors import FileError
from imprint.core.files.atomic import atomic_write
from imprint.core.files.home import home
from imprint.datasets.split import UnreadableInput

BLOCK = 1 << 20  # bytes that are hashed at once
LARGEST = 1 << 30  # bytes of one file
SETTLED = 2.0  # seconds; a file changed more recently may change again within the clock's grain
NO_FILE, UNREADABLE = "not a file", "unreadable"  # in the place of the digest of what has none
Decode = Callable[[bytes], Any]


class FileInputs:
    """The inputs in files `root/name`, decoded when asked for. A slice of them is `FileInputs` too.

    Once the fingerprint has been taken, every file must be what it was then, on whatever machine it is read.
    """

    def __init__(self, root: str | Path, names: Sequence[str], decode: Decode, digests: Sequence[str] = ()):
        self.root, self.names, self._decode, self._digests = os.fspath(root), names, decode, digests

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, i: int) -> Any: ...
    @overload
    def __getitem__(self, i: slice) -> "FileInputs": ...
    def __getitem__(self, i: int | slice) -> Any:
        if isinstance(i, slice):
            return FileInputs(os.path.abspath(self.root), self.names[i], self._decode, self._digests[i])
        return self.decode(i, self.raw(i))

    def raw(self, i: int) -> bytes:
        """The bytes of a file, as they are."""
        name, known = self.names[i], self._digests[i] if self._digests else None
        path = self._path(name)
        try:
            facts = os.stat(path)
            if not stat.S_ISREG(facts.st_mode):  # a pipe would wait for ever
                raise UnreadableInput(name, "not a file") if known in (None, NO_FILE) else _changed(path)
            if facts.st_size > LARGEST:
                raise UnreadableInput(name, f"{facts.st_size:,} bytes; the limit is {LARGEST:,}")
            with open(path, "rb", buffering=0) as f:
                found = f.read()
        except OSError as e:
            raise (
                UnreadableInput(name, e.strerror or str(e)) if known in (None, UNREADABLE) else _changed(path)
            ) from None
        if known is not None and hashlib.sha256(found).hexdigest() != known:
            raise _changed(path)
        return found

    def decode(self, i: int, raw: bytes) -> Any:
        """The input that the bytes of file `i` hold."""
        try:
            return self._decode(raw)
        except UnreadableInput as e:
            raise UnreadableInput(self.names[i], e.reason) from None

    def _path(self, name: str) -> str:
        return os.path.join(self.root, name)

    def fingerprint(self) -> str:
        """The digest of the files' bytes in order.

        The files' digests are remembered under names, sizes and times, so an unchanged folder is not read again.
        """
        note = home() / "fingerprints" / digest(self._marks())
        known, started = _recall(note), time.time()
        self._digests = known or [_file_digest(self._path(name)) for name in self.names]
        if not known and self._last_change() < started - SETTLED:
            _remember(note, self._digests)
        return digest(self._digests)

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


def _changed(path: str) -> FileError:
    return FileError(
        f"{path} is not the file whose fingerprint was taken: it has changed, or is another on this machine."
    )


def _file_digest(path: str) -> str:
    """The SHA-256 of a file's bytes; what cannot be opened counts as such."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return NO_FILE
        with open(path, "rb", buffering=0) as f:
            found = hashlib.sha256()
            while block := f.read(BLOCK):
                found.update(block)
            return found.hexdigest()
    except OSError:
        return UNREADABLE


def _remember(note: Path, digests: Sequence[str]) -> None:
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(note) as f:
            f.write("\n".join([*digests, digest([note.name, *digests])]).encode())
    except OSError:  # a read-only home costs time, not correctness
        return


def _recall(note: Path) -> list[str]:
    """The digests in a note, if it is whole; else none."""
    try:
        *digests, seal = note.read_text("ascii").split("\n")
    except (OSError, UnicodeDecodeError):
        return []
    return digests if seal == digest([note.name, *digests]) else []
