"""An interrupted extraction is resumed by the same call, repeats no finished batch, and gives the same bytes."""

import errno
import itertools
import json
import random
import shutil
import sqlite3
import sys
from contextlib import closing, suppress
from types import SimpleNamespace

import numpy as np
import pytest

from imprint.core.errors import FileError, ImprintError
from imprint.embeddings import extract, store
from imprint.embeddings.extract import JOURNAL, Database, ExtractionJournal
from imprint.embeddings.store import HEADER_BYTES, ROWS

BAD = (3, 21)


class Stop(BaseException):
    """Not an Exception, like a kill or Ctrl-C."""


@pytest.fixture
def undisturbed(make_backbone, make_split, tmp_path, contents):
    e = extract(
        make_backbone(),
        make_split(60, BAD),
        batch_size=8,
        folder=tmp_path / "undisturbed",
    )
    return contents(e.folder)


@pytest.fixture
def finish(make_backbone, make_split, contents):
    """Finish an extraction; return the bytes of the store and the number of batches embedded."""

    def run(folder):
        backbone = make_backbone()
        e = extract(backbone, make_split(60, BAD), batch_size=8, folder=folder)
        assert sorted(p.name for p in folder.iterdir()) == [e.key, f"{e.key}.lock"]
        return contents(e.folder), len(backbone.batches)

    return run


@pytest.fixture
def stop_after(make_backbone, make_split):
    """Start an extraction that stops before its batch number `batches` is embedded."""

    def run(folder, batches, error=Stop):
        backbone = make_backbone()
        honest = backbone.embed

        def embed(batch):
            if len(backbone.batches) == batches:
                raise error
            return honest(batch)

        backbone.embed = embed
        with pytest.raises(error):
            extract(backbone, make_split(60, BAD), batch_size=8, folder=folder)
        (partial,) = folder.glob("*.partial")
        return partial

    return run


@pytest.mark.parametrize("batches", range(8))
@pytest.mark.parametrize("error", [Stop, KeyboardInterrupt, RuntimeError])
def test_finished_batches_are_not_repeated(
    stop_after, finish, undisturbed, tmp_path, batches, error
):
    stop_after(tmp_path / "a", batches, error)
    assert finish(tmp_path / "a") == (undisturbed, 8 - batches)


def test_stopping_after_every_batch(stop_after, finish, undisturbed, tmp_path):
    for _ in range(7):
        stop_after(tmp_path / "a", 1)
    assert finish(tmp_path / "a") == (undisturbed, 1)


def test_torn_files_are_truncated_to_the_last_complete_batch(
    stop_after, finish, undisturbed, tmp_path
):
    """A kill may happen between any two writes; a power failure may lose the end of either file."""
    partial, rng = stop_after(tmp_path / "a", 6), random.Random(0)
    kept = tmp_path / "kept"
    shutil.copytree(partial, kept)
    sizes = {name: (kept / name).stat().st_size for name in (JOURNAL, ROWS)}
    for trial in range(60):
        folder = tmp_path / f"t{trial}"
        copy = folder / partial.name
        shutil.copytree(kept, copy)
        for name, size in sizes.items():
            with open(copy / name, "r+b") as f:
                f.truncate(rng.randrange(size + 1) if rng.random() < 0.7 else size)
        stored, repeated = finish(folder)
        assert stored == undisturbed
        assert 2 <= repeated <= 8


def entries(partial):
    """Numbers and contents of the committed batches; number 0 is the identity of the extraction."""
    with closing(sqlite3.connect(partial / JOURNAL)) as database:
        return database.execute(
            "SELECT number, content FROM batches ORDER BY number"
        ).fetchall()


def test_what_is_not_committed_is_cut_off(stop_after, tmp_path):
    partial = stop_after(tmp_path / "a", 3)
    committed, rows = entries(partial), (partial / ROWS).read_bytes()
    with open(partial / ROWS, "ab") as f:
        f.write(b"rows that no entry commits")
    stop_after(tmp_path / "a", 0)
    assert entries(partial) == committed
    assert (partial / ROWS).read_bytes() == rows


