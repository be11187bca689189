"""The files of a project: kills, full disks, flipped bits, zeroed bytes, and folders of earlier versions."""

import io
import os
import shutil
import wave
from contextlib import contextmanager, suppress

import numpy as np
import pytest

from imprint import backbones
from imprint.core.errors import FileError
from imprint.serve.project import Project
from imprint.serve.store import (
    CACHE,
    MARK,
    PROJECT,
    ProjectCache,
    ProjectStore,
    digest_of,
    facts_of,
)
from imprint.serve.view import preview

from .conftest import METHOD, image

FLIPS = 150
ENTRIES = [{"do": "create", "label": f"class {i}"} for i in range(100)]
IMAGES = {digest_of(raw): raw for raw in (image(i) for i in range(3))}


def flipped(path, seed):
    """Flip one bit of a file."""
    raw = bytearray(path.read_bytes())
    bit = int(np.random.default_rng(seed).integers(8 * len(raw)))
    raw[bit // 8] ^= 1 << bit % 8
    path.write_bytes(bytes(raw))


@contextmanager
def largest_file(size):
    """Limit the size of files in bytes; Python converts the signal to an error."""
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.fixture
def live(tmp_path):
    """A folder after a kill: the last changes are only in the log of the database."""
    (tmp_path / "live").mkdir()
    store = opened(tmp_path / "live")
    store.commit(ENTRIES[:50], IMAGES)
    for entry in ENTRIES[50:]:
        store.commit([entry], {})
    shutil.copytree(tmp_path / "live", tmp_path / "killed")
    store.close()
    return tmp_path / "killed"


def opened(folder):
    """Open a store and check its changes."""
    store = ProjectStore(folder)
    try:
        store.entries()
    except BaseException:
        store.close()
        raise
    return store


def entries_of(folder):
    store = opened(folder)
    try:
        for digest, content in IMAGES.items():
            with suppress(FileError):
                assert store.file(digest) == content
        return store.entries()
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
    with pytest.raises(
        FileError,
        match=r"\d+ acknowledged changes are missing at its end; restore a copy",
    ):
        opened(live)
    (live / MARK).unlink()
    assert ENTRIES[:50] <= entries_of(live) < ENTRIES


def test_a_missing_log_is_noticed(live):
    (live / f"{PROJECT}-wal").unlink()
    with pytest.raises(FileError):
        opened(live)


def test_a_damaged_mark_does_no_harm(live):
    for content in (b"", b"\0" * 20, b"99999999999999999999 aa\n", b"\xff"):
        (live / MARK).write_bytes(content)
        assert entries_of(live) == ENTRIES


@pytest.mark.skipif(os.name != "posix", reason="POSIX limits the size of files")
def test_a_full_disk_is_one_sentence_and_what_was_written_stays(tmp_path):
    store = opened(tmp_path)
    store.commit(ENTRIES[:1], {})
    with (
        largest_file(60_000),
        pytest.raises(FileError, match=r"^Cannot write .*project\.sqlite: .*\.$"),
    ):
        store.commit(ENTRIES[1:2], {digest_of(bytes(10**6)): bytes(10**6)})
    store.commit(ENTRIES[2:3], {})
    store.close()
    assert entries_of(tmp_path) == [ENTRIES[0], ENTRIES[2]]


def test_a_damaged_fact_is_refused(tmp_path):
    store = opened(tmp_path)
    store.set_facts({"backbone": "raw", "name": "birds"})
    store._database.execute(
        "UPDATE facts SET value = 'tinynet' WHERE name = 'backbone'"
    )
    store.close()
    with pytest.raises(
        FileError, match=r"the fact 'backbone' is damaged; restore a copy"
    ):
        facts_of(tmp_path)


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
        assert all(
            (cache[name] == row).all() for name, row in zip(names, X) if name in cache
        )
        lost += not all(name in cache for name in names)
        cache.close()
        for path in tmp_path.glob(f"{CACHE}*"):
            path.unlink()
        (tmp_path / CACHE).write_bytes(raw)
    assert lost > 2


@pytest.mark.skipif(os.name != "posix", reason="POSIX limits the size of files")
def test_a_cache_that_cannot_be_written_or_read_does_no_harm(tmp_path):
    cache = ProjectCache(tmp_path, "network", 3)
    with largest_file(100):
        cache.keep("digest", np.ones(3))
    assert cache["digest"].tolist() == [1, 1, 1]
    cache.close()
    for path in tmp_path.glob(f"{CACHE}*"):
        path.write_bytes(b"no database")
    cache = ProjectCache(tmp_path, "network", 3)
    assert "digest" not in cache
    cache.close()


# In a project


def damage(project, digest):
    with project.store._database.transaction():
        project.store._database.execute(
            "UPDATE files SET content = ? WHERE digest = ?", b"damaged", digest
        )


def test_a_damaged_image_is_refused_left_out_of_the_archive_and_repaired_by_adding_it_again(
    client, project
):
    import zipfile

    for i in range(3):
        client.add("top", i)
    damage(project, digest_of(image(1)))
    status, reply = client.json("GET", "/api/items/2/image")
    assert (status, "add it again to repair it" in reply["error"]) == (400, True)
    archive = zipfile.ZipFile(
        io.BytesIO(client.ask("GET", "/api/export/examples.zip")[2])
    )
    assert [name.startswith("top/") for name in archive.namelist()] == [
        True,
        True,
        False,
    ]
    assert b"top/1-" in archive.read("damaged.txt")
    assert client.add("top", 1)[0] == 200
    assert client.ask("GET", "/api/items/2/image")[0] == 200
    archive = zipfile.ZipFile(
        io.BytesIO(client.ask("GET", "/api/export/examples.zip")[2])
    )
    assert len(archive.namelist()) == 3


def test_a_project_starts_without_an_image_that_is_damaged_and_not_embedded(
    project, tmp_path
):
    for i in range(3):
        project.add(
            image(i), project.embed(image(i), "a").result(), "top", f"{i}.png"
        ).result()
    damage(project, digest_of(image(1)))
    project.close()
    for path in project.folder.glob(f"{CACHE}*"):
        path.unlink()
    again = Project(project.folder, "raw", backbones.load("raw"), METHOD)
    assert len(again.model().head.proxies.weights) == 2
    again.close()


def test_refused_labels_leave_nothing_behind(client, project):
    for i in range(20):
        assert client.json("POST", "/api/items?label=a%3Ab", image(i))[0] == 400
    assert project.store._database.execute("SELECT count(*) FROM files") == [(0,)]


def test_the_folder_of_an_earlier_version_is_refused_with_the_way_to_migrate_it(
    tmp_path,
):
    (tmp_path / "journal").write_bytes(b"")
    with pytest.raises(
        FileError,
        match=r"earlier version: save its examples on its page with that version",
    ):
        Project(tmp_path, "raw", backbones.load("raw"), METHOD)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal", "lock"]


# What the page shows


def test_sounds_and_texts_are_shown_as_such_and_encoded_again():
    from imprint.modalities import modality

    out = io.BytesIO()
    with wave.open(out, "wb") as sound:
        sound.setparams((2, 2, 8000, 0, "NONE", ""))
        sound.writeframes(np.repeat(np.array([0, 16384, -16384], "<i2"), 2).tobytes())
    hidden = out.getvalue() + b"LIST\x08\x00\x00\x00<script>"
    kind, raw = preview(modality("sound"), hidden, 224)
    assert (kind, b"script" in raw) == ("audio/wav", False)
    with wave.open(io.BytesIO(raw)) as sound:
        assert (sound.getnchannels(), sound.getframerate(), sound.getnframes()) == (
            1,
            8000,
            3,
        )
        assert np.allclose(
            np.frombuffer(sound.readframes(3), "<i2"), [0, 16384, -16384], atol=1
        )
    assert preview(modality("text"), b" hello ", 224) == (
        "text/plain; charset=utf-8",
        b"hello",
    )
    assert preview(modality("image"), image(1), 10)[0] == "image/jpeg"


@pytest.mark.parametrize(
    ("name", "kind", "suffix"),
    [
        ("camera", "png", ".png"),
        ("", "jpeg", ".jpg"),
        ("scan.2024", "png", ".png"),
        ("notes.txt", "webp", ".webp"),
        ("odd.jpg", "png", ".jpg"),
    ],
)
def test_exported_images_have_a_suffix_by_which_a_folder_is_read(
    client, tmp_path, name, kind, suffix
):
    import zipfile

    from imprint import datasets

    for label, shade in (("top", 0), ("bottom", 1)):
        status, _ = client.json(
            "POST",
            f"/api/items?label={label}&name={name}",
            image(5, kind, shade=shade),
        )
        assert status == 201
    raw = client.ask("GET", "/api/export/examples.zip")[2]
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "out")
    assert all(path.endswith(suffix) for path in names), names
    assert len(datasets.load(tmp_path / "out")) == 2


