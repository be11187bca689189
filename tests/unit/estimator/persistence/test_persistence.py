"""Model files are atomic, have a checksum, and contain no code."""

import json
import os
import struct

import numpy as np
import pytest

from imprint import ImprintClassifier
from imprint.core.errors import FileError, ParameterError
from imprint.core.files import container
from imprint.generators.least_squares import LeastSquares

RNG = np.random.default_rng(0)
X, Y = (
    RNG.normal(size=(30, 5)).astype(np.float32),
    np.repeat(["ant", "bee", "ünïcode 🐝"], 10),
)


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
        assert (
            back.partial_fit(X[:1], labels[:1]).predict(X).dtype == clf.classes_.dtype
        )


def test_the_file_is_safetensors_and_json(model):
    raw = model.read_bytes()
    (n,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + n])
    document = json.loads(
        json.loads(header["__metadata__"]["imprint-model"])["document"]
    )
    assert document["parts"]["generator"] == "kmeans(k=2)"
    assert document["labels"] == ["ant", "bee", "ünïcode 🐝"]
    assert "state/rows/values" in header
    assert b"pickle" not in raw


def test_same_model_same_bytes(model, tmp_path):
    ImprintClassifier(generator="kmeans(k=2)", random_state=3).fit(X, Y).save(
        tmp_path / "again"
    )
    assert (tmp_path / "again").read_bytes() == model.read_bytes()


def test_every_truncation_is_refused(model):
    raw = model.read_bytes()
    for n in [*range(0, 200, 7), *range(200, len(raw), 101), len(raw) - 1]:
        model.write_bytes(raw[:n])
        with pytest.raises(
            FileError, match=r"(not an imprint model|damaged or was altered)"
        ) as e:
            ImprintClassifier.load(model)
        assert "\n" not in str(e.value)


def test_every_flipped_bit_is_refused(model):
    """300 anywhere, and one in every fifth byte of the header, where some bits might be ignored."""
    raw = model.read_bytes()
    (header,) = struct.unpack("<Q", raw[:8])
    draw = np.random.default_rng(0)
    for bit in {
        *draw.integers(8 * len(raw), size=300).tolist(),
        *range(3, 8 * (8 + header), 40),
    }:
        at = bit // 8
        model.write_bytes(raw[:at] + bytes([raw[at] ^ 1 << bit % 8]) + raw[at + 1 :])
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
        (
            b"just some text that is long enough to look like a header",
            "not an imprint model",
        ),
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
    """Rewrite a file with another document and a valid checksum, like a hostile author."""
    document, arrays = container.read(model)
    document, arrays = change(document, dict(arrays))
    container.write(model, document, arrays)


def part(d, **changed):
    return {**d, "parts": {**d["parts"], **changed}}


def labels(d, *imprinted):
    return {**d, "labels": list(imprinted)}


def first_values(a, name, value):
    """Replace the first number of an array."""
    changed = a[name].copy()
    changed.flat[0] = value
    return {**a, name: changed}