def test_entries_without_their_rows_are_dropped(
    stop_after, finish, undisturbed, tmp_path
):
    partial = stop_after(tmp_path / "a", 3)
    with open(partial / ROWS, "r+b") as f:
        f.truncate((partial / ROWS).stat().st_size - 1)
    stop_after(tmp_path / "a", 0)
    assert len(entries(partial)) == 1 + 2
    assert finish(tmp_path / "a") == (undisturbed, 6)


def test_an_altered_entry_ends_the_journal(stop_after, finish, undisturbed, tmp_path):
    partial = stop_after(tmp_path / "a", 5)
    with closing(sqlite3.connect(partial / JOURNAL)) as database:
        database.execute(
            "UPDATE batches SET content = replace(content, '8', '9') WHERE number = 3"
        )
        database.commit()
    assert finish(tmp_path / "a") == (undisturbed, 8 - 2)


def test_an_extraction_of_an_earlier_version_starts_again(
    stop_after, finish, undisturbed, tmp_path
):
    partial = stop_after(tmp_path / "a", 3)
    (partial / JOURNAL).unlink()
    (partial / "journal").write_bytes(b"0badcafe {}\n")
    assert finish(tmp_path / "a") == (undisturbed, 8)


@pytest.mark.parametrize("name", [JOURNAL, ROWS])
def test_lost_pages_are_found_and_computed_again(
    stop_after, finish, undisturbed, tmp_path, name
):
    """After a power failure, a file may have its full length but not its content."""
    path = stop_after(tmp_path / "a", 6) / name
    raw = bytearray(path.read_bytes())
    raw[-160:-96] = bytes(64)
    path.write_bytes(raw)
    stored, repeated = finish(tmp_path / "a")
    assert stored == undisturbed
    assert (
        2 <= repeated <= 8
    )  # a damaged database is discarded; damage in unused bytes has no effect


