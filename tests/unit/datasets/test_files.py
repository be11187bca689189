"""Inputs in files: the content must match its fingerprint when it is read, here and on other machines."""

import pickle
import shutil

import numpy as np
import pytest
from PIL import Image

from imprint.core.errors import FileError
from imprint.core.files.atomic import read_checked
from imprint.datasets import files, load


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def image(path, shade):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (6, 5), shade).save(path)


@pytest.fixture
def photos(tmp_path):
    for i in range(6):
        image(tmp_path / "photos" / f"class {i % 2}" / f"{i}.png", 40 * i)
    return tmp_path / "photos"


def test_300_flipped_bits_of_a_remembered_fingerprint(photos, monkeypatch, own_home):
    monkeypatch.setattr(files, "CLOCK_STEP", -1e9)
    first = load(photos).fingerprint
    (note,) = (own_home / "fingerprints").iterdir()
    content = note.read_bytes()
    assert len(read_checked(note, {"digests": list})["digests"]) == 6
    for bit in np.random.default_rng(0).integers(8 * len(content), size=300).tolist():
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        note.write_bytes(damaged)
        with pytest.raises(OSError, match=r"damaged|missing"):
            read_checked(note, {"digests": list})
    assert load(photos).fingerprint == first


def test_a_file_that_changed_after_its_fingerprint_is_refused(photos):
    """Also in a slice, which the nodes of a cluster receive."""
    split = load(photos)
    assert len(split.fingerprint) == 64
    part = pickle.loads(pickle.dumps(split.inputs[1:3]))
    assert np.array_equal(part[0], split.inputs[1])
    path = photos / split.names[1]
    content = path.read_bytes()
    for change in (
        lambda: image(path, 77),
        lambda: path.write_bytes(b""),
        path.unlink,
        path.mkdir,
    ):
        change()
        for inputs, i in ((split.inputs, 1), (part, 0)):
            with pytest.raises(
                FileError,
                match=r"has changed since its fingerprint was computed, or differs on",
            ):
                inputs[i]
    path.rmdir()
    path.write_bytes(content)
    assert np.array_equal(part[0], split.inputs[1])


def test_the_splits_of_a_zip_have_their_own_fingerprints(tmp_path, monkeypatch):
    """Files of both splits have the same names, and the archive has a single modification time."""
    monkeypatch.setattr(files, "CLOCK_STEP", -1e9)
    for i, part in enumerate(("train", "test")):
        for j, label in enumerate(("a", "b")):
            image(tmp_path / "data" / part / label / "1.png", 100 * i + j)
    path = shutil.make_archive(str(tmp_path / "data"), "zip", tmp_path / "data")
    train, test = load(path), load(path, "test")
    assert train.fingerprint != test.fingerprint
    assert [int(test.inputs[i][0, 0, 0]) for i in range(2)] == [100, 101]
