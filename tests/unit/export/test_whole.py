"""Folders that run without imprint: what they hold, and the preparation of inputs."""

import importlib
import json
import sys

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from tokenizers import Tokenizer
from tokenizers.models import BPE

from imprint import ImprintClassifier, Imprinter
from imprint.backbones import Preprocess, load
from imprint.backbones.preprocess import FILTERS
from imprint.cli import main
from imprint.core.errors import FileError, ParameterError
from imprint.core.labels import as_labels
from imprint.export import whole
from imprint.export.programs import prepare_image, prepare_text
from imprint.export.tokens import facts_of_tokenizer
from imprint.export.whole import export_whole

ROWS = np.repeat(np.eye(4, dtype=np.float32), 8, axis=0)
ROWS += np.random.default_rng(0).normal(0, 0.1, ROWS.shape).astype(np.float32)


def points(labels, **options):
    """A model of embeddings."""
    y = [labels[i] for i in np.repeat(np.arange(4), 8) % len(labels)]
    return Imprinter("embeddings", cache=False, **options).fit((ROWS, y))


def run(folder, rows):
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    names = [output.name for output in session.get_outputs()]
    values = session.run(names, {session.get_inputs()[0].name: rows})
    return dict(zip(names, values, strict=True))


def program(folder, monkeypatch, name="classify"):
    """A program of an exported folder, as a module."""
    monkeypatch.syspath_prepend(folder)
    for loaded in [m for m in sys.modules if m.startswith(("prepare_", "classify"))]:
        monkeypatch.delitem(sys.modules, loaded)
    return importlib.import_module(name)


SIDES = st.integers(1, 90)


@st.composite
def rules(draw):
    size = (draw(st.integers(1, 40)), draw(st.integers(1, 40)))
    form = draw(st.sampled_from(["plain", "crop", "resize"]))
    options = {
        "filter": draw(st.sampled_from(FILTERS)),
        "colour": draw(st.sampled_from(["rgb", "grey"])),
    }
    if form == "crop":
        options["crop"] = draw(st.floats(0.05, 1))
        size = (size[0], size[0])
    if form == "resize":
        options["resize"] = max(size) + draw(st.integers(0, 30))
    return Preprocess(size=size, **options)


@settings(max_examples=200, deadline=None)
@given(rules(), SIDES, SIDES, st.integers(0, 99))
def test_images_are_resized_as_by_pillow(rule, height, width, seed):
    rng = np.random.default_rng(seed)
    image = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    stated = rule.as_json() | {"rows_first": whole._rows_first()}
    actual = prepare_image.prepared(image, stated)
    np.testing.assert_array_equal(actual, rule.image(image))


@pytest.mark.parametrize(
    "image",
    [
        Image.fromarray(np.arange(60, dtype=np.uint8).reshape(6, 10)),
        Image.fromarray(np.arange(0, 60000, 1000, dtype=np.uint16).reshape(6, 10)),
        Image.fromarray(np.arange(240, dtype=np.uint8).reshape(6, 10, 4)),
    ],
    ids=["grey", "16 bits", "transparent"],
)
def test_files_are_read_as_by_the_library(image, tmp_path):
    from imprint.modalities.image import read_image

    path = tmp_path / "image.png"
    image.save(path)
    expected = read_image(path.read_bytes())
    np.testing.assert_array_equal(prepare_image.read(str(path)), expected)


@pytest.fixture(scope="module")
def tokenizers():
    """The tokenizer of minilm, and that of the exported program."""
    network = load("minilm", threads=1)
    facts = facts_of_tokenizer(network, network.tokenizer)
    stored = json.loads(network.tokenizer.to_str())
    # as a program would read it
    facts = json.loads(json.dumps(facts))
    return network.tokenizer, prepare_text.Tokenizer(stored, facts)


def test_every_character_has_the_tokens_of_the_library(tokenizers):
    theirs, ours = tokenizers
    numbers = [n for n in range(1, 0x30000) if n not in range(0xD800, 0xE000)]
    for start in range(0, len(numbers), 60):
        characters = list(map(chr, numbers[start : start + 60]))
        for text in ("".join(characters), "a".join(characters)):
            assert ours.encode(text) == theirs.encode(text).ids, ascii(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I lost my card",
        "a [SEP] b[CLS]c [MASK] [sep]",
        "x" * 101,
        "x" * 100 + " y",
        "word " * 400,
        "Straße İstanbul ΣΑΣ é e\u0301 한국어 東京 ﷺ 🙂",
        "a\x00b\n\tc",
    ],
)
def test_texts_have_the_tokens_of_the_library(tokenizers, text):
    theirs, ours = tokenizers
    assert ours.encode(text) == theirs.encode(text).ids


def test_another_tokenizer_is_refused():
    network = load("minilm", threads=1)
    with pytest.raises(ParameterError, match="only one that the exported programs"):
        facts_of_tokenizer(network, Tokenizer(BPE()))


