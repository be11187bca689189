"""The files of a project: a database of changes and files, and a cache of embeddings. Previews of files."""

import hashlib
import io
import json
import os
import re
import wave
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from imprint.core.errors import FileError
from imprint.core.files.database import Database, checksum, is_intact, remove_database
from imprint.core.types import Array
from imprint.modalities import Modality
from imprint.modalities.image import read_picture
from imprint.modalities.sound import Recording
from imprint.serve.labelled import Entry

PROJECT = "project.sqlite"
CACHE = "cache.sqlite"
MARK = "acknowledged"
PROJECT_TABLES = (
    "CREATE TABLE changes (revision INTEGER PRIMARY KEY, entry TEXT, checksum BLOB)",
    "CREATE TABLE files (digest TEXT PRIMARY KEY, content BLOB, checksum BLOB)",
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT, checksum BLOB)",
)
CACHE_TABLES = (
    "CREATE TABLE embeddings (backbone TEXT, digest TEXT, row BLOB, checksum BLOB, PRIMARY KEY (backbone, digest))",
)
QUALITY = 85


def digest_of(raw: bytes) -> str:
    """SHA-256 of the bytes of a picture, a text or a model file: its key in the store."""
    return hashlib.sha256(raw).hexdigest()


def project_name(folder: Path, stated: str | None) -> str:
    """The name of a project if one is stored, else that of its folder without the digest."""
    return stated or re.sub(r"-[0-9a-f]{12}$", "", folder.name)


def facts_of(folder: Path) -> dict[str, str]:
    """The stored facts (name, backbone, recipe ...) of a project, which may be open; empty if there is none."""
    if not (folder / PROJECT).is_file():
        return {}
    with closing(Database(folder / PROJECT, PROJECT_TABLES, version=1)) as database:
        return {str(row[0]): str(row[1]) for row in database.read("SELECT * FROM facts") if is_intact(row)}


def state_fact(folder: Path, name: str, value: str) -> None:
    """Store a fact about a project."""
    with closing(Database(folder / PROJECT, PROJECT_TABLES, version=1)) as database, database.transaction():
        database.insert("facts", name, value)


def copy_project(folder: Path, target: Path) -> None:
    """Copy a project with its embeddings; it may be open."""
    target.mkdir(parents=True, mode=0o700)
    for name, tables in ((PROJECT, PROJECT_TABLES), (CACHE, CACHE_TABLES)):
        if (folder / name).is_file():
            with closing(Database(folder / name, tables, version=1)) as database:
                database.execute("VACUUM INTO ?", str(target / name))


