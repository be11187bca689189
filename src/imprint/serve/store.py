"""The files of a project: a database of changes and files, and a cache of
embeddings.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np

from imprint.core.arrays import Array
from imprint.core.errors import FileError
from imprint.core.files.database import Database, checksum, is_intact, remove_database
from imprint.serve.labelled import Entry

PROJECT = "project.sqlite"
CACHE = "cache.sqlite"
MARK = "acknowledged"
SETTINGS = "settings"  # the fact that counts how often facts were set
PROJECT_TABLES = (
    "CREATE TABLE changes (revision INTEGER PRIMARY KEY, entry TEXT, checksum BLOB)",
    "CREATE TABLE files (digest TEXT PRIMARY KEY, content BLOB, checksum BLOB)",
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT, checksum BLOB)",
)
CACHE_TABLES = (
    (
        "CREATE TABLE embeddings (backbone TEXT, digest TEXT, row BLOB, checksum BLOB,"
        " PRIMARY KEY (backbone, digest))"
    ),
)


def digest_of(raw: bytes) -> str:
    """SHA-256 of the bytes of an image, a text or a model file: its key in the
    store.
    """
    return hashlib.sha256(raw).hexdigest()


def facts_of(folder: Path) -> dict[str, str]:
    """The facts about the project in a folder, which may be open; empty if there is
    none.
    """
    if not (folder / PROJECT).is_file():
        return {}
    with closing(ProjectStore(folder)) as store:
        return store.facts()


def copy_project(folder: Path, target: Path) -> None:
    """Copy a project with its embeddings; it may be open."""
    target.mkdir(parents=True, mode=0o700)
    for name, tables in ((PROJECT, PROJECT_TABLES), (CACHE, CACHE_TABLES)):
        if (folder / name).is_file():
            with closing(Database(folder / name, tables, version=1)) as database:
                database.execute("VACUUM INTO ?", str(target / name))


class ProjectStore:
    """Changes and files, durable before they are acknowledged, and facts about the
    project (name, backbone, ...).

    Row r of `changes` is the r-th change, and the fact `revision` is their number, so
    that a lost row is noticed. SQLite takes damage at the end of its log for a write
    that did not finish. So a third file, the mark, states the last change that was
    acknowledged, and in a second line how often facts were set.
    """

    def __init__(self, folder: Path):
        self.path, self._mark, self.revision = folder / PROJECT, folder / MARK, 0
        self._database = Database(self.path, PROJECT_TABLES, version=1)
        self.close = self._database.close

    def entries(self) -> list[Entry]:
        """All changes; a lost or damaged one is refused. Needed once, before the first
        `commit`.
        """
        stated = int(self.facts().get("revision", 0))
        rows = self._database.execute("SELECT * FROM changes ORDER BY revision")
        for expected, row in enumerate(rows, 1):
            if row[0] != expected or not is_intact(row):
                raise self._database.damaged(f"change {expected} of {stated}")
        if len(rows) != stated:
            raise self._database.damaged(
                f"the table of changes ({len(rows)} of {stated})"
            )
        if (missing := self._acknowledged()[0] - stated) > 0:
            raise FileError(
                f"{self.path} is damaged: {missing} acknowledged changes are missing at"
                f" its end; restore a copy of the folder, or delete {self._mark} to"
                f" continue after change {stated}."
            )
        self.revision = stated
        return [json.loads(row[1]) for row in rows]

    def commit(self, entries: Sequence[Entry], files: Mapping[str, bytes]) -> None:
        """Write changes and the files that they refer to. They are on the disk when
        this returns, all or none.
        """
        after = self.revision + len(entries)
        with self._database.transaction():
            for digest, content in files.items():
                if self._content(digest) != content:
                    self._database.insert("files", digest, content)
            for revision, entry in enumerate(entries, self.revision + 1):
                self._database.insert(
                    "changes", revision, json.dumps(entry, sort_keys=True)
                )
            self._database.insert("facts", "revision", str(after))
        self.revision = after
        self._acknowledge(after, self._acknowledged()[1])

    def _acknowledge(self, revision: int, settings: int) -> None:
        """Write the mark: the last change, and how often facts were set."""
        lines = [
            b"%020d %s\n" % (number, checksum(number).hex().encode())
            for number in (revision, settings)
        ]
        # in place and without fsync: after a power failure a number may be too low
        with suppress(OSError):
            self._mark.touch(0o600)
            with open(self._mark, "r+b") as f:
                f.write(b"".join(lines))

    def _acknowledged(self) -> tuple[int, int]:
        """What the mark states; 0 where it is missing or damaged."""
        try:
            lines = self._mark.read_text("ascii").splitlines()
        except (OSError, ValueError):
            lines = []
        numbers = [_marked(line) for line in lines[:2]]
        revision, settings, *_ = [*numbers, 0, 0]
        return revision, settings

    def file(self, digest: str) -> bytes:
        """The content of an image or a model file."""
        content = self._content(digest)
        if not isinstance(content, bytes) or digest_of(content) != digest:
            raise FileError(
                f"{self.path}: the file {digest[:12]} is damaged or missing; add it"
                " again to repair it."
            )
        return content

    def _content(self, digest: str) -> Any:
        rows = self._database.execute(
            "SELECT content FROM files WHERE digest = ?", digest
        )
        return rows[0][0] if rows else None

    def facts(self) -> dict[str, str]:
        """The stored facts about the project. Without a name, it has that of its
        folder, without the digest.
        """
        rows = self._database.execute("SELECT * FROM facts")
        for row in rows:
            if not is_intact(row):
                raise self._database.damaged(f"the fact {row[0]!r}")
        facts = {str(name): str(value) for name, value, _ in rows}
        settings = int(facts.pop(SETTINGS, 0))
        if self._acknowledged()[1] > settings:
            raise FileError(
                f"{self.path} is damaged: its name or another setting is missing;"
                f" restore a copy of the folder, or delete {self._mark} to continue"
                " with the earlier one."
            )
        name = re.sub(r"-[0-9a-f]{12}$", "", self.path.parent.name)
        return {"name": name, **facts}

    def set_facts(self, facts: Mapping[str, str]) -> None:
        """Store facts about the project."""
        with self._database.transaction():
            rows = self._database.execute(
                "SELECT value FROM facts WHERE name = ?", SETTINGS
            )
            settings = int(rows[0][0]) + 1 if rows else 1
            for name, value in {**facts, SETTINGS: str(settings)}.items():
                self._database.insert("facts", name, value)
        self._acknowledge(self._acknowledged()[0], settings)


def _marked(line: str) -> int:
    """The number in a line of the mark; 0 if it is damaged."""
    number, _, check = line.strip().partition(" ")
    is_intact_line = number.isdecimal() and checksum(int(number)).hex() == check
    return int(number) if is_intact_line else 0


class ProjectCache(dict[str, Array]):
    """Embeddings by digest, in memory and on the disk.

    Lost or damaged ones are computed again, so failures are not reported. The database
    stays open, because closing a write-ahead log for every row would take over 100
    times as long.
    """

    def __init__(self, folder: Path, backbone: str, width: int):
        super().__init__()
        self._path, self._backbone, self._width = folder / CACHE, backbone, width
        try:
            self._database = self._read()
        except FileError:
            remove_database(self._path)
            self._database = self._read()
        self.close = self._database.close

    def keep(self, digest: str, row: Array) -> None:
        """Store an embedding."""
        if digest not in self:
            self[digest] = np.array(row, np.float32)
            with suppress(FileError), self._database.transaction():
                self._database.insert(
                    "embeddings",
                    self._backbone,
                    digest,
                    self[digest].astype("<f4").tobytes(),
                )

    def _read(self) -> Database:
        database = Database(self._path, CACHE_TABLES, version=1, durable=False)
        try:
            rows = database.execute(
                "SELECT * FROM embeddings WHERE backbone = ?", self._backbone
            )
        except FileError:
            database.close()
            raise
        intact = (
            row for row in rows if is_intact(row) and len(row[2]) == 4 * self._width
        )
        self.update({digest: np.frombuffer(raw, "<f4") for _, digest, raw, _ in intact})
        return database