def test_images_that_an_earlier_version_stored_without_a_suffix(client, project):
    import zipfile

    raw = image(3)
    row = project.embed(raw, "x").result()
    project.rows.keep(digest_of(raw), row)
    entry = {"do": "add", "label": "top", "name": "image", "digest": digest_of(raw)}
    project.change(entry, raw).result()
    exported = client.ask("GET", "/api/export/examples.zip")[2]
    with zipfile.ZipFile(io.BytesIO(exported)) as archive:
        assert [name.endswith(".png") for name in archive.namelist()] == [True]


def test_a_flipped_bit_loses_no_name_or_backbone_silently(tmp_path):
    (tmp_path / "live").mkdir()
    store = opened(tmp_path / "live")
    store.commit(ENTRIES[:3], {})
    store.set_facts({"name": "first", "backbone": "raw"})
    store.set_facts({"name": "second", "backbone": "tinynet"})
    shutil.copytree(tmp_path / "live", tmp_path / "killed")
    store.close()
    expected = {"name": "second", "backbone": "tinynet"}
    noticed = 0
    for seed in range(FLIPS):
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        shutil.copytree(tmp_path / "killed", tmp_path / "copy")
        flipped(tmp_path / "copy" / f"{PROJECT}-wal", seed)
        try:
            damaged = ProjectStore(tmp_path / "copy")
        except FileError:
            noticed += 1
            continue
        try:
            facts = damaged.facts()
            assert {name: facts[name] for name in expected} == expected
            damaged.entries()
        except FileError:
            noticed += 1
        finally:
            damaged.close()
    assert noticed > FLIPS / 10