@pytest.mark.parametrize(
    "labels",
    [
        ["a", "b", "é 東", "d"],
        [3, 7, 2**62, 5],
        [2**70, 1, 2, 3],
        [1.0, 2.0, 4.0, 1e17],
        [True, False],
    ],
    ids=["text", "integers", "large", "floats", "booleans"],
)
def test_labels_are_an_output(labels, tmp_path):
    y = as_labels(labels)[np.repeat(np.arange(4), 8) % len(labels)]
    ImprintClassifier(calibrate=True).fit(ROWS, y).save(tmp_path / "m.imprint")
    model = Imprinter.load(tmp_path / "m.imprint")
    export_whole(model, tmp_path / "out")
    outputs = run(tmp_path / "out", ROWS)
    expected = model.predict(ROWS).tolist()
    if max(labels) == 2**70:
        expected = list(map(str, expected))
    assert outputs["labels"].tolist() == expected
    np.testing.assert_allclose(
        outputs["probabilities"], model.predict_proba(ROWS), atol=1e-6
    )
    np.testing.assert_array_equal(outputs["known"], model.known(ROWS))


def test_the_program_answers_in_json_types(tmp_path, monkeypatch):
    model = points(["a", "b", "c", "d"])
    export_whole(model, tmp_path / "out")
    exported = program(tmp_path / "out", monkeypatch).Model(tmp_path / "out", 1)
    answer = exported.classify(ROWS[9], unknown=0.01, top=2)
    assert answer["label"] == model.predict(ROWS[9:10])[0]
    assert [guess["label"] for guess in answer["top"]] == [
        guess.label for guess in model.top(ROWS[9:10], 2)[0]
    ]
    strange = np.full(4, -1, np.float32)
    assert exported.classify(strange)["label"] is not None
    assert exported.classify(strange, unknown=0.2)["label"] is None
    assert json.loads(json.dumps(answer)) == answer


def test_tags(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    marks = rng.integers(0, 2, (60, 3))
    X = (marks @ np.eye(3, 6) + rng.normal(0, 0.1, (60, 6))).astype(np.float32)
    y = [[name for name, mark in zip("abc", row) if mark] for row in marks]
    model = Imprinter("embeddings", cache=False).fit((X, y))
    export_whole(model, tmp_path / "out")
    outputs = run(tmp_path / "out", X)
    np.testing.assert_array_equal(outputs["labels"], model.predict(X).astype(bool))
    exported = program(tmp_path / "out", monkeypatch).Model(tmp_path / "out", 1)
    for row, present in zip(X[:9], model.tags(X[:9]), strict=True):
        assert set(exported.classify(row)["labels"]) == {g.label for g in present}


def test_a_folder_is_replaced_only_if_it_is_an_export(tmp_path):
    folder = tmp_path / "out"
    export_whole(points(["a", "b"]), folder)
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / "package").write_text("x")
    export_whole(points(["c", "d"]), folder)
    facts = json.loads((folder / "model.json").read_text())
    assert facts["classes"] == ["c", "d"]
    assert (folder / "node_modules" / "package").read_text() == "x"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").write_text("mine")
    with pytest.raises(FileError, match="it holds other files"):
        export_whole(points(["a", "b"]), other)
    with pytest.raises(FileError, match="there is no folder"):
        export_whole(points(["a", "b"]), tmp_path / "no" / "out")
    with pytest.raises(FileError, match="not a folder"):
        export_whole(points(["a", "b"]), other / "notes.txt")


def test_a_failure_leaves_the_old_folder(tmp_path, monkeypatch):
    folder = tmp_path / "out"
    export_whole(points(["a", "b"]), folder)
    before = (folder / "model.json").read_bytes()

    def broken(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("imprint.export.onnx.write_onnx", broken)
    with pytest.raises(FileError, match="No space left"):
        export_whole(points(["c", "d"]), folder)
    assert (folder / "model.json").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # `main` replaces it
    points(["a", "b"]).save("m.imprint")
    assert main(["export", "m.imprint", "--whole", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    files = [path for path in (tmp_path / "m-export").iterdir() if path.is_file()]
    assert printed["bytes"] == sum(path.stat().st_size for path in files)
    assert (printed["folder"], printed["classes"]) == ("m-export", ["a", "b"])
    assert main(["export", "m.imprint", "--whole", "-o", "other"]) == 0
    assert "other: the whole model, 2 classes" in capsys.readouterr().err
    for options, sentence in (
        ([], "Choose --to onnx"),
        (["--whole", "--to", "onnx"], "Choose --to onnx"),
        (["--whole", "--head-only"], "--head-only goes with --to"),
    ):
        assert main(["export", "m.imprint", *options]) == 2
        assert sentence in capsys.readouterr().err


def test_a_model_of_series_is_refused(tmp_path):
    series = np.random.default_rng(0).normal(size=(6, 1, 30))
    model = Imprinter(cache=False).fit(series, ["a", "b"] * 3)
    with pytest.raises(ParameterError, match="no program prepares series"):
        export_whole(model, tmp_path / "whole")
    assert not (tmp_path / "whole").exists()


def test_two_networks_together_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, (9, 9, 3), dtype=np.uint8) for _ in range(6)]
    model = Imprinter("tinynet+raw", cache=False, calibrate=False)
    model.fit((images, ["a", "b"] * 3))
    with pytest.raises(ParameterError, match=r"not tinynet\+raw; export the head"):
        export_whole(model, tmp_path / "whole")
    assert list(tmp_path.iterdir()) == []