class ProjectStore:
    """Changes and files, durable before they are acknowledged.

    Row r of `changes` is the r-th change, and the fact `revision` is their number, so that a lost row is noticed.
    SQLite takes damage at the end of its log for a write that did not finish. So a third file states the last change
    that was acknowledged.
    """

    def __init__(self, folder: Path):
        self.path, self._mark = folder / PROJECT, folder / MARK
        self._database = Database(self.path, PROJECT_TABLES, version=1)
        try:
            self.entries = self._entries()
            self.revision = len(self.entries)
            self._check_mark()
        except BaseException:
            self._database.close()
            raise

    def commit(self, entries: Sequence[Entry], files: Mapping[str, bytes]) -> None:
        """Write changes and the files that they refer to. They are on the disk when this returns, all or none."""
        after = self.revision + len(entries)
        with self._database.transaction():
            for digest, content in files.items():
                self._keep(digest, content)
            for revision, entry in enumerate(entries, self.revision + 1):
                self._database.insert("changes", revision, json.dumps(entry, sort_keys=True))
            self._database.insert("facts", "revision", str(after))
        self.revision = after
        self._acknowledge()

    def file(self, digest: str) -> bytes:
        """The content of a picture or a model file."""
        rows = self._database.read("SELECT content FROM files WHERE digest = ?", digest)
        content: Any = rows[0][0] if rows else b""
        if not isinstance(content, bytes) or digest_of(content) != digest:
            raise FileError(f"{self.path}: the file {digest[:12]} is damaged or missing; add it again to repair it.")
        return content

    def fact(self, name: str) -> str | None:
        """A fact about the project; None if it is not stored."""
        for row in self._database.read("SELECT * FROM facts WHERE name = ?", name):
            if not is_intact(row):
                raise self._database.damaged(f"the fact {name!r}")
            return str(row[1])
        return None

    def state(self, name: str, value: str) -> None:
        """Store a fact about the project."""
        with self._database.transaction():
            self._database.insert("facts", name, value)

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _keep(self, digest: str, content: bytes) -> None:
        rows = self._database.read("SELECT content FROM files WHERE digest = ?", digest)
        if not rows or rows[0][0] != content:
            self._database.insert("files", digest, content)

    def _entries(self) -> list[Entry]:
        stated = int(self.fact("revision") or 0)
        rows = self._database.read("SELECT * FROM changes ORDER BY revision")
        for expected, row in enumerate(rows, 1):
            if row[0] != expected or not is_intact(row):
                raise self._database.damaged(f"change {expected} of {stated}")
        if len(rows) != stated:
            raise self._database.damaged(f"the table of changes ({len(rows)} of {stated})")
        return [json.loads(row[1]) for row in rows]

    def _acknowledge(self) -> None:
        """Write the number of the last change to its file, without fsync: it may be too low after a power failure."""
        with suppress(OSError):
            handle = os.open(self._mark, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                os.write(handle, b"%020d %s\n" % (self.revision, checksum(self.revision).hex().encode()))
            finally:
                os.close(handle)

    def _check_mark(self) -> None:
        try:
            number, _, check = self._mark.read_text("ascii").strip().partition(" ")
            revision = int(number) if number.isdecimal() and checksum(int(number)).hex() == check else 0
        except (OSError, UnicodeDecodeError):
            revision = 0
        if revision > self.revision:
            raise FileError(
                f"{self.path} is damaged: {revision - self.revision} acknowledged changes are missing at its end; put "
                f"back a copy of the folder, or delete {self._mark} to continue after change {self.revision}."
            )


class ProjectCache(dict[str, Array]):
    """Embeddings by digest, in memory and on the disk.

    Lost or damaged ones are computed again, so failures are not reported. The database stays open, because closing a
    write-ahead log for every row would take over 100 times as long.
    """

    def __init__(self, folder: Path, backbone: str, width: int):
        super().__init__()
        self._path, self._backbone, self._width = folder / CACHE, backbone, width
        try:
            self._database = self._read()
        except FileError:
            remove_database(self._path)
            self._database = self._read()

    def keep(self, digest: str, row: Array) -> None:
        """Store an embedding."""
        if digest not in self:
            self[digest] = np.array(row, np.float32)
            with suppress(FileError), self._database.transaction():
                self._database.insert("embeddings", self._backbone, digest, self[digest].astype("<f4").tobytes())

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _read(self) -> Database:
        database = Database(self._path, CACHE_TABLES, version=1, durable=False)
        try:
            rows = database.read("SELECT * FROM embeddings WHERE backbone = ?", self._backbone)
        except FileError:
            database.close()
            raise
        intact = (row for row in rows if is_intact(row) and len(row[2]) == 4 * self._width)
        self.update({digest: np.frombuffer(raw, "<f4") for _, digest, raw, _ in intact})
        return database


def preview(modality: Modality, raw: bytes, side: int) -> tuple[str, bytes]:
    """The media type and bytes of an input for the page. It is decoded and encoded again, which removes all else."""
    item = read_picture(raw, side) if modality.name == "image" else modality.read(raw)
    shown = modality.show(item)
    out = io.BytesIO()
    if isinstance(item, Recording):
        with wave.open(out, "wb") as sound:
            sound.setparams((1, 2, item.rate, len(item.samples), "NONE", ""))
            sound.writeframes((np.clip(item.samples, -1, 1) * 32767).astype("<i2").tobytes())
        return "audio/wav", out.getvalue()
    if not isinstance(shown, np.ndarray):
        return "text/plain; charset=utf-8", str(shown or "").encode()
    image: Image.Image = Image.fromarray(shown)
    image.thumbnail((side, side))
    image.save(out, "JPEG", quality=QUALITY)
    return "image/jpeg", out.getvalue()
