"""The finished store: damage is refused in one sentence, and stores can be listed and opened."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from imprint.core.errors import FileError, ParameterError
from imprint.core.files.atomic import write_checked
from imprint.embeddings import extract, list_embeddings, open_embeddings

FILES = ["manifest.json", "rows.npy", "labels.npy", "names.json"]


@pytest.fixture
def stored(make_backbone, make_split, tmp_path):
    return extract(make_backbone(), make_split(30, [4]), folder=tmp_path)


def test_opens_by_key_and_by_path(stored, tmp_path):
    for e in (
        open_embeddings(stored.key, folder=tmp_path),
        open_embeddings(stored.folder),
    ):
        np.testing.assert_array_equal(e.X, stored.X)
        np.testing.assert_array_equal(e.y, stored.y)
        assert list(e.names) == list(stored.names)
        assert e.skipped == stored.skipped
        assert e.fingerprint == stored.fingerprint


def test_numpy_reads_the_rows_without_us(stored):
    np.testing.assert_array_equal(np.load(stored.folder / "rows.npy"), stored.X)


def test_another_process_reads_the_same(stored):
    code = "import sys; from imprint.embeddings import *; print(open_embeddings(sys.argv[1]).X.tobytes().hex())"
    out = subprocess.run(
        [sys.executable, "-c", code, stored.folder],
        capture_output=True,
        text=True,
        check=True,
    )
    assert bytes.fromhex(out.stdout.strip()) == stored.X.tobytes()


@pytest.mark.parametrize("name", FILES)
def test_every_flipped_bit_is_found(stored, name):
    path = stored.folder / name
    raw = path.read_bytes()
    for place in np.linspace(0, len(raw) - 1, 300).astype(int):
        damaged = bytearray(raw)
        damaged[place] ^= 4
        path.write_bytes(damaged)
        with pytest.raises(
            FileError, match=r"damaged \(.*\): delete that folder and extract again"
        ):
            open_embeddings(stored.folder)
    path.write_bytes(raw)
    open_embeddings(stored.folder)


@pytest.mark.parametrize("name", FILES[1:])
@pytest.mark.parametrize("change", ["shorter", "longer", "missing"])
def test_wrong_size_is_found_without_reading_the_rows(stored, name, change):
    path = stored.folder / name
    raw = path.read_bytes()
    path.unlink() if change == "missing" else path.write_bytes(
        raw[:-1] if change == "shorter" else raw + b"\0"
    )
    with pytest.raises(FileError, match=rf"damaged \({name} "):
        open_embeddings(stored.folder, verify=False)


@pytest.mark.parametrize("name", ["labels.npy", "names.json"])
def test_unverified_open_checks_labels_and_names(stored, name):
    raw = bytearray((stored.folder / name).read_bytes())
    raw[-8] ^= 1
    (stored.folder / name).write_bytes(raw)
    with pytest.raises(
        FileError, match=rf"damaged \({name} does not have its checksum"
    ):
        open_embeddings(stored.folder, verify=False)


def test_unverified_open_checks_the_header_but_not_the_rows(stored):
    path = stored.folder / "rows.npy"
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    open_embeddings(stored.folder, verify=False)
    raw[70] ^= 1
    path.write_bytes(raw)
    with pytest.raises(FileError, match="does not have its header"):
        open_embeddings(stored.folder, verify=False)


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", "[" * 100_000, '{"rows": 1}'])
def test_an_invalid_manifest_is_refused(stored, text):
    (stored.folder / "manifest.json").write_text(text)
    with pytest.raises(FileError, match=r"damaged \(manifest.json "):
        open_embeddings(stored.folder)


@pytest.mark.parametrize(
    "change",
    [
        dict(rows=-1),
        dict(rows=10**12, inputs=10**12 + 1),
        dict(width=9),
        dict(inputs=7),
        dict(files={}),
        dict(skipped=[4]),
        dict(skipped=[[4, "a"]]),
    ],
)
def test_a_forged_manifest_is_refused(stored, change):
    forged = json.loads((stored.folder / "manifest.json").read_text()) | change
    del forged["digest"]
    write_checked(stored.folder / "manifest.json", forged, "digest")
    with pytest.raises(FileError, match=r"damaged \(manifest.json "):
        open_embeddings(stored.folder)


def test_a_damaged_store_is_not_silently_replaced(
    stored, make_backbone, make_split, tmp_path
):
    (stored.folder / "rows.npy").write_bytes(b"")
    with pytest.raises(FileError, match="delete that folder and extract again"):
        extract(make_backbone(), make_split(30, [4]), folder=tmp_path)


def test_the_manifest_describes_the_store(stored, make_backbone, make_split):
    facts = json.loads((stored.folder / "manifest.json").read_text())
    assert facts["backbone"] == {
        "name": "projection",
        "fingerprint": make_backbone().fingerprint,
    }
    assert facts["data"] == {"fingerprint": make_split(30, [4]).fingerprint}
    assert (facts["rows"], facts["width"], facts["inputs"], facts["dtype"]) == (
        29,
        8,
        30,
        "<f4",
    )
    assert facts["skipped"] == [[4, "train/4", "the file is truncated"]]


def test_unknown_key_says_where_it_looked(tmp_path):
    with pytest.raises(
        ParameterError, match=r"open_embeddings\('abc'\): no embeddings"
    ):
        open_embeddings("abc", folder=tmp_path)


def test_list_shows_finished_and_damaged_stores_only(
    stored, make_backbone, make_split, tmp_path
):
    other = extract(make_backbone(5), make_split(10), folder=tmp_path)
    (tmp_path / f"{'0' * 32}.partial").mkdir()
    (other.folder / "names.json").unlink()
    listed = {s.key: s for s in list_embeddings(folder=tmp_path)}
    assert set(listed) == {stored.key, other.key}
    good = listed[stored.key]
    assert (good.backbone, good.rows, good.width, good.skipped, good.problem) == (
        "projection",
        29,
        8,
        1,
        None,
    )
    assert good.bytes == sum((stored.folder / n).stat().st_size for n in FILES[1:])
    assert "names.json is missing" in listed[other.key].problem
    assert list_embeddings(folder=tmp_path / "nowhere") == []


def test_unusual_names_survive(make_backbone, make_split, tmp_path):
    split = make_split(4)
    split.names = ["a\nb", "ß", "\udcff", '"']
    e = extract(make_backbone(), split, folder=tmp_path)
    assert list(open_embeddings(e.folder).names) == split.names


def test_the_files_reach_the_disk_before_the_manifest_does(
    make_backbone, make_split, tmp_path, monkeypatch
):
    synced, fsync = [], os.fsync
    monkeypatch.setattr(
        os,
        "fsync",
        lambda handle: synced.append(os.fstat(handle).st_ino) or fsync(handle),
    )
    e = extract(make_backbone(), make_split(30), folder=tmp_path)
    order = [
        synced.index((e.folder / name).stat().st_ino) for name in (*FILES[1:], FILES[0])
    ]
    assert order == sorted(order)
