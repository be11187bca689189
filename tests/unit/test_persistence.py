"""One file per model: whole, checked, and nothing in it that runs."""

import json
import os
import struct
import time

import numpy as np
import pytest

from imprint import ImprintClassifier, persistence
from imprint.core.errors import FileError, ParameterError

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(30, 5)).astype(np.float32), np.repeat(["ant", "bee", "ünïcode 🐝"], 10)


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "m.imprint"
    ImprintClassifier(generator="kmeans(k=2)", random_state=3).fit(X, Y).save(path)
    return path


def test_round_trip_of_every_label_type(tmp_path):
    for labels in (
        Y,
        np.arange(30) % 3,
        (np.arange(30) % 3).astype(np.uint8),
        np.arange(30) % 2 == 0,
        (Y == "ant") * 1.0,
        np.repeat(np.array([2**64 - 1, 2], np.uint64), 15),
        np.char.add(Y, "\udce9"),  # the name of a folder that is not UTF-8
    ):
        clf = ImprintClassifier(generator="mean").fit(X, labels)
        clf.save(tmp_path / "m")
        back = ImprintClassifier.load(tmp_path / "m")
        assert back.classes_.dtype == clf.classes_.dtype
        assert np.array_equal(back.predict(X), clf.predict(X))
        assert back.partial_fit(X[:1], labels[:1]).predict(X).dtype == clf.classes_.dtype


def test_the_file_is_safetensors_and_json(model):
    raw = model.read_bytes()
    (n,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + n])
    document = json.loads(json.loads(header["__metadata__"]["imprint-model"])["document"])
    assert document["parts"]["generator"] == "kmeans(k=2)"
    assert document["labels"]["imprinted"] == ["ant", "bee", "ünïcode 🐝"]
    assert "weights" in header
    assert b"pickle" not in raw


def test_same_model_same_bytes(model, tmp_path):
    ImprintClassifier(generator="kmeans(k=2)", random_state=3).fit(X, Y).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == model.read_bytes()


def test_every_truncation_is_refused(model):
    raw = model.read_bytes()
    for n in [*range(0, 200, 7), *range(200, len(raw), 101), len(raw) - 1]:
        model.write_bytes(raw[:n])
        with pytest.raises(FileError, match=r"(not an imprint model|damaged or was altered)") as e:
            ImprintClassifier.load(model)
        assert "\n" not in str(e.value)


def test_every_altered_byte_is_refused(model):
    raw = model.read_bytes()
    for at in [*range(0, 64), *range(64, len(raw), 37), len(raw) - 1]:
        model.write_bytes(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])
        with pytest.raises(FileError) as e:
            ImprintClassifier.load(model)
        assert "\n" not in str(e.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not an imprint model"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "not an imprint model"),
        (b"\x80\x04\x95" + bytes(100), "not an imprint model"),
        (struct.pack("<Q", 2**62) + b"{}", "not an imprint model"),
        (struct.pack("<Q", 2) + b"{}", "not an imprint model"),
        (struct.pack("<Q", 10) + b"[[[[[[[[[[", "not an imprint model"),
        (b"just some text that is long enough to look like a header", "not an imprint model"),
    ],
)
def test_foreign_files_are_refused(tmp_path, content, says):
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(FileError, match=says):
        ImprintClassifier.load(tmp_path / "f")


def test_another_programs_safetensors_is_refused(tmp_path):
    from safetensors.numpy import save_file

    save_file({"w": X}, tmp_path / "f", metadata={"format": "pt"})
    with pytest.raises(FileError, match="not an imprint model"):
        ImprintClassifier.load(tmp_path / "f")


def rewritten(model, change):
    """The same file with another document, sealed as if we had written it: a hostile author, not an accident."""
    document, arrays = persistence.read(model)
    document, arrays = change(document, dict(arrays))
    persistence.write(model, document, arrays)


@pytest.mark.parametrize(
    "change",
    [
        lambda d, a: ({**d, "parts": {**d["parts"], "generator": "__import__('os')"}}, a),
        lambda d, a: ({**d, "parts": {}}, a),
        lambda d, a: ({**d, "dtype": "object"}, a),
        lambda d, a: ({**d, "labels": {"type": "<U3", "imprinted": []}}, a),
        lambda d, a: ({**d, "labels": {"type": "|O", "imprinted": ["ant", "bee", "c"]}}, a),
        lambda d, a: ({**d, "labels": {"type": "<U3", "imprinted": ["ant", "ant", "bee"]}}, a),
        lambda d, a: ({**d, "labels": {"type": "<f8", "imprinted": [float("nan"), 1.0, 2.0]}}, a),
        lambda d, a: ({**d, "labels": {"type": "|u1", "imprinted": [1, 2, 300]}}, a),
        lambda d, a: ({**d, "width": 10**9}, a),
        lambda d, a: ({**d, "width": float("inf")}, a),
        lambda d, a: ({**d, "features": ["one"]}, a),
        lambda d, a: ({**d, "features": 5 * [None]}, a),
        lambda d, a: ({**d, "seed": -1}, a),
        lambda d, a: ({**d, "seed": float("inf")}, a),
        lambda d, a: ({**d, "seed": "x"}, a),
        lambda d, a: (d, {k: v for k, v in a.items() if k != "weights"}),
        lambda d, a: (d, {**a, "owners": a["owners"] + 7}),
        lambda d, a: (d, {**a, "owners": a["owners"] - 1}),
        lambda d, a: (d, {**a, "owners": a["owners"] * 0.5}),
        lambda d, a: (d, {**a, "owners": a["owners"][:, None]}),
        lambda d, a: (d, {**a, "weights": a["weights"] * np.float32(np.nan)}),
        lambda d, a: (d, {**a, "state.99.rows": X}),
        lambda d, a: (d, {**a, "state.-1.rows": X}),
        lambda d, a: (d, {k: v for k, v in a.items() if not k.startswith("state.1.")}),
    ],
)
def test_hostile_documents_are_refused(model, change):
    rewritten(model, change)
    with pytest.raises(FileError, match="not an imprint model"):
        ImprintClassifier.load(model)