@pytest.mark.parametrize("name", [JOURNAL, ROWS])
def test_flipped_bits_never_mark_wrong_batches_as_done(stop_after, tmp_path, name):
    """After any flipped bit, the journal reports only batches as done that are stored correctly."""
    partial = stop_after(tmp_path / "a", 6)
    files = {path: path.read_bytes() for path in partial.iterdir()}
    identity = json.loads(entries(partial)[0][1])
    with closing(ExtractionJournal(partial, identity)) as whole:
        assert (whole.done, whole.rows) == (48, 46)
    for seed in range(300):
        for path, content in files.items():
            path.write_bytes(content)
        first = 8 * HEADER_BYTES if name == ROWS else 0  # the header is written last
        bit = int(
            np.random.default_rng(seed).integers(first, 8 * len(files[partial / name]))
        )
        damaged = bytearray(files[partial / name])
        damaged[bit // 8] ^= 1 << bit % 8
        (partial / name).write_bytes(damaged)
        with closing(ExtractionJournal(partial, identity)) as again:
            assert again.done < 48 or name == JOURNAL  # a database has unused bytes
            assert again.done in (8 * again._batches, 48)
            assert again.skipped == whole.skipped[: len(again.skipped)]
            size = HEADER_BYTES + 4 * again.rows * again.width
        assert (partial / ROWS).read_bytes() == files[partial / ROWS][:size]


@pytest.mark.parametrize("calls", [0, 1, 2])  # before the one that stops
@pytest.mark.parametrize(
    "step",
    [
        "numpy.ascontiguousarray",
        "json.dumps",
        "os.fsync",
        "os.replace",
        "os.rename",
        "os.unlink",
    ],
)
def test_stopping_while_finishing(
    finish, undisturbed, tmp_path, monkeypatch, step, calls
):
    (owner, name), left = step.split("."), [calls]
    honest_step, honest_complete = getattr(sys.modules[owner], name), store.complete

    def stop(*args, **options):
        left[0] -= 1
        if left[0] < 0:
            raise Stop
        return honest_step(*args, **options)

    def complete(*args):
        with monkeypatch.context() as m:
            m.setattr(step, stop)
            honest_complete(*args)

    with monkeypatch.context() as m, suppress(Stop):
        m.setattr(store, "complete", complete)
        if name in ("rename", "unlink"):
            m.setattr(step, stop)
        finish(tmp_path / "a")
    assert finish(tmp_path / "a") == (undisturbed, 0)


@pytest.mark.parametrize("room", [0, 100, 500, 1000, 1500, 1800])
def test_a_full_disk_is_one_sentence_and_resumable(
    finish, undisturbed, tmp_path, monkeypatch, room
):
    left, honest = [room], ExtractionJournal._append

    def append(self, raw):
        honest(self, raw[: left[0]])
        left[0] -= min(len(raw), left[0])
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as m:
        m.setattr(ExtractionJournal, "_append", append)
        with pytest.raises(
            FileError,
            match=r"Cannot write .*: No space left on device; finished batches are kept",
        ):
            finish(tmp_path / "a")
    (partial,) = (tmp_path / "a").glob("*.partial")
    committed = len(entries(partial)) - 1
    assert (
        room // 256 <= committed <= room // 224
    )  # bytes of a batch, of a batch with an unreadable input
    assert finish(tmp_path / "a") == (undisturbed, 8 - committed)


def test_a_database_on_a_full_disk_is_one_sentence_and_resumable(
    finish, undisturbed, tmp_path, monkeypatch
):
    """SQLite reports a full disk because its number of pages is limited."""
    honest, honest_insert = Database.__init__, Database.insert

    def small(self, *args, **options):
        honest(self, *args, **options)
        self.execute("PRAGMA max_page_count = 5")

    with monkeypatch.context() as m:
        m.setattr(Database, "__init__", small)
        m.setattr(
            Database,
            "insert",
            lambda self, table, n, text: honest_insert(
                self, table, n, text + " " * 2000
            ),
        )
        with pytest.raises(
            FileError,
            match=r"Cannot write .*: No space left on device; finished batches are kept",
        ):
            finish(tmp_path / "a")
    (partial,) = (tmp_path / "a").glob("*.partial")
    committed = len(entries(partial)) - 1
    assert 0 < committed < 8
    assert finish(tmp_path / "a") == (undisturbed, 8 - committed)


def test_another_batch_size_resumes_the_extraction(
    stop_after, make_backbone, make_split, tmp_path
):
    stop_after(tmp_path / "a", 3)
    backbone = make_backbone()
    e = extract(backbone, make_split(60, BAD), batch_size=36, folder=tmp_path / "a")
    assert backbone.batches == [36]
    whole = extract(backbone, make_split(60, BAD), folder=tmp_path / "b")
    np.testing.assert_allclose(e.X, whole.X, rtol=1e-5, atol=1e-6)


def test_progress_resumes_after_an_interruption(
    stop_after, make_backbone, make_split, tmp_path, monkeypatch
):
    stop_after(tmp_path / "a", 3)
    clock = SimpleNamespace(monotonic=itertools.count().__next__)
    monkeypatch.setattr(sys.modules["imprint.embeddings.pipeline"], "time", clock)
    seen = []
    extract(
        make_backbone(),
        make_split(60, BAD),
        batch_size=8,
        folder=tmp_path / "a",
        progress=seen.append,
    )
    assert [p.done for p in seen] == [24, 32, 40, 48, 56, 60]
    assert seen[0].skipped == 2
    assert (seen[1].rate, seen[1].eta) == (
        8,
        28 / 8,
    )  # of this run; earlier batches are not counted


def test_a_folder_with_another_extraction_is_refused(
    stop_after, make_backbone, make_split, tmp_path
):
    partial = stop_after(tmp_path / "a", 3)
    identity = {"key": "other", "width": 8}
    with pytest.raises(
        ImprintError, match="holds part of another extraction: delete that folder"
    ):
        ExtractionJournal(partial, identity)
