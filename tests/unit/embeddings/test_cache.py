"""Embedded inputs are found in the cache by content; damaged entries are computed again."""

import multiprocessing
import os
import random
import shutil
import signal
import sys
import time

import numpy as np
import pytest
from PIL import Image

from imprint.core.errors import ParameterError
from imprint.datasets import load, load_files
from imprint.embeddings import embed
from imprint.embeddings.embed import EmbeddingCache, content_key


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def photos(tmp_path):
    rng = np.random.default_rng(0)
    for i in range(20):
        path = tmp_path / "photos" / "ab"[i % 2] / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (4, 4, 3), np.uint8)).save(path)
    return tmp_path / "photos"


def cache_file(home):
    (path,) = (home / "embeddings" / "cache").iterdir()  # no log file remains
    assert path.suffix == ".sqlite"
    return path


def test_cached_and_new_rows_are_those_of_the_backbone(photos, make_backbone):
    split, backbone = load(photos), make_backbone(pixels=48)
    plain = backbone.embed(
        np.stack([backbone.prepare(x) for x in (split.inputs[i] for i in range(20))])
    )
    new, again, none = (
        embed(backbone, split),
        embed(backbone, split),
        embed(backbone, split, remember=False),
    )
    assert [e.known for e in (new, again, none)] == [0, 20, 0]
    for e in (new, again, none):
        np.testing.assert_allclose(e.X, plain, rtol=1e-6)
        assert e.index.tolist() == list(range(20))
    np.testing.assert_array_equal(new.X, again.X)


def test_only_new_images_are_embedded_after_moves_and_renames(
    photos, make_backbone, tmp_path
):
    first = embed(make_backbone(pixels=48), load(photos))
    moved = tmp_path / "moved" / "c"
    shutil.copytree(photos / "a", moved)
    (moved / "0.png").rename(moved / "renamed.png")
    Image.new("RGB", (4, 4), "red").save(moved / "new.png")
    (moved / "bad.png").write_bytes(b"no image")
    backbone, given = (
        make_backbone(pixels=48),
        load_files([moved, photos / "b" / "1.png"]),
    )
    embedded = embed(backbone, given)
    assert (backbone.batches, embedded.known, len(embedded.X)) == ([1], 11, 12)
    bad = str(moved / "bad.png")
    assert [(s.name, s.index) for s in embedded.skipped] == [
        (bad, list(given.names).index(bad))
    ]
    last = load(photos).names.index("b/1.png")
    np.testing.assert_array_equal(embedded.X[-1], first.X[last])


def test_changed_content_of_the_same_size_and_time_is_another_image(
    photos, make_backbone
):
    path = photos / "a" / "0.png"
    Image.new("L", (4, 4), 10).save(path.with_suffix(".bmp"))
    split = load(photos)
    before, facts = (
        embed(make_backbone(pixels=48), split),
        path.with_suffix(".bmp").stat(),
    )
    raw = bytearray(path.with_suffix(".bmp").read_bytes())
    raw[-8] ^= 255
    path.with_suffix(".bmp").write_bytes(raw)
    os.utime(path.with_suffix(".bmp"), ns=(facts.st_atime_ns, facts.st_mtime_ns))
    after = embed(make_backbone(pixels=48), split)
    assert after.known == 20
    assert (before.X != after.X).any(axis=1).sum() == 1


def test_texts_and_arrays_are_cached_too(make_backbone, make_split):
    backbone = make_backbone()
    assert [embed(backbone, make_split(n)).known for n in (50, 60, 60)] == [
        0,
        50,
        60,
    ]  # the first 50 are the same
    assert (
        content_key("a")
        != content_key(b"a")
        != content_key(np.frombuffer(b"a", np.uint8))
    )


def test_another_backbone_shares_nothing(make_backbone, make_split):
    embed(make_backbone(8), make_split(10))
    assert embed(make_backbone(9), make_split(10)).known == 0


