"""However an extraction stops, the same call finishes it, repeats no finished batch, and gives the same bytes."""

import errno
import itertools
import json
import random
import shutil
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from imprint.core.errors import FileError
from imprint.embeddings import extract, journal

BAD = (3, 21)


class Stop(BaseException):
    """Not an Exception, like a kill or Ctrl-C."""


@pytest.fixture
def undisturbed(make_backbone, make_split, tmp_path, contents):
    e = extract(make_backbone(), make_split(60, BAD), batch_size=8, folder=tmp_path / "undisturbed")
    return contents(e.folder)


@pytest.fixture
def finish(make_backbone, make_split, contents):
    """Finish an extraction; returns the store's bytes and how many batches that took."""

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
def test_finished_batches_are_not_repeated(stop_after, finish, undisturbed, tmp_path, batches, error):
    stop_after(tmp_path / "a", batches, error)
    assert finish(tmp_path / "a") == (undisturbed, 8 - batches)


def test_stopping_after_every_batch(stop_after, finish, undisturbed, tmp_path):
    for _ in range(7):
        stop_after(tmp_path / "a", 1)
    assert finish(tmp_path / "a") == (undisturbed, 1)


def test_torn_files_are_cut_back_to_the_last_whole_batch(stop_after, finish, undisturbed, tmp_path):
    """A kill may fall between any two writes, a power failure may lose the end of either file."""
    partial, rng = stop_after(tmp_path / "a", 6), random.Random(0)
    kept = tmp_path / "kept"
    shutil.copytree(partial, kept)
    sizes = {name: (kept / name).stat().st_size for name in (journal.JOURNAL, journal.ROWS)}
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


def test_what_is_not_committed_is_cut_off(stop_after, undisturbed, tmp_path, contents):
    partial = stop_after(tmp_path / "a", 3)
    whole = contents(partial)
    with open(partial / journal.JOURNAL, "ab") as f:
        f.write(whole[journal.JOURNAL].splitlines(keepends=True)[-1])
    with open(partial / journal.ROWS, "ab") as f:
        f.write(b"rows without a line")
    stop_after(tmp_path / "a", 0)
    assert contents(partial) == whole


def test_a_line_without_its_end_is_not_a_line(stop_after, finish, undisturbed, tmp_path):
    partial = stop_after(tmp_path / "a", 3)
    with open(partial / journal.JOURNAL, "r+b") as f:
        f.truncate((partial / journal.JOURNAL).stat().st_size - 1)
    stop_after(tmp_path / "a", 1)
    assert finish(tmp_path / "a") == (undisturbed, 5)


@pytest.mark.parametrize("name", [journal.JOURNAL, journal.ROWS])
def test_lost_pages_are_found_and_computed_again(stop_after, finish, undisturbed, tmp_path, name):
    """After a power failure a file may have its length but not its content."""
    path = stop_after(tmp_path / "a", 6) / name
    raw = bytearray(path.read_bytes())
    raw[-160:-96] = bytes(64)
    path.write_bytes(raw)
    stored, repeated = finish(tmp_path / "a")
    assert stored == undisturbed
    assert 3 <= repeated <= 7


@pytest.mark.parametrize("name", [journal.JOURNAL, journal.ROWS])
def test_300_flipped_bits_are_300_batches_or_more_to_compute_again(stop_after, tmp_path, name):
    """Whatever is flipped, what the journal counts as done is what was written."""
    partial = stop_after(tmp_path / "a", 6)
    files = {path: path.read_bytes() for path in partial.iterdir()}
    identity = json.loads(files[partial / journal.JOURNAL].splitlines()[0].partition(b" ")[2])
    with journal.ExtractionJournal(partial, identity) as whole:
        assert (whole.done, whole.rows) == (48, 46)
    for seed in range(300):
        for path, content in files.items():
            path.write_bytes(content)
        first = 8 * journal.HEADER if name == journal.ROWS else 0  # the header is written last
        bit = int(np.random.default_rng(seed).integers(first, 8 * len(files[partial / name])))
        damaged = bytearray(files[partial / name])
        damaged[bit // 8] ^= 1 << bit % 8
        (partial / name).write_bytes(damaged)
        with journal.ExtractionJournal(partial, identity) as again:
            assert again.done < 48
            assert again.skipped == whole.skipped[: len(again.skipped)]
            size = journal.HEADER + 4 * again.rows * again.width
        assert (partial / journal.ROWS).read_bytes() == files[partial / journal.ROWS][:size]


@pytest.mark.parametrize("step", ["_write_labels", "write_names", "write_manifest", "publish", "rename", "unlink"])
def test_stopping_while_finishing(stop_after, finish, undisturbed, tmp_path, monkeypatch, step):
    def stop(*_, **__):
        raise Stop

    with monkeypatch.context() as m:
        if step == "publish":
            m.setattr(sys.modules["imprint.embeddings.extract"], "publish", stop)
        elif step == "rename":
            m.setattr("os.rename", stop)
        elif step == "unlink":
            m.setattr("pathlib.Path.unlink", stop)
        else:
            m.setattr(journal, step, stop)
        with pytest.raises(Stop):
            finish(tmp_path / "a")
    assert finish(tmp_path / "a") == (undisturbed, 0)


@pytest.mark.parametrize("room", [0, 100, 500, 1000, 1500, 2000])
def test_a_full_disk_is_one_sentence_and_resumable(finish, undisturbed, tmp_path, monkeypatch, room):
    left, honest = [room], journal._write

    def write(f, raw):
        honest(f, raw[: left[0]])
        left[0] -= min(len(raw), left[0])
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as m:
        m.setattr(journal, "_write", write)
        with pytest.raises(FileError, match=r"Cannot write .*: No space left on device; finished batches are kept"):
            finish(tmp_path / "a")
    (lines,) = (tmp_path / "a").glob("*.partial/journal")
    kept = max(lines.read_bytes().count(b"\n") - 1, 0)
    assert kept >= room // 600
    assert finish(tmp_path / "a") == (undisturbed, 8 - kept)


def test_another_batch_size_goes_on_from_there(stop_after, make_backbone, make_split, tmp_path):
    stop_after(tmp_path / "a", 3)
    backbone = make_backbone()
    e = extract(backbone, make_split(60, BAD), batch_size=36, folder=tmp_path / "a")
    assert backbone.batches == [36]
    whole = extract(backbone, make_split(60, BAD), folder=tmp_path / "b")
    np.testing.assert_allclose(e.X, whole.X, rtol=1e-5, atol=1e-6)


def test_progress_goes_on_where_it_stopped(stop_after, make_backbone, make_split, tmp_path, monkeypatch):
    stop_after(tmp_path / "a", 3)
    clock = SimpleNamespace(monotonic=itertools.count().__next__)
    monkeypatch.setattr(sys.modules["imprint.embeddings.pipeline"], "time", clock)
    seen = []
    extract(make_backbone(), make_split(60, BAD), batch_size=8, folder=tmp_path / "a", progress=seen.append)
    assert [p.done for p in seen] == [24, 32, 40, 48, 56, 60]
    assert seen[0].skipped == 2
    assert (seen[1].rate, seen[1].eta) == (8, 28 / 8)  # of this run: what was done before does not count


def test_a_folder_with_another_extraction_is_refused(stop_after, make_backbone, make_split, tmp_path):
    partial = stop_after(tmp_path / "a", 3)
    identity = {"key": "other", "width": 8}
    with pytest.raises(FileError, match="holds part of another extraction: delete that folder"):
        journal.ExtractionJournal(partial, identity)
