"""Inputs that lie in files of their own, opened one at a time: memory does not grow with their number."""

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from imprint.core.atomic import atomic_write
from imprint.core.digest import digest
from imprint.core.home import home
from imprint.datasets.split import UnreadableInput

BLOCK = 1 << 20  # bytes that are hashed at once
LARGEST = 1 << 30  # bytes of one file
SETTLED = 2.0  # seconds; a file changed more recently may change again within the clock's grain
Decode = Callable[[bytes], Any]


class FileInputs:
    """The inputs in files `root/name`, decoded when asked for."""

    def __init__(self, root: str | Path, names: Sequence[str], decode: Decode):
        self.root, self.names, self._decode = os.fspath(root), names, decode

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, i: int) -> Any:
        return self.decode(i, self.raw(i))

    def raw(self, i: int) -> bytes:
        """The bytes of a file, as they are."""
        try:
            path = self._path(self.names[i])
            facts = os.stat(path)
            if not stat.S_ISREG(facts.st_mode):  # a pipe would wait for ever
                raise UnreadableInput(self.names[i], "not a file")
            if facts.st_size > LARGEST:
                raise UnreadableInput(self.names[i], f"{facts.st_size:,} bytes; the limit is {LARGEST:,}")
            with open(path, "rb", buffering=0) as f:
                return f.read()
        except OSError as e:
            raise UnreadableInput(self.names[i], e.strerror or str(e)) from None

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

        It is remembered under the files' names, sizes and times, so an unchanged folder is not read again.
        """
        note = home() / "fingerprints" / digest(self._marks())
        if known := _recall(note):
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
            f.write(f"{found} {digest([note.name, found])}".encode())
    except OSError:  # a read-only home costs time, not correctness
        return


def _recall(note: Path) -> str | None:
    """What a note says, if it is whole."""
    try:
        found, _, seal = note.read_text("ascii").partition(" ")
    except (OSError, UnicodeDecodeError):
        return None
    return found if seal == digest([note.name, found]) else None