def test_a_lost_fact_is_named_with_the_remedy(tmp_path):
    (tmp_path / "live").mkdir()
    store = opened(tmp_path / "live")
    store.commit(ENTRIES[:3], {})
    store.set_facts({"name": "first"})
    log = tmp_path / "live" / f"{PROJECT}-wal"
    before = log.stat().st_size
    store.set_facts({"name": "second"})
    shutil.copytree(tmp_path / "live", tmp_path / "killed")
    store.close()
    os.truncate(tmp_path / "killed" / f"{PROJECT}-wal", before)
    damaged = ProjectStore(tmp_path / "killed")
    with pytest.raises(FileError, match="its name or another setting is missing"):
        damaged.facts()
    (tmp_path / "killed" / MARK).unlink()
    assert damaged.facts()["name"] == "first"
    # later changes and settings are marked again
    assert len(damaged.entries()) == 3
    damaged.set_facts({"name": "third"})
    damaged.commit(ENTRIES[3:4], {})
    assert damaged.facts()["name"] == "third"
    damaged.close()
    again = opened(tmp_path / "killed")
    assert (again.revision, again.facts()["name"]) == (4, "third")
    again.close()


def test_a_mark_of_an_earlier_version_counts_for_changes_only(tmp_path):
    (tmp_path / "live").mkdir()
    store = opened(tmp_path / "live")
    store.commit(ENTRIES[:3], {})
    store.set_facts({"name": "a"})
    mark = tmp_path / "live" / MARK
    mark.write_bytes(mark.read_bytes().split(b"\n")[0] + b"\n")
    assert store.facts()["name"] == "a"
    store.close()
