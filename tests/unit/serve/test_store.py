"""The files of a project: kills, full disks, flipped bits, zeros, and the folders of earlier versions."""

import io
import json
import os
import shutil
import zlib
from contextlib import contextmanager, suppress

import numpy as np
import pytest
from PIL import Image

from imprint import backbones
from imprint.core.errors import FileError
from imprint.serve.imported import JOURNAL, journal_entries, migrate
from imprint.serve.project import Project
from imprint.serve.store import CACHE, MARK, PROJECT, ProjectCache, ProjectStore, digest_of

from .conftest import METHOD, picture

FLIPS = 300
ENTRIES = [{"do": "create", "label": f"class {i}"} for i in range(100)]
PICTURES = {digest_of(raw): raw for raw in (picture(i) for i in range(3))}


def flipped(path, seed):
    """Flip one bit of a file."""
    raw = bytearray(path.read_bytes())
    bit = int(np.random.default_rng(seed).integers(8 * len(raw)))
    raw[bit // 8] ^= 1 << bit % 8
    path.write_bytes(bytes(raw))


@contextmanager
def largest_file(size):
    """No file may grow beyond so many bytes; Python turns the signal into an error."""
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.fixture
def live(tmp_path):
    """A folder as a killed server leaves it: the last changes are in the log of the database only."""
    (tmp_path / "live").mkdir()
    store = ProjectStore(tmp_path / "live")
    store.commit(ENTRIES[:50], PICTURES)
    for entry in ENTRIES[50:]:
        store.commit([entry], {})
    shutil.copytree(tmp_path / "live", tmp_path / "killed")
    store.close()
    return tmp_path / "killed"


def entries_of(folder):
    store = ProjectStore(folder)
    try:
        for digest, content in PICTURES.items():
            with suppress(FileError):
                assert store.file(digest) == content
        return store.entries
    finally:
        store.close()


def restored(folder, source):
    shutil.rmtree(folder)
    shutil.copytree(source, folder)


def test_a_kill_loses_nothing(live):
    assert (live / f"{PROJECT}-wal").stat().st_size > 0
    assert entries_of(live) == ENTRIES


@pytest.mark.parametrize("closed", [False, True], ids=["in the log", "in the database"])
def test_a_flipped_bit_is_noticed_or_changes_nothing(live, tmp_path, closed):
    if closed:
        assert entries_of(live) == ENTRIES
    shutil.copytree(live, tmp_path / "original")
    noticed = 0
    for seed in range(FLIPS):
        flipped(live / (PROJECT if closed else f"{PROJECT}-wal"), seed)
        try:
            assert entries_of(live) == ENTRIES
        except FileError:
            noticed += 1
        restored(live, tmp_path / "original")
    assert noticed > FLIPS // 10


def test_zeros_at_the_end_of_the_log_are_noticed(live):
    log = live / f"{PROJECT}-wal"
    raw = log.read_bytes()
    log.write_bytes(raw[: len(raw) // 2] + bytes(len(raw) // 2))
    with pytest.raises(FileError, match=r"\d+ acknowledged changes are missing at its end; put back a copy"):
        ProjectStore(live)
    (live / MARK).unlink()
    assert ENTRIES[:50] <= entries_of(live) < ENTRIES


def test_a_lost_log_is_noticed(live):
    (live / f"{PROJECT}-wal").unlink()
    with pytest.raises(FileError):
        ProjectStore(live)


def test_a_damaged_mark_does_no_harm(live):
    for content in (b"", b"\0" * 20, b"99999999999999999999 aa\n", b"\xff"):
        (live / MARK).write_bytes(content)
        assert entries_of(live) == ENTRIES


@pytest.mark.skipif(os.name != "posix", reason="POSIX limits the size of files")
def test_a_full_disk_is_one_sentence_and_what_was_written_stays(tmp_path):
    store = ProjectStore(tmp_path)
    store.commit(ENTRIES[:1], {})
    with largest_file(60_000), pytest.raises(FileError, match=r"^Cannot write .*project\.sqlite: .*\.$"):
        store.commit(ENTRIES[1:2], {digest_of(bytes(10**6)): bytes(10**6)})
    store.commit(ENTRIES[2:3], {})
    store.close()
    assert entries_of(tmp_path) == [ENTRIES[0], ENTRIES[2]]


# What can be computed again


def test_flipped_bits_of_embeddings_are_embeddings_to_compute_again(tmp_path):
    names = [digest_of(bytes([i])) for i in range(5)]
    X = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    cache = ProjectCache(tmp_path, "network", 3)
    for name, row in zip(names, X):
        cache.keep(name, row)
    cache.close()
    another = ProjectCache(tmp_path, "another network", 3)
    assert not any(name in another for name in names)
    another.close()
    raw, lost = (tmp_path / CACHE).read_bytes(), 0
    for seed in range(FLIPS):
        flipped(tmp_path / CACHE, seed)
        cache = ProjectCache(tmp_path, "network", 3)
        assert all((cache[name] == row).all() for name, row in zip(names, X) if name in cache)
        lost += not all(name in cache for name in names)
        cache.close()
        for path in tmp_path.glob(f"{CACHE}*"):
            path.unlink()
        (tmp_path / CACHE).write_bytes(raw)
    assert lost > 5


@pytest.mark.skipif(os.name != "posix", reason="POSIX limits the size of files")
def test_previews_are_computed_where_there_is_no_room_or_damage(live):
    store, cache = ProjectStore(live), ProjectCache(live, "network", 3)
    digest = next(iter(PICTURES))
    with largest_file(100):
        jpeg = cache.preview(store, digest, "thumbnail")
        cache.keep(digest, np.zeros(3))
    assert Image.open(io.BytesIO(jpeg)).size == (24, 20)
    assert digest in cache
    assert cache.preview(store, digest, "thumbnail") == jpeg
    cache.close()
    for path in live.glob(f"{CACHE}*"):
        path.write_bytes(b"no database")
    cache = ProjectCache(live, "network", 3)
    assert cache.preview(store, digest, "thumbnail") == jpeg
    store.close()
    cache.close()


# In a project


def damage(project, digest):
    with project.store._database.transaction():
        project.store._database.execute("UPDATE files SET content = ? WHERE digest = ?", b"damaged", digest)


def test_a_damaged_picture_is_refused_left_out_of_the_archive_and_repaired_by_adding_it_again(client, project):
    import zipfile

    for i in range(3):
        client.add("top", i)
    damage(project, digest_of(picture(1)))
    status, told = client.json("GET", "/api/items/2/picture")
    assert (status, "add it again to repair it" in told["error"]) == (400, True)
    archive = zipfile.ZipFile(io.BytesIO(client.ask("GET", "/api/export/pictures.zip")[2]))
    assert [name.startswith("top/") for name in archive.namelist()] == [True, True, False]
    assert b"top/1-" in archive.read("damaged.txt")
    assert client.add("top", 1)[0] == 200
    assert client.ask("GET", "/api/items/2/picture")[0] == 200
    archive = zipfile.ZipFile(io.BytesIO(client.ask("GET", "/api/export/pictures.zip")[2]))
    assert len(archive.namelist()) == 3


def test_a_project_starts_without_a_picture_that_is_damaged_and_not_embedded(project, tmp_path):
    for i in range(3):
        project.add(picture(i), project.embed(picture(i), "a").result(), "top", f"{i}.png").result()
    damage(project, digest_of(picture(1)))
    project.close()
    for path in project.folder.glob(f"{CACHE}*"):
        path.unlink()
    again = Project(project.folder, "raw", backbones.load("raw"), METHOD)
    assert len(again.model().head.proxies.weights) == 2
    again.close()


def test_refused_labels_leave_nothing_behind(client, project):
    for i in range(20):
        assert client.json("POST", "/api/items?label=a%2Fb", picture(i))[0] == 400
    assert project.store._database.read("SELECT count(*) FROM files") == [(0,)]


# Folders of earlier versions


def old_folder(folder, entries, pictures):
    (folder / "pictures").mkdir(parents=True)
    mark, lines = 0, b""
    for entry in ({"journal": "imprint-serve", "version": 1}, *entries):
        text = json.dumps(entry, sort_keys=True).encode()
        mark = zlib.crc32(text, mark)
        lines += b"%08x %s\n" % (mark, text)
    (folder / JOURNAL).write_bytes(lines)
    for digest, raw in pictures.items():
        (folder / "pictures" / digest[:2]).mkdir(exist_ok=True)
        (folder / "pictures" / digest[:2] / digest).write_bytes(raw)
    return lines


def test_the_folder_of_an_earlier_version_is_migrated_once(tmp_path):
    adds = [{"do": "add", "label": "top", "name": "a.png", "digest": digest} for digest in PICTURES]
    lines = old_folder(tmp_path / "old", adds, PICTURES)
    for _ in range(2):
        project = Project(tmp_path / "old", "raw", backbones.load("raw"), METHOD)
        assert [project.content(item) for item in project.history.labelled.items.values()] == list(PICTURES.values())
        assert len(project.model().head.proxies.weights) == 3
        project.change({"do": "undo"}).result()
        project.change({"do": "redo"}).result()
        project.close()
    assert (tmp_path / "old" / JOURNAL).read_bytes() == lines
    assert not (tmp_path / "old" / "migration").exists()


def test_a_migration_that_was_killed_starts_again(tmp_path, monkeypatch):
    old_folder(tmp_path / "old", ENTRIES[:3], PICTURES)
    monkeypatch.setattr("imprint.serve.imported.os.replace", lambda *paths: exec("raise KeyboardInterrupt"))
    with pytest.raises(KeyboardInterrupt):
        migrate(tmp_path / "old")
    monkeypatch.undo()
    migrate(tmp_path / "old")
    assert entries_of(tmp_path / "old") == ENTRIES[:3]


def test_an_old_journal_is_read_up_to_a_line_cut_short_and_refused_where_it_is_damaged(tmp_path):
    lines = old_folder(tmp_path / "old", ENTRIES[:5], {})
    path = tmp_path / "old" / JOURNAL
    start = lines.rstrip(b"\n").rfind(b"\n") + 1
    for end in range(start, len(lines)):
        path.write_bytes(lines[:end])
        assert journal_entries(path) == ENTRIES[:4], end
    for damaged in (lines[:start] + bytes(len(lines) - start), lines[:-1] + b"\0", lines[:-1] + b"x"):
        path.write_bytes(damaged)
        with pytest.raises(FileError, match=r"line 6 is damaged; put back a copy of the file, or cut it after byte"):
            journal_entries(path)
    for seed in range(100):
        path.write_bytes(lines)
        flipped(path, seed)
        with pytest.raises(FileError, match=r"damaged|format"):
            journal_entries(path)