ROWS, MASS, SPREAD = (f"state/{name}/values" for name in ("rows", "mass", "spread"))
REFUSED = {
    "code in the place of a part": lambda d, a: (
        part(d, generator="__import__('os')"),
        a,
    ),
    "no parts": lambda d, a: ({**d, "parts": {}}, a),
    "parts of another kind": lambda d, a: ({**d, "parts": 3}, a),
    "an unknown generator": lambda d, a: (part(d, generator="os.system"), a),
    "another generator": lambda d, a: (part(d, generator="random(k=2)"), a),
    "another aggregator": lambda d, a: (part(d, aggregator="max"), a),
    "a type of numbers that is none": lambda d, a: ({**d, "dtype": "object"}, a),
    "no labels": lambda d, a: (labels(d), a),
    "objects as labels": lambda d, a: (labels(d, "ant", "bee", ["c"]), a),
    "null as labels": lambda d, a: (labels(d, None, None, None), a),
    "a label twice": lambda d, a: (labels(d, "ant", "ant", "bee"), a),
    "labels that are not numbers": lambda d, a: (labels(d, float("nan"), 1.0, 2.0), a),
    "infinite labels": lambda d, a: (labels(d, float("inf"), 1.0, 2.0), a),
    "labels of two kinds": lambda d, a: (labels(d, 1, 2.0, 3), a),
    "texts and numbers as labels": lambda d, a: (labels(d, "a", 2, "c"), a),
    "true and 1 as labels": lambda d, a: (labels(d, True, 1, False), a),
    "huge numbers as labels": lambda d, a: (labels(d, 1 << 5000, 1, 2), a),
    "labels that NumPy cuts": lambda d, a: (labels(d, "a\0", "b", "c"), a),
    "too many labels": lambda d, a: (labels(d, "a", "b", "c", "d"), a),
    "labels that are no list": lambda d, a: ({**d, "labels": {"a": 1}}, a),
    "a huge width": lambda d, a: ({**d, "width": 10**9}, a),
    "an endless width": lambda d, a: ({**d, "width": float("inf")}, a),
    "one name for many columns": lambda d, a: ({**d, "features": ["one"]}, a),
    "a text instead of names": lambda d, a: ({**d, "features": "abcde"}, a),
    "a number instead of names": lambda d, a: ({**d, "features": 5}, a),
    "names that are none": lambda d, a: ({**d, "features": 5 * [None]}, a),
    "a negative seed": lambda d, a: ({**d, "seed": -1}, a),
    "an endless seed": lambda d, a: ({**d, "seed": float("inf")}, a),
    "a seed of text": lambda d, a: ({**d, "seed": "x"}, a),
    "no rows": lambda d, a: (d, {k: v for k, v in a.items() if "rows" not in k}),
    "rows that are not finite": lambda d, a: (d, first_values(a, ROWS, np.nan)),
    "rows that single precision cannot hold": lambda d, a: (
        d,
        {**a, ROWS: np.full(a[ROWS].shape, 1e300)},
    ),
    "whole numbers as rows": lambda d, a: (d, {**a, ROWS: a[ROWS].astype(np.int64)}),
    "a negative mass": lambda d, a: (d, first_values(a, MASS, -4)),
    "a mass of zero in single precision": lambda d, a: (
        d,
        {**a, MASS: np.zeros(a[MASS].shape, np.float32)},
    ),
    "a mass beyond counting": lambda d, a: (d, first_values(a, MASS, 1e308)),
    "a negative spread": lambda d, a: (d, first_values(a, SPREAD, -1e-9)),
    "a class without a state": lambda d, a: (
        d,
        {**a, **{k: v[:-1] for k, v in a.items() if "shapes" in k}},
    ),
    "a state nobody asked for": lambda d, a: (
        d,
        {**a, "state/x/values": X[0], "state/x/shapes": np.array([[0, 5]])},
    ),
    "a class that is not there": lambda d, a: (
        d,
        first_values(a, "state/mass/shapes", 99),
    ),
    "shapes without end": lambda d, a: (
        d,
        {**a, "state/rows/shapes": a["state/rows/shapes"] * 2**30},
    ),
    "a negative shape": lambda d, a: (
        d,
        {**a, "state/rows/shapes": -a["state/rows/shapes"]},
    ),
    "more rows than masses": lambda d, a: (d, {**a, MASS: a[MASS][:-1]}),
    "no rows were seen": lambda d, a: (
        d,
        {**a, "sums/rows/values": 0 * a["sums/rows/values"]},
    ),
}


@pytest.mark.parametrize("change", REFUSED.values(), ids=REFUSED)
def test_hostile_documents_are_refused(model, change):
    rewritten(model, change)
    with pytest.raises(
        FileError,
        match=r"(not an imprint model|does not know|Unknown generator|Cannot read|too large)",
    ) as e:
        ImprintClassifier.load(model)
    assert "\n" not in str(e.value)


ONCE = {  # earlier versions loaded these, then hung, used gigabytes or gave wrong predictions
    "kmedoids(k=2)": ("state/mass/values", lambda v: -v),
    "random(k=2)": ("state/seen/values", lambda v: v * 10**17),
    "mean": ("state/rows/values", lambda v: v * 0 + 1e308),
    "least_squares": ("state/gram/values", lambda v: v[:-1]),
    "k_least_squares(k=2)": ("weights", lambda v: v[:-1]),
}


@pytest.mark.parametrize("generator", ONCE)
def test_files_that_earlier_versions_loaded_by_mistake_are_refused(tmp_path, generator):
    ImprintClassifier(generator=generator, aggregator="max").fit(X, Y).save(
        tmp_path / "m"
    )
    name, change = ONCE[generator]
    rewritten(tmp_path / "m", lambda d, a: (d, {**a, name: change(a[name])}))
    with pytest.raises(FileError, match=r"(not an imprint model|rows are too large)"):
        ImprintClassifier.load(tmp_path / "m")


def test_probabilities_stay_finite_whatever_the_lengths_in_a_file(tmp_path):
    ImprintClassifier(generator="mean", aggregator="max").fit(X, Y).save(tmp_path / "m")
    for value in (0.0, 1e-320, 1e300):
        lengths = np.full(3, value)
        rewritten(
            tmp_path / "m",
            lambda d, a, own=lengths: (d, {**a, "sums/length/values": own}),
        )
        assert np.isfinite(
            ImprintClassifier.load(tmp_path / "m").predict_proba(X)
        ).all()