def test_a_document_that_is_no_document_is_refused(tmp_path):
    from safetensors.numpy import save_file

    head = {"format": persistence.FORMAT, "version": 1, "document": "[]", "sha256": persistence._seal("[]", {"w": X})}
    save_file({"w": X}, tmp_path / "f", metadata={persistence.FORMAT: json.dumps(head)})
    with pytest.raises(FileError, match="not an imprint model"):
        ImprintClassifier.load(tmp_path / "f")


def test_a_bottomless_document_is_refused(tmp_path):
    from safetensors.numpy import save_file

    text = "[" * 100_000
    head = {"format": persistence.FORMAT, "version": 1, "document": text, "sha256": ""}
    save_file({"w": X}, tmp_path / "f", metadata={persistence.FORMAT: json.dumps(head)})
    with pytest.raises(FileError, match="damaged"):
        ImprintClassifier.load(tmp_path / "f")


def test_a_width_of_text_that_a_file_only_claims_takes_no_memory(model):
    rewritten(model, lambda d, a: ({**d, "labels": {**d["labels"], "type": "<U400000000"}}, a))
    assert ImprintClassifier.load(model).classes_.dtype == Y.dtype


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes_and_devices_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(FileError, match=r"this is no ordinary file"):
            ImprintClassifier.load(place)
    with pytest.raises(FileError, match=r"Cannot write .*pipe: it is no ordinary file\."):
        ImprintClassifier(generator="mean").fit(X, Y).save(tmp_path / "pipe")


def test_many_classes_load_fast(tmp_path):
    rows = RNG.normal(size=(4000, 2))
    clf = ImprintClassifier(generator="mean").fit(rows, np.arange(4000))
    clf.save(tmp_path / "m")
    start = time.process_time()
    ImprintClassifier.load(tmp_path / "m")
    assert time.process_time() - start < 2


def test_names_of_columns_travel_with_the_model(tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=list("pqrst"))
    ImprintClassifier(generator="mean").fit(table, Y).save(tmp_path / "m")
    back = ImprintClassifier.load(tmp_path / "m")
    assert back.feature_names_in_.tolist() == list("pqrst")
    assert len(back.partial_fit(table, Y).predict(table)) == 30
    with pytest.raises(ParameterError, match=r"^predict\(X\): The feature names should match"):
        back.predict(table[["q", "p", "r", "s", "t"]])


def test_a_link_stays_a_link(tmp_path, model):
    (tmp_path / "link").symlink_to(model)
    ImprintClassifier(generator="mean").fit(X, Y).save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert ImprintClassifier.load(model).generator == "mean"


def test_the_longest_name_a_file_may_have(tmp_path):
    ImprintClassifier(generator="mean").fit(X, Y).save(tmp_path / ("x" * 255))
    assert os.listdir(tmp_path) == ["x" * 255]


def test_a_newer_format_says_so(model, monkeypatch):
    monkeypatch.setattr(persistence, "VERSION", 2)
    ImprintClassifier(generator="mean").fit(X, Y).save(model)
    monkeypatch.undo()
    with pytest.raises(FileError, match="format version 2 and this imprint reads version 1"):
        ImprintClassifier.load(model)


def test_missing_folder_and_oversized(tmp_path, monkeypatch, model):
    with pytest.raises(FileError, match="there is no such file"):
        ImprintClassifier.load(tmp_path / "none")
    with pytest.raises(FileError, match="is a folder"):
        ImprintClassifier.load(tmp_path)
    monkeypatch.setattr(persistence, "LARGEST_FILE", 100)
    with pytest.raises(FileError, match="more than a model may have"):
        ImprintClassifier.load(model)


@pytest.mark.parametrize("limit", ["LARGEST_FILE", "LARGEST_HEADER"])
def test_what_could_not_be_read_again_is_not_written(model, monkeypatch, limit):
    old = model.read_bytes()
    monkeypatch.setattr(persistence, limit, 100)
    with pytest.raises(FileError, match=r"^Cannot write .*m.imprint: the model is larger than a file may be\.$"):
        ImprintClassifier(generator="mean").fit(X, Y).save(model)
    assert model.read_bytes() == old


def test_a_failing_save_leaves_the_old_model(model, monkeypatch):
    old = model.read_bytes()
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(FileError, match="No space left on device"):
        ImprintClassifier(generator="mean").fit(X, Y).save(model)
    assert model.read_bytes() == old
    assert os.listdir(model.parent) == [model.name]


def test_saving_where_nothing_can_be_written(tmp_path):
    clf = ImprintClassifier(generator="mean").fit(X, Y)
    with pytest.raises(FileError, match=r"Cannot write .*: No such file or directory"):
        clf.save(tmp_path / "no" / "such" / "folder" / "m")
    with pytest.raises(FileError, match=r"Cannot write .*: it is a folder"):
        clf.save(tmp_path)
