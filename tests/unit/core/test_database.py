"""Databases: flipped bits, a full disk, two processes and kills at random moments."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from imprint.core.errors import FileError
from imprint.core.files.database import (
    DamagedDatabaseError,
    Database,
    checksum,
    is_intact,
    remove_database,
)

TABLES = [
    "CREATE TABLE rows (key INTEGER PRIMARY KEY, name TEXT, content BLOB, checksum BLOB)"
]
ROWS = [(i, f"row {i}", bytes([i]) * (300 * i)) for i in range(1, 25)]


def opened(path, **options):
    return Database(path, TABLES, 1, **options)


def contents(path, **options):
    """The rows with a valid checksum, and whether there are invalid rows."""
    database = opened(path, **options)
    try:
        rows = database.execute("SELECT * FROM rows ORDER BY key")
    finally:
        database.close()
    return [row[:-1] for row in rows if is_intact(row)], not all(map(is_intact, rows))


@pytest.fixture
def path(tmp_path):
    database = opened(tmp_path / "a.sqlite")
    with database.transaction():
        for row in ROWS:
            database.insert("rows", *row)
    database.close()
    return tmp_path / "a.sqlite"


def test_a_checksum_depends_on_every_value_its_type_and_the_order():
    values = [
        (),
        (1,),
        ("1",),
        (b"1",),
        (1.0,),
        (None,),
        (1, 2),
        (2, 1),
        ("12",),
        ("1", "2"),
        (b"",),
        ("",),
    ]
    assert len({checksum(*v) for v in values}) == len(values)


def test_rows_come_back_and_a_failed_block_counts_for_nothing(path):
    assert contents(path) == (ROWS, False)
    database = opened(path)

    def write():
        with database.transaction():
            database.insert("rows", 99, "never", b"")
            database.insert("nowhere", 99)

    with pytest.raises(FileError, match="no such table"):
        write()
    database.close()
    assert contents(path) == (ROWS, False)
    assert not os.path.exists(f"{path}-wal")


def test_a_flipped_bit_is_noticed_or_changes_nothing(path):
    raw, rng, noticed = path.read_bytes(), np.random.default_rng(0), 0
    for place in rng.integers(8 * len(raw), size=400).tolist():
        flipped = bytearray(raw)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(flipped)
        try:
            rows, failed = contents(path)
        except FileError:
            noticed += 1
            continue
        finally:
            for end in ("-wal", "-shm"):
                (path.parent / (path.name + end)).unlink(missing_ok=True)
        assert set(rows) <= set(ROWS)
        noticed += failed
    assert noticed > 250


@pytest.mark.parametrize(
    "content",
    [b"no database" * 100, b"SQLite format 3\0" + bytes(4080)],
    ids=["text", "header"],
)
def test_another_file_is_refused(tmp_path, content):
    (tmp_path / "a.sqlite").write_bytes(content)
    with pytest.raises(FileError, match=r"a\.sqlite"):
        opened(tmp_path / "a.sqlite")
    assert (tmp_path / "a.sqlite").read_bytes() == content


def test_databases_of_other_versions_and_programs_are_refused(path, tmp_path):
    with pytest.raises(FileError, match="it states 1, this imprint reads 2"):
        Database(path, TABLES, 2)
    foreign = sqlite3.connect(tmp_path / "b.sqlite")
    foreign.execute("CREATE TABLE theirs (a)")
    for version in (0, 1):
        foreign.execute(f"PRAGMA user_version = {version}")
        with pytest.raises(FileError, match="another format"):
            opened(tmp_path / "b.sqlite")
    foreign.close()


@pytest.mark.skipif(os.name != "posix", reason="POSIX limits the size of files")
def test_a_full_disk_is_one_sentence_and_what_was_written_stays(path):
    import resource

    database = opened(path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20_000, limits[1]))
    try:
        with (
            pytest.raises(FileError, match=r"^Cannot write .*a\.sqlite: .*\.$"),
            database.transaction(),
        ):
            database.insert("rows", 99, "large", bytes(10**6))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    with database.transaction():
        database.insert("rows", 100, "small", b"x")
    database.close()
    assert contents(path) == ([*ROWS, (100, "small", b"x")], False)


def test_a_folder_that_does_not_exist_is_one_sentence(tmp_path):
    with pytest.raises(
        FileError, match=r"^Cannot write .*unable to open database file\.$"
    ):
        opened(tmp_path / "nowhere" / "a.sqlite")


def test_waiting_too_long_for_another_process_is_reported(path, monkeypatch):
    monkeypatch.setattr("imprint.core.files.database.TIMEOUT", 0.05)
    first, second = opened(path), opened(path)
    with first.transaction():
        with (
            pytest.raises(FileError, match="in use by another process"),
            second.transaction(),
        ):
            pass
        assert len(second.execute("SELECT * FROM rows")) == len(
            ROWS
        )  # readers do not wait
    first.close()
    second.close()


def test_many_threads_and_a_second_connection_lose_nothing(tmp_path):
    databases = [opened(tmp_path / "a.sqlite", durable=False) for _ in range(2)]

    def write(start):
        for i in range(start, start + 25):
            with databases[start % 2].transaction():
                databases[start % 2].insert("rows", i, f"row {i}", b"")

    threads = [
        threading.Thread(target=write, args=(1000 * t + t % 2,)) for t in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for database in databases:
        database.close()
    assert len(contents(tmp_path / "a.sqlite")[0]) == 150


WRITER = """
import sys
from pathlib import Path
from imprint.core.files.database import Database
database = Database(Path(sys.argv[1]), [sys.argv[2]], 1)
for i in range(int(sys.argv[3]), 10**9):
    with database.transaction():
        database.insert("rows", i, f"row {i}", bytes(2000))
        database.insert("rows", -i, f"row {-i}", bytes(2000))
    print(i, flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_kill_loses_no_finished_transaction_and_keeps_no_half(tmp_path):
    path, last = tmp_path / "a.sqlite", 0
    for round_ in range(4):
        command = [sys.executable, "-c", WRITER, str(path), TABLES[0], str(last + 1)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            last = int(process.stdout.readline())
            time.sleep(0.02 * round_)
            process.send_signal(signal.SIGKILL)
            last = max([last, *map(int, process.stdout.read().split("\n")[:-1])])
        rows, failed = contents(path)
        assert not failed
        keys = {key for key, *_ in rows}
        assert keys >= set(range(1, last + 1))
        assert {-key for key in keys} == keys
        last = max(keys)


def test_a_closed_database_is_not_reported_as_damaged(path):
    database = opened(path)
    database.close()
    with pytest.raises(FileError, match="was closed") as caught:
        database.execute("SELECT * FROM rows")
    assert not isinstance(caught.value, DamagedDatabaseError)


def test_removing_takes_the_log_along(path):
    database = opened(path)
    with database.transaction():
        database.insert("rows", 99, "x", b"")
    assert os.path.exists(f"{path}-wal")
    database.close()
    remove_database(path)
    remove_database(path)
    assert list(path.parent.iterdir()) == []
