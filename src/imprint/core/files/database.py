"""SQLite databases with a write-ahead log, a checksum per row, and one sentence for
every failure.

By convention the last column of every table is called `checksum` and holds
`checksum(*the_other_columns)`: write rows with `insert`, and test them with `is_intact`
after reading. SQLite itself does not notice a flipped bit inside a value. It treats
damage at the end of the write-ahead log as an unfinished write. To detect that too,
store elsewhere which row was written last.
"""

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any

from imprint.core.errors import FileError

APPLICATION_ID = 0x494D5052  # "IMPR", in the header of every database of this library
TIMEOUT = 60.0  # seconds to wait for another process before a call fails
CANNOT_WRITE = {
    getattr(sqlite3, f"SQLITE_{name}")
    for name in ("FULL", "CANTOPEN", "READONLY", "PERM", "IOERR")
}
Value = None | int | float | str | bytes


def checksum(*values: Value) -> bytes:
    """A hash of eight bytes that depends on the values, their types and their order."""
    total = hashlib.blake2b(digest_size=8)
    for value in values:
        raw = value if isinstance(value, bytes) else repr(value).encode()
        total.update(f"{type(value).__name__} {len(raw)} ".encode())
        total.update(raw)
    return total.digest()


def is_intact(row: Sequence[Any]) -> bool:
    """Whether the last value of a row is the checksum of the others."""
    return bool(row[-1] == checksum(*row[:-1]))


class DamagedDatabaseError(FileError):
    """A database is damaged or has another format; a cache may then be deleted and
    computed again.
    """


class Database:
    """One SQLite file. Any thread may call it; calls run one after the other.

    `tables` are the statements that create the tables of a new file, and `version` is
    the number of that format: a file with another number is refused. With `durable`, a
    transaction is on the disk when it ends (full synchronisation). Without it, a power
    failure may lose the last transactions, but it never damages the file.
    """

    def __init__(
        self, path: Path, tables: Sequence[str], version: int, *, durable: bool = True
    ) -> None:
        self.path = path
        self._lock = RLock()
        with self._reporting_errors():
            self._connection = sqlite3.connect(
                path, timeout=TIMEOUT, isolation_level=None, check_same_thread=False
            )
        try:
            self.execute("PRAGMA journal_mode = WAL")
            self.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self.execute("PRAGMA cell_size_check = ON")
            self._create(tables, version)
        except BaseException:
            self._connection.close()
            raise

    def execute(self, statement: str, *values: Value) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        with self._lock, self._reporting_errors():
            return self._connection.execute(statement, values).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit the writes of a block together when it ends; an error in the block
        rolls them back.
        """
        with self._lock:
            self.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.execute("COMMIT")
            except BaseException:
                # SQLite has rolled it back already if the disk was full
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    def insert(self, table: str, *values: Value) -> None:
        """Write a row and its checksum, replacing a row that has the same primary
        key.
        """
        placeholders = ", ".join("?" * (len(values) + 1))
        self.execute(
            f"INSERT OR REPLACE INTO {table} VALUES ({placeholders})",
            *values,
            checksum(*values),
        )

    def damaged(self, what: str) -> FileError:
        """The error for content that is not what was written; `what` names it."""
        return FileError(f"{self.path}: {what} is damaged; restore a copy of the file.")

    def close(self) -> None:
        """Write the log into the file and close it."""
        with self._lock, suppress(sqlite3.Error):  # committed rows stay in the log
            self._connection.close()

    def _create(self, tables: Sequence[str], version: int) -> None:
        if self._application_and_version() == (APPLICATION_ID, version):
            return
        # exclusive: another process may have created the tables meanwhile
        with self.transaction():
            header = self._application_and_version()
            if header == (0, 0) and self.execute(
                "SELECT count(*) FROM sqlite_master"
            ) == [(0,)]:
                pragmas = (
                    f"PRAGMA user_version = {version}",
                    f"PRAGMA application_id = {APPLICATION_ID}",
                )
                for statement in (*tables, *pragmas):
                    self.execute(statement)
            elif header != (APPLICATION_ID, version):
                raise DamagedDatabaseError(
                    f"{self.path}: this file is damaged or has another format (it"
                    f" states {header[1]}, this imprint reads {version}); use the"
                    " imprint that wrote it, or restore a copy."
                )

    def _application_and_version(self) -> tuple[int, int]:
        ((application, version),) = self.execute(
            "SELECT * FROM pragma_application_id, pragma_user_version"
        )
        return application, version

    @contextmanager
    def _reporting_errors(self) -> Iterator[None]:
        """Report an error of SQLite as one sentence."""
        try:
            yield
        # the latter if a message of SQLite quotes damaged bytes
        except (sqlite3.Error, UnicodeDecodeError) as e:
            if isinstance(e, sqlite3.ProgrammingError) and "closed" in str(e):
                raise FileError(
                    f"{self.path} was closed while it was used; try again."
                ) from None
            # without: a value cannot be decoded
            code = getattr(e, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                rule = "try again when that one has finished"
                raise FileError(
                    f"{self.path} is in use by another process; {rule}."
                ) from None
            if code in CANNOT_WRITE:
                reason = "No space left on device" if code == sqlite3.SQLITE_FULL else e
                raise FileError(f"Cannot write {self.path}: {reason}.") from None
            raise DamagedDatabaseError(
                f"{self.path} is damaged ({e}); restore a copy of the file."
            ) from None


def remove_database(path: Path) -> None:
    """Delete a database and its log, for content that can be computed again."""
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
