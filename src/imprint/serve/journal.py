"""Entries on disk, one line each: an entry counts once its line has reached the disk, whole."""

import json
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from imprint.core.errors import FileError

FORMAT = {"journal": "imprint-serve", "version": 1}
"""The first line of every journal."""


class Line(NamedTuple):
    """One line as it stands in the file."""

    entry: Any
    mark: int  # checksum of this entry and, through the mark before, of all entries up to it
    end: int  # where the line ends


class Journal:
    """A file of JSON entries that only grows.

    A line is `MARK ENTRY`. The mark is the CRC-32 of the entry, started from the mark of the line before, so that a
    line that is altered, lost, repeated or out of order is noticed. A last line without its end was never acknowledged,
    and is cut off; any other damage is refused.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for entries in ([{"do": "create", "label": "cat"}], []):
    ...         journal = Journal(Path(folder) / "journal")
    ...         journal.append(entries)
    ...         journal.close()
    ...     journal.entries
    [{'do': 'create', 'label': 'cat'}]
    """

    def __init__(self, path: Path):
        self.path = path
        try:
            path.touch()
            lines = _lines(path.read_bytes(), path)
            self._file = open(path, "r+b", buffering=0)  # noqa: SIM115 - held until `close`
            self._end, self._mark = (lines[-1].end, lines[-1].mark) if lines else (0, 0)
            self._file.truncate(self._end)
            self._file.seek(self._end)
        except OSError as e:
            raise e if isinstance(e, FileError) else _failure(path, e) from None
        if not lines:
            self.append([FORMAT])
        self.entries = [line.entry for line in lines[1:]]

    def append(self, entries: Sequence[dict[str, Any]]) -> None:
        """Write entries; when this returns they are on the disk, and if it raises none of them count."""
        raw, mark = bytearray(), self._mark
        for entry in entries:
            text = json.dumps(entry, sort_keys=True).encode()
            mark = zlib.crc32(text, mark)
            raw += b"%08x %s\n" % (mark, text)
        try:
            self._write(bytes(raw))
        except OSError as e:
            raise _failure(self.path, e) from None
        self._end, self._mark = self._end + len(raw), mark

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _write(self, raw: bytes) -> None:
        view = memoryview(raw)
        try:
            while view:
                view = view[self._file.write(view) :]
            os.fsync(self._file.fileno())
        except OSError:
            self._file.truncate(self._end)
            self._file.seek(self._end)
            raise


def _lines(raw: bytes, path: Path) -> list[Line]:
    """The whole lines of a journal; a damaged one is refused."""
    found: list[Line] = []
    mark = end = 0
    *lines, rest = raw.split(b"\n")
    for text in lines:
        if not _is_sound(text, mark):
            raise _damaged(path, len(found) + 1, end)
        stated, _, entry = text.partition(b" ")
        mark, end = int(stated, 16), end + len(text) + 1
        found.append(Line(json.loads(entry), mark, end))
    if _is_sound(rest[:-1], mark):  # a line that was cut short is no longer than its text: this end was another byte
        raise _damaged(path, len(found) + 1, end)
    if found and found[0].entry != FORMAT:
        raise FileError(f"{path}: this journal has another format; use the imprint that wrote it.")
    return found


def _is_sound(text: bytes, mark: int) -> bool:
    """Whether a line, its end apart, states the checksum of its entry after the mark of the line before."""
    stated, _, entry = text.partition(b" ")
    return stated == b"%08x" % zlib.crc32(entry, mark)


def _damaged(path: Path, number: int, start: int) -> FileError:
    return FileError(
        f"{path}: line {number} is damaged, so that what follows cannot be trusted; put back a copy of the file, "
        f"or cut it after byte {start:,} to lose that line and all after it."
    )


def _failure(path: Path, error: OSError) -> FileError:
    return FileError(f"Cannot write {path}: {error.strerror or error}.")
