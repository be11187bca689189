"""What a classroom keeps beside its journal is read back as it was written, is made again, or is refused."""

import io
import os
from contextlib import contextmanager

import numpy as np
import pytest
from PIL import Image

from imprint.core.errors import FileError
from imprint.serve.store import Pictures, Rows, digest_of

FLIPS = 300


def flipped(path, seed):
    """Turn one bit of a file round."""
    raw = bytearray(path.read_bytes())
    place = int(np.random.default_rng(seed).integers(8 * len(raw)))
    raw[place // 8] ^= 1 << place % 8
    path.write_bytes(bytes(raw))


@contextmanager
def room_for(size):
    """No file may grow beyond so many bytes; Python turns the signal into an error."""
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.fixture
def raw():
    out = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (20, 24, 3), dtype=np.uint8)).save(out, "PNG")
    return out.getvalue()


def test_flipped_bits_of_pictures_are_refused_and_of_what_is_shown_made_again(tmp_path, raw):
    pictures = Pictures(tmp_path / "pictures")
    digest = pictures.keep(raw)
    shown = pictures.shown(digest, "thumbnail")
    assert Image.open(io.BytesIO(shown)).size == (24, 20)
    (kept,) = (p for p in (tmp_path / "pictures").rglob("*") if p.is_file())
    (cached,) = (p for p in (tmp_path / "shown").rglob("*") if p.is_file())
    for seed in range(FLIPS):
        flipped(cached, seed)
        assert pictures.shown(digest, "thumbnail") == shown
        flipped(kept, seed)
        with pytest.raises(FileError, match="the file is damaged"):
            pictures.read(digest)
        kept.write_bytes(raw)


def test_flipped_bits_of_rows_are_rows_to_compute_again(tmp_path):
    path, names = tmp_path / "rows", [digest_of(bytes([i])) for i in range(5)]
    X = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    rows = Rows(path, 3)
    for name, row in zip(names, X):
        rows.keep(name, row)
    rows.close()
    whole = path.read_bytes()
    for seed in range(FLIPS):
        flipped(path, seed)
        rows = Rows(path, 3)
        assert sum(name in rows for name in names) == 4
        assert all((rows[name] == row).all() for name, row in zip(names, X) if name in rows)
        rows.close()
        path.write_bytes(whole)


@pytest.mark.skipif(os.name != "posix", reason="POSIX limits the size of files")
def test_a_full_disk_costs_time_or_is_one_sentence(tmp_path, raw):
    pictures, rows = Pictures(tmp_path / "pictures"), Rows(tmp_path / "rows", 3)
    digest, names = pictures.keep(raw), [digest_of(bytes([i])) for i in range(4)]
    X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    rows.keep(names[0], X[0])
    with room_for(70):  # one record of 48 bytes, and half of the next
        rows.keep(names[1], X[1])
        assert Image.open(io.BytesIO(pictures.shown(digest, "thumbnail"))).size == (24, 20)
        with pytest.raises(FileError, match=r"^Cannot write .*: File too large\.$"):
            pictures.keep(raw + b"other")
    rows.keep(names[2], X[2])
    rows.close()
    again = Rows(tmp_path / "rows", 3)
    assert [name in again for name in names] == [True, False, True, False]
    again.close()
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(FileError, match=r"^Cannot make the folder .*: Not a directory\.$"):
        Pictures(tmp_path / "file" / "pictures").keep(raw)
