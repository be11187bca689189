"""The cache of embeddings, addressed by content: one SQLite file per backbone, with a checksum per row.

Keys are digests of content, so moved and renamed files are found. A row that fails its checksum does not count, and a
damaged file is replaced: either costs time, never a wrong embedding.
"""

from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

import numpy as np

from imprint.core.digest import digest
from imprint.core.errors import FileError
from imprint.core.files.atomic import make_folder
from imprint.core.files.database import DamagedDatabaseError, Database, is_intact, remove_database
from imprint.core.types import Array
from imprint.embeddings.store import store_folder

LAYOUT = "cache 1"  # part of every file's name; increase it when decoding changes
VERSION = 1
TABLES = ("CREATE TABLE embeddings (key BLOB PRIMARY KEY, row BLOB NOT NULL, checksum BLOB NOT NULL)",)
AT_ONCE = 500  # keys in a query


def content_key(content: bytes | str | Array) -> bytes:
    """The key of an input: the digest of a file's bytes, of a text, or of an array."""
    return bytes.fromhex(digest([content]))


class EmbeddingCache:
    """The cached embeddings of one backbone. Several threads and processes may use one file at once."""

    def __init__(self, backbone: str, width: int, folder: str | Path | None = None):
        """`backbone` is a fingerprint; `folder` is the one that holds all embeddings."""
        self.width = width
        self.path = store_folder(folder) / "cache" / f"{digest([LAYOUT, backbone, str(width)])[:32]}.sqlite"

    def exists(self) -> bool:
        """Whether anything has been cached."""
        return self.path.is_file()

    def find(self, keys: Sequence[bytes]) -> tuple[Array, Array]:
        """Embeddings (n, width), and which of them are known (n,); the others are zero."""
        X, known = np.zeros((len(keys), self.width), np.float32), np.zeros(len(keys), bool)
        stored: dict[bytes, Array] = {}
        with suppress(FileError), self._open() as database:  # what is not read is embedded again
            for first in range(0, len(keys), AT_ONCE):
                part = keys[first : first + AT_ONCE]
                marks = ", ".join("?" * len(part))
                for row in database.read(f"SELECT * FROM embeddings WHERE key IN ({marks})", *part):
                    if is_intact(row) and len(row[1]) == 4 * self.width:
                        stored[row[0]] = np.frombuffer(row[1], "<f4")
        for i, key in enumerate(keys):
            if key in stored:
                X[i], known[i] = stored[key], True
        return X, known

    def add(self, keys: Sequence[bytes], X: Array) -> None:
        """Store embeddings; raises `FileError` if they cannot be written, which leaves the cache as it was."""
        rows = np.ascontiguousarray(X, dtype="<f4")
        make_folder(self.path.parent)
        try:
            self._insert(keys, rows)
        except DamagedDatabaseError:
            remove_database(self.path)
            self._insert(keys, rows)

    def _insert(self, keys: Sequence[bytes], rows: Array) -> None:
        with self._open() as database, database.transaction():
            for key, row in zip(keys, rows):
                database.insert("embeddings", key, row.tobytes())

    def _open(self) -> closing[Database]:
        return closing(Database(self.path, TABLES, VERSION, durable=False))