def test_a_file_stores_no_redundant_proxies(tmp_path):
    """Proxies that follow from the state of their class are not stored, so the two cannot contradict each other."""
    for generator, stored in (
        ("mean", False),
        ("kmeans(k=2)", False),
        ("least_squares", True),
    ):
        ImprintClassifier(generator=generator, aggregator="max").fit(X, Y).save(
            tmp_path / "m"
        )
        assert ("weights" in container.read(tmp_path / "m")[1]) is stored


@pytest.mark.parametrize("calibrate", [False, True])
def test_stored_proxies_are_not_computed_again(tmp_path, calibrate, monkeypatch):
    """Computed proxies could differ in the last bit on another machine."""
    clf = ImprintClassifier(
        generator="least_squares", aggregator="max", calibrate=calibrate
    ).fit(X, Y)
    clf.save(tmp_path / "m")
    back = ImprintClassifier.load(tmp_path / "m")
    monkeypatch.setattr(
        LeastSquares, "proxies", lambda *_: pytest.fail("computed again")
    )
    assert np.array_equal(back.predict_proba(X), clf.predict_proba(X))


def test_a_document_of_another_type_is_refused(tmp_path):
    from safetensors.numpy import save_file

    head = {
        "format": container.FORMAT,
        "version": container.VERSION,
        "document": "[]",
        "sha256": container._checksum("[]", {"w": X}),
    }
    save_file({"w": X}, tmp_path / "f", metadata={container.FORMAT: json.dumps(head)})
    with pytest.raises(FileError, match="not an imprint model"):
        ImprintClassifier.load(tmp_path / "f")


def test_a_deeply_nested_document_is_refused(tmp_path):
    from safetensors.numpy import save_file

    text = "[" * 100_000
    head = {
        "format": container.FORMAT,
        "version": container.VERSION,
        "document": text,
        "sha256": "",
    }
    save_file({"w": X}, tmp_path / "f", metadata={container.FORMAT: json.dumps(head)})
    with pytest.raises(FileError, match="damaged"):
        ImprintClassifier.load(tmp_path / "f")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes_and_devices_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(FileError, match=r"this is not an ordinary file"):
            ImprintClassifier.load(place)
    with pytest.raises(
        FileError, match=r"Cannot write .*pipe: it is not an ordinary file\."
    ):
        ImprintClassifier(generator="mean").fit(X, Y).save(tmp_path / "pipe")


def test_names_of_columns_are_stored_with_the_model(tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=list("pqrst"))
    ImprintClassifier(generator="mean").fit(table, Y).save(tmp_path / "m")
    back = ImprintClassifier.load(tmp_path / "m")
    assert back.feature_names_in_.tolist() == list("pqrst")
    assert len(back.partial_fit(table, Y).predict(table)) == 30
    with pytest.raises(
        ParameterError, match=r"^predict\(X\): The feature names should match"
    ):
        back.predict(table[["q", "p", "r", "s", "t"]])


def test_saving_to_a_link_keeps_the_link(tmp_path, model):
    (tmp_path / "link").symlink_to(model)
    ImprintClassifier(generator="mean").fit(X, Y).save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert ImprintClassifier.load(model).generator == "mean"


def test_the_longest_name_a_file_may_have(tmp_path):
    ImprintClassifier(generator="mean").fit(X, Y).save(tmp_path / ("x" * 255))
    assert os.listdir(tmp_path) == ["x" * 255]


def test_a_newer_format_is_refused(model, monkeypatch):
    monkeypatch.setattr(container, "VERSION", 3)
    ImprintClassifier(generator="mean").fit(X, Y).save(model)
    monkeypatch.undo()
    with pytest.raises(
        FileError, match="format version 3 and this imprint reads version 2"
    ):
        ImprintClassifier.load(model)


def test_missing_folder_and_oversized(tmp_path, monkeypatch, model):
    with pytest.raises(
        FileError, match=r"^Cannot read .*none: No such file or directory\.$"
    ):
        ImprintClassifier.load(tmp_path / "none")
    with pytest.raises(FileError, match="is a folder"):
        ImprintClassifier.load(tmp_path)
    monkeypatch.setattr(container, "MAX_FILE_BYTES", 100)
    with pytest.raises(FileError, match="more than a model may have"):
        ImprintClassifier.load(model)


@pytest.mark.parametrize("limit", ["MAX_FILE_BYTES", "MAX_HEADER_BYTES"])
def test_models_that_could_not_be_loaded_are_not_written(model, monkeypatch, limit):
    old = model.read_bytes()
    monkeypatch.setattr(container, limit, 100)
    with pytest.raises(
        FileError,
        match=r"^Cannot write .*m.imprint: the model is larger than a file may be\.$",
    ):
        ImprintClassifier(generator="mean").fit(X, Y).save(model)
    assert model.read_bytes() == old


def test_a_failing_save_leaves_the_old_model(model, monkeypatch):
    old = model.read_bytes()
    monkeypatch.setattr(
        os,
        "replace",
        lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")),
    )
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