def test_flipped_bits_are_noticed(own_home, make_backbone, make_split):
    """300 flips anywhere in the file: rows are correct or missing, and `embed` repairs the cache."""
    split, rng, width = make_split(30), random.Random(0), 256
    right = embed(make_backbone(width), split).X
    path, keys = cache_file(own_home), [content_key(p) for p in split.inputs.pixels]
    whole, lost = path.read_bytes(), 0
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        X, known = EmbeddingCache(make_backbone(width).fingerprint, width).find(keys)
        np.testing.assert_array_equal(X[known], right[known])
        lost += int((~known).sum())
    assert (
        100 < lost < 3000
    )  # most flips lose one row, flips in a tree page more, in unused bytes none
    for at in (0, 20, 100, len(whole) // 2, len(whole) - 500):
        damaged = bytearray(whole)
        damaged[at : at + 64] = bytes(64)
        path.write_bytes(damaged)
        np.testing.assert_allclose(
            embed(make_backbone(width), split).X, right, atol=1e-6
        )  # smaller batches round
        assert embed(make_backbone(width), split).known == 30


def test_a_truncated_cache_costs_only_time(own_home, make_backbone, make_split):
    split = make_split(30)
    right = embed(make_backbone(), split).X
    path = cache_file(own_home)
    whole = path.read_bytes()
    for size in (0, 1, 99, 4095, 4097, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        np.testing.assert_allclose(embed(make_backbone(), split).X, right, atol=1e-6)
        assert embed(make_backbone(), split).known == 30
    path.write_bytes(b"this is not a database, but somebody's notes" * 100)
    np.testing.assert_allclose(embed(make_backbone(), split).X, right, atol=1e-6)
    assert embed(make_backbone(), split).known == 30
    path.unlink()
    np.testing.assert_allclose(embed(make_backbone(), split).X, right, atol=1e-6)


def _write(backbone, split, first):
    store = EmbeddingCache(backbone.fingerprint, backbone.width)
    for i in range(first, first + 100):
        store.add(
            [content_key(split.inputs.pixels[i])],
            backbone.embed(backbone.prepare(split.inputs.pixels[i])[None]),
        )


def test_several_processes_write_at_once(make_backbone, make_split):
    backbone, split = make_backbone(), make_split(400)
    context = multiprocessing.get_context("fork")
    writers = [
        context.Process(target=_write, args=(backbone, split, first))
        for first in (0, 100, 200, 300)
    ]
    for w in writers:
        w.start()
    for w in writers:
        w.join()
    X, known = EmbeddingCache(backbone.fingerprint, 8).find(
        [content_key(p) for p in split.inputs.pixels]
    )
    assert known.all()
    right = backbone.embed(np.stack([backbone.prepare(p) for p in split.inputs.pixels]))
    np.testing.assert_allclose(X, right, atol=1e-6)


def test_a_home_that_cannot_be_written_is_reported_and_costs_only_time(
    own_home, make_backbone, make_split
):
    own_home.write_text("not a folder")
    result = embed(make_backbone(), make_split(10))
    assert len(result.X) == 10
    assert result.problem.startswith(
        f"The new embeddings are not cached: Cannot make the folder {own_home}"
    )


@pytest.mark.skipif(
    sys.platform != "linux",
    reason="the size of files is limited by signals on Linux only",
)
def test_a_full_disk_is_reported_and_keeps_what_was_cached(make_backbone, make_split):
    resource = pytest.importorskip("resource")
    assert embed(make_backbone(64), make_split(40)).problem is None
    before, handler = (
        resource.getrlimit(resource.RLIMIT_FSIZE),
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
    )
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, before[1]))
        result = embed(make_backbone(64), make_split(400))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert (len(result.X), result.known) == (400, 40)
    assert result.problem.startswith("The new embeddings are not cached: Cannot write ")
    assert embed(make_backbone(64), make_split(400)).known >= 40
    assert embed(make_backbone(64), make_split(400)).known == 400


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_killed_writers_leave_a_valid_cache(make_backbone, make_split):
    backbone, split = make_backbone(), make_split(400)
    context = multiprocessing.get_context("fork")
    for kill in range(5):
        writer = context.Process(target=_write, args=(backbone, split, 0))
        writer.start()
        time.sleep(0.02 + 0.02 * kill)
        writer.kill()
        writer.join()
        X, known = EmbeddingCache(backbone.fingerprint, 8).find(
            [content_key(p) for p in split.inputs.pixels]
        )
        rows = backbone.embed(
            np.stack([backbone.prepare(p) for p in split.inputs.pixels])
        )
        np.testing.assert_allclose(X[known], rows[known], atol=1e-6)
        assert known.tolist() == sorted(
            known, reverse=True
        )  # a prefix: every finished write is kept
    assert embed(backbone, split).known == known.sum()
    assert embed(backbone, split).known == 400


def test_counts_are_checked(make_backbone, make_split):
    with pytest.raises(
        ParameterError, match=r"embed\(batch_size=0\): batch_size must be int >= 1"
    ):
        embed(make_backbone(), make_split(3), batch_size=0)
