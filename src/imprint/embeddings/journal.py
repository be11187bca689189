"""An extraction in progress.

Rows are appended to one file; then a row of an SQLite database commits the batch, with a checksum of its rows. A batch
that is not committed does not count, so a kill is harmless. Rows that did not reach the disk in a power failure fail
their checksum when the extraction resumes, and are computed again. So no batch has to wait for the disk. A damaged
database is discarded: that costs time, never a wrong row.
"""

import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np

from imprint.core.errors import FileError, reporting
from imprint.core.files.database import DamagedDatabaseError, Database, is_intact, remove_database
from imprint.embeddings.pipeline import EmbeddedBatch, Skipped
from imprint.embeddings.store import HEADER, ROWS

JOURNAL = "journal.sqlite"
TABLES = ("CREATE TABLE batches (number INTEGER PRIMARY KEY, content TEXT NOT NULL, checksum BLOB NOT NULL)",)
"""Row 0 holds the identity of the extraction; each later row holds a batch: inputs, rows, their CRC, skipped inputs."""
FORMAT = 1


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Report a full disk or a forbidden folder in one sentence."""
    try:
        with reporting("write", folder):
            yield
    except FileError as e:
        kept = "finished batches are kept and the same call goes on after them"
        raise FileError(f"{str(e).rstrip('.')}; {kept}.") from None


class ExtractionJournal:
    """The committed batches of one extraction; opening it resumes an earlier process's extraction."""

    def __init__(self, folder: Path, identity: dict[str, Any]):
        """`identity` describes the extraction, including `width`; a folder with another identity is refused."""
        self.folder, self.width = folder, int(identity["width"])
        self.done = self.rows = self._batches = 0
        self.skipped: list[Skipped] = []
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / ROWS).touch()
            self._rows = (folder / ROWS).open("r+b", buffering=0)
            self._database, entries = _open(folder / JOURNAL)
        try:
            if entries and entries[0] != identity:
                raise FileError(f"{folder} holds part of another extraction: delete that folder and extract again.")
            with writing(folder):
                self._resume(entries[1:])
                self._database.insert("batches", 0, _content(identity))
        except BaseException:
            self.close()
            raise

    def commit(self, batch: EmbeddedBatch) -> None:
        """Append a batch: its rows first, then the entry that commits them."""
        raw = np.ascontiguousarray(batch.rows, dtype="<f4").tobytes()
        entry: list[Any] = [batch.inputs, len(batch.rows), zlib.crc32(raw), [astuple(s) for s in batch.skipped]]
        with writing(self.folder):
            self._append(raw)
            self._database.insert("batches", self._batches + 1, _content(entry))
        self._count(*entry)

    def close(self) -> None:
        """Close the files; everything committed stays."""
        self._rows.close()
        self._database.close()

    def _append(self, raw: bytes) -> None:
        view = memoryview(raw)
        while view:
            view = view[self._rows.write(view) :]

    def _count(self, inputs: int, rows: int, crc: int, skipped: list[Any]) -> None:
        self._batches += 1
        self.done += inputs
        self.rows += rows
        self.skipped += [Skipped(*s) for s in skipped]

    def _resume(self, entries: list[Any]) -> None:
        """Count the batches whose rows are intact, and drop the rest."""
        self._rows.seek(HEADER)
        for inputs, rows, crc, skipped in entries:
            size = rows * self.width * 4
            if zlib.crc32(raw := self._rows.read(size)) != crc or len(raw) != size:
                break
            self._count(inputs, rows, crc, skipped)
        self._database.execute("DELETE FROM batches WHERE number > ?", self._batches)
        self._rows.truncate(HEADER + self.rows * self.width * 4)
        self._rows.seek(0, os.SEEK_END)


def _open(path: Path) -> tuple[Database, list[Any]]:
    """The database and its consecutive intact entries."""
    database = None
    try:
        database = Database(path, TABLES, FORMAT, durable=False)
        entries: list[Any] = []
        for number, row in enumerate(database.read("SELECT * FROM batches ORDER BY number")):
            if row[0] != number or not is_intact(row):
                break
            entries.append(json.loads(row[1]))
        return database, entries
    except DamagedDatabaseError:
        if database is not None:
            database.close()
        remove_database(path)
        return Database(path, TABLES, FORMAT, durable=False), []


def _content(entry: Any) -> str:
    return json.dumps(entry, sort_keys=True)
