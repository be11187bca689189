"""An extraction in progress, and how it becomes a finished store.

Rows are appended to one file; then a line in the journal commits the batch with a checksum of its rows. A batch
without its line does not count, so a kill is harmless. Rows that did not reach the disk in a power failure fail their
checksum when the extraction resumes, and are computed again. So no batch has to wait for the disk.
"""

import io
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path
from typing import IO, Any

import numpy as np

from imprint.core import __version__
from imprint.core.errors import FileError
from imprint.core.files.atomic import atomic_write
from imprint.datasets import Split
from imprint.embeddings.pipeline import EmbeddedBatch, Skipped
from imprint.embeddings.store import HEADER, LABELS, MANIFEST, NAMES, ROWS, npy_header, write_manifest, write_names

JOURNAL = "journal"
FORMAT = 1


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


class ExtractionJournal:
    """The committed batches of one extraction; opening it resumes an earlier process's extraction."""

    def __init__(self, folder: Path, identity: dict[str, Any]):
        """`identity` describes the extraction, including `width`; a folder with another identity is refused."""
        self.folder, self.width = folder, int(identity["width"])
        self.done = self.rows = 0
        self.skipped: list[Skipped] = []
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self._journal = _open(folder / JOURNAL)
            self._rows = _open(folder / ROWS)
            try:
                self._resume(identity)
            except BaseException:
                self.close()
                raise

    def commit(self, batch: EmbeddedBatch) -> None:
        """Append a batch: its rows first, then the line that commits them."""
        raw = np.ascontiguousarray(batch.rows, dtype="<f4").tobytes()
        entry: list[Any] = [batch.inputs, len(batch.rows), zlib.crc32(raw), [astuple(s) for s in batch.skipped]]
        with writing(self.folder):
            _write(self._rows, raw)
            _write(self._journal, _line(entry))
        self._count(*entry)

    def close(self) -> None:
        """Close the files; everything committed stays."""
        self._rows.close()
        self._journal.close()

    def __enter__(self) -> "ExtractionJournal":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _count(self, inputs: int, rows: int, crc: int, skipped: list[Any]) -> None:
        self.done += inputs
        self.rows += rows
        self.skipped += [Skipped(*s) for s in skipped]

    def _resume(self, identity: dict[str, Any]) -> None:
        """Count the batches whose line and rows are intact, and drop the rest."""
        lines = _lines(self._journal)
        stored, end = next(lines, (None, 0))
        if stored is not None and stored != identity:
            raise FileError(f"{self.folder} holds part of another extraction: delete that folder and extract again.")
        self._rows.seek(HEADER)
        for (inputs, rows, crc, skipped), stop in lines:
            size = rows * self.width * 4
            if zlib.crc32(raw := self._rows.read(size)) != crc or len(raw) != size:
                break
            self._count(inputs, rows, crc, skipped)
            end = stop
        self._cut(end)
        if stored is None:
            _write(self._journal, _line(identity))

    def _cut(self, end: int) -> None:
        """Drop what is not committed: an incomplete line, rows without a line, lines without their rows."""
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
    """The intact lines from the start, each with the offset of its end; stops at the first damaged one."""
    end = 0
    with open(journal.fileno(), "rb", closefd=False) as f:
        for line in f:
            crc, _, text = line.rstrip(b"\n").partition(b" ")
            if not line.endswith(b"\n") or crc != b"%08x" % zlib.crc32(text):
                return
            end += len(line)
            yield json.loads(text), end


def is_complete(partial: Path) -> bool:
    """Whether only the renaming of the folder is left to do: the manifest is written last."""
    return (partial / MANIFEST).is_file()


def complete(partial: Path, identity: dict[str, Any], journal: ExtractionJournal, split: Split) -> None:
    """Write header, labels, names and manifest; the rows reach the disk before the manifest does."""
    names, readable = split.names, np.ones(len(split.inputs), bool)
    readable[[s.index for s in journal.skipped]] = False
    with writing(partial):
        with open(partial / ROWS, "r+b") as f:
            f.write(npy_header(journal.rows, journal.width))
            f.flush()
            os.fsync(f.fileno())
        _write_labels(partial / LABELS, np.asarray(split.labels)[readable])
        write_names(partial / NAMES, (names[i] for i in np.flatnonzero(readable).tolist()))
        result = {"rows": journal.rows, "skipped": [astuple(s) for s in journal.skipped], "dtype": "<f4"}
        write_manifest(partial, identity | result | {"format": FORMAT, "imprint": __version__})


def publish(partial: Path, target: Path) -> None:
    """Give a complete folder its name."""
    with writing(partial):
        (partial / JOURNAL).unlink(missing_ok=True)
        os.rename(partial, target)


def _write_labels(path: Path, labels: np.ndarray[Any, Any]) -> None:
    buffer = io.BytesIO()
    np.save(buffer, labels, allow_pickle=False)
    with atomic_write(path) as f:
        f.write(buffer.getbuffer())
