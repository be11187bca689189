"""An extraction under way: rows go to one file, and a line in another commits each batch.

The order of the two writes makes a kill harmless: a batch without its line never happened. The line carries
the rows' checksum, which makes a power failure harmless too: what did not reach the disk fails its checksum
when the extraction goes on, and is computed again. So nothing has to wait for the disk between batches.
"""

import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from imprint.core.errors import FileError
from imprint.core.types import Array
from imprint.embeddings.types import Skipped

HEADER = 128  # bytes before the first row: the header of a .npy file, written last
ROWS, JOURNAL = "rows.npy", "journal"


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn a full disk or a forbidden folder into one sentence."""
    try:
        yield
    except FileError:
        raise
    except OSError as e:
        why = e.strerror or str(e)
        raise FileError(
            f"Cannot write {folder}: {why}; finished batches are kept and the same call goes on after them."
        ) from None


class Batch(NamedTuple):
    """One committed batch: inputs taken, rows given, the rows' checksum, what was skipped."""

    inputs: int
    rows: int
    crc: int
    skipped: list[Skipped]


class Journal:
    """The committed batches of one extraction; opening it takes up what an earlier process left."""

    def __init__(self, folder: Path, identity: dict[str, Any]):
        """`identity` says what is extracted, `width` among it; another identity in the folder is refused."""
        self.folder, self.width = folder, int(identity["width"])
        self.done = self.rows = 0
        self.skipped: list[Skipped] = []
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self._journal = _open(folder / JOURNAL)
            self._rows = _open(folder / ROWS)
            try:
                self._take_up(identity)
            except BaseException:
                self.close()
                raise

    def commit(self, inputs: int, rows: Array, skipped: list[Skipped]) -> None:
        """Add a batch: its rows first, then the line that makes them count."""
        raw = np.ascontiguousarray(rows, dtype="<f4").tobytes()
        batch = Batch(inputs, len(rows), zlib.crc32(raw), skipped)
        line = _line([*batch[:3], [astuple(s) for s in skipped]])
        with writing(self.folder):
            _write(self._rows, raw)
            _write(self._journal, line)
        self._count(batch)

    def close(self) -> None:
        """Let go of the files; everything committed stays."""
        self._rows.close()
        self._journal.close()

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _count(self, batch: Batch) -> None:
        self.done += batch.inputs
        self.rows += batch.rows
        self.skipped += batch.skipped

    def _take_up(self, identity: dict[str, Any]) -> None:
        lines = _lines(self._journal)
        found, end = next(lines, (None, 0))
        if found is not None and found != identity:
            raise FileError(f"{self.folder} holds part of another extraction: delete that folder and extract again.")
        self._rows.seek(HEADER)
        for fields, stop in lines:
            batch = Batch(fields[0], fields[1], fields[2], [Skipped(*s) for s in fields[3]])
            size = batch.rows * self.width * 4
            if zlib.crc32(raw := self._rows.read(size)) != batch.crc or len(raw) != size:
                break
            self._count(batch)
            end = stop
        self._cut(end)
        if found is None:
            _write(self._journal, _line(identity))

    def _cut(self, end: int) -> None:
        """Drop what is not committed: half a line, rows without a line, lines whose rows were lost."""
        self._journal.truncate(end)
        self._journal.seek(end)
        size = HEADER + self.rows * self.width * 4
        self._rows.truncate(size)
        self._rows.seek(size)


def _open(path: Path) -> IO[bytes]:
    path.touch()
    return open(path, "r+b", buffering=0)


def _write(f: IO[bytes], raw: bytes) -> None:
    view = memoryview(raw)
    while view:
        view = view[f.write(view) :]


def _line(value: Any) -> bytes:
    text = json.dumps(value, sort_keys=True).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _lines(journal: IO[bytes]) -> Iterator[tuple[Any, int]]:
    """The whole lines from the start, each with the place where it ends; stops at the first damaged one."""
    end = 0
    with open(journal.fileno(), "rb", closefd=False) as f:
        for line in f:
            crc, _, text = line.rstrip(b"\n").partition(b" ")
            if not line.endswith(b"\n") or crc != b"%08x" % zlib.crc32(text):
                return
            end += len(line)
            yield json.loads(text), end
