"""Several networks side by side: one pass of each, one cache of each."""

import pickle
import shutil

import numpy as np
import pytest
from PIL import Image

from imprint import Imprinter
from imprint.backbones import load, record, specs, stated_fingerprint
from imprint.backbones.record import RECORDS
from imprint.core.errors import FileError, ParameterError
from imprint.embeddings import embed
from imprint.modalities import modality

BOTH = "tinynet+raw"


@pytest.fixture(autouse=True)
def temporary_home(tmp_path, monkeypatch):
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))


@pytest.fixture
def photos(tmp_path):
    rng = np.random.default_rng(0)
    for label, shade in (("dark", 40), ("light", 200)):
        (tmp_path / "photos" / label).mkdir(parents=True)
        for i in range(5):
            pixels = rng.integers(shade - 30, shade + 30, (30, 40, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / label / f"{i}.png")
    return tmp_path / "photos"


def images(n=5):
    return [*np.random.default_rng(0).integers(0, 256, (n, 40, 50, 3), dtype=np.uint8)]


def embedded(spec):
    backbone = load(spec, threads=1)
    prepared = [backbone.prepare(image) for image in images()]
    is_array = isinstance(prepared[0], np.ndarray)
    return backbone.embed(np.stack(prepared) if is_array else prepared)


def test_embeddings_are_side_by_side():
    together = embedded(BOTH)
    alone = [embedded("tinynet"), embedded("raw")]
    assert np.array_equal(together, np.concatenate(alone, axis=1))
    backbone = load(BOTH)
    assert backbone.width == together.shape[1] == 2560 + 784
    assert [b.name for b in backbone.blocks] == [
        "tinynet last",
        "tinynet relu56 quadrants",
        "tinynet add67 quadrants",
        "tinynet relu88 quadrants",
        "tinynet top std",
        "raw last",
    ]
    assert backbone.embed([]).shape == (0, backbone.width)


def test_the_last_layers_of_two_networks():
    both = embedded("tinynet:last+efficientnet_lite0:last")
    assert both.shape == (5, 512 + 1280)
    assert np.array_equal(both[:, :512], embedded("tinynet:last"))
    record_of_both = record("tinynet:last+efficientnet_lite0:last")
    assert record_of_both.block_widths == (512, 1280)
    assert "Apache-2.0" in record_of_both.licence
    assert "MIT" in record_of_both.licence


def test_the_fingerprint_is_stated_and_that_of_the_order():
    assert stated_fingerprint(BOTH) == load(BOTH).fingerprint
    assert stated_fingerprint(BOTH) != stated_fingerprint("raw+tinynet")
    assert stated_fingerprint("timm:vit_b_16+tinynet") is None
    again = pickle.loads(pickle.dumps(load(BOTH)))
    assert again.fingerprint == stated_fingerprint(BOTH)


@pytest.mark.parametrize(
    ("spec", "parts"),
    [
        ("tinynet", ["tinynet"]),
        ("tinynet+raw", ["tinynet", "raw"]),
        ("tinynet:last+raw", ["tinynet:last", "raw"]),
        ("onnx:a+b.onnx", ["onnx:a+b.onnx"]),
        (
            "onnx:a+b.onnx+tflite:c+.tflite+raw",
            ["onnx:a+b.onnx", "tflite:c+.tflite", "raw"],
        ),
        ("tinynet+tinynt", ["tinynet", "tinynt"]),
    ],
    ids=str,
)
def test_a_plus_joins_names_and_may_be_in_a_path(spec, parts):
    assert specs(spec) == parts


def test_a_file_whose_path_has_a_plus(tmp_path, monkeypatch):
    (tmp_path / "c++").mkdir()
    shutil.copy(RECORDS.parent / "weights/tinynet.onnx", tmp_path / "c++/net.onnx")
    monkeypatch.chdir(tmp_path)
    spec = "onnx:c++/net.onnx"
    assert load(spec).fingerprint == load("tinynet").fingerprint
    both = load(f"{spec}+raw")
    monkeypatch.chdir("/")
    assert pickle.loads(pickle.dumps(both)).fingerprint == stated_fingerprint(BOTH)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("tinynet+minilm", "tinynet reads images, and minilm reads texts"),
        ("tinynet+tinynet", r"tinynet\+tinynet: it names tinynet more than once"),
        ("tinynet+tinynet:last", "it names tinynet more than once"),
        ("tinynet+tinynt", "Unknown backbone 'tinynt'. Did you mean 'tinynet'"),
        ("+tinynet", "Unknown backbone ''"),
    ],
    ids=str,
)
def test_networks_that_do_not_fit_are_refused(spec, message):
    with pytest.raises(ParameterError, match=message):
        load(spec)


def test_every_network_has_its_own_cache(photos, monkeypatch):
    """A combination finds what each network embedded before, and the other way round."""
    Imprinter("tinynet").fit(photos)
    calls = []
    from imprint.backbones import joined
    from imprint.backbones.adapters import onnx, raw

    for module, name in ((onnx, "OnnxBackbone"), (raw, "RawBackbone")):
        cls = getattr(module, name)
        forward = cls._forward

        def count(self, batch, forward=forward):
            calls.append((self.record.name, len(batch)))
            return forward(self, batch)

        monkeypatch.setattr(cls, "_forward", count)
    assert joined.JoinedBackbone.parts == ()
    model = Imprinter(BOTH).fit(photos)
    assert calls == [("raw", 10)]
    calls.clear()
    Imprinter("raw+tinynet").fit(photos)
    Imprinter("raw").fit(photos)
    assert calls == []
    assert model.state.head.method.blocks == (512, 512, 512, 512, 512, 784)
    assert len(list((photos.parent / "home").rglob("*.sqlite"))) == 2


def test_progress_counts_inputs_once(photos):
    from imprint import datasets

    steps = []
    data = datasets.load(photos)
    rows = embed(load(BOTH), data, remember=False, progress=steps.append)
    assert rows.X.shape == (10, 2560 + 784)
    done = [step.done for step in steps]
    assert done == sorted(done)
    assert (done[0], done[-1]) == (0, 10)
    assert {step.total for step in steps} == {10}


def test_an_unreadable_input_is_skipped_once(photos):
    (photos / "dark" / "9.png").write_bytes(b"no image")
    model = Imprinter(BOTH, cache=False)
    rows = model.embed(photos)
    assert len(rows.X) == 10
    assert [entry.name[-5:] for entry in rows.skipped] == ["9.png"]


def test_a_model_of_two_networks_is_saved_and_loaded(photos, tmp_path):
    model = Imprinter(BOTH).fit(photos)
    model.save(tmp_path / "m.imprint")
    again = Imprinter.load(tmp_path / "m.imprint")
    assert again.embedder.spec == BOTH
    assert again.predict_proba(images()).tolist() == (
        model.predict_proba(images()).tolist()
    )
    with pytest.raises(
        FileError, match=r"raw\+tinynet has .* so its embeddings differ"
    ):
        Imprinter.load(tmp_path / "m.imprint", backbone="raw+tinynet")
    card = again.card().markdown()
    assert "tinynet+raw" in card
    assert "raw last (784)" in card


def test_class_names_need_networks_that_embed_them():
    assert not load(BOTH).embeds_names
    with pytest.raises(ParameterError, match="cannot embed class names"):
        Imprinter(BOTH).fit_names(["cat", "dog"])


def test_the_artificial_inputs_of_a_speed_test_fit():
    backbone = load(BOTH)
    prepared = [backbone.prepare(x) for x in modality("image").sample(2)]
    assert backbone.embed(prepared).shape == (2, backbone.width)
