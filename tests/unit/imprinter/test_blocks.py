"""Models whose backbone has several blocks."""

import numpy as np
import pytest

from imprint import ImprintClassifier, Imprinter, backbones
from imprint.backbones import load
from imprint.core.errors import FileError
from imprint.core.files import container
from imprint.export import export
from imprint.imprinter.state import ImprinterState

WIDTHS = (512, 512, 512, 512, 512)


@pytest.fixture(autouse=True)
def temporary_home(tmp_path, monkeypatch):
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))


def images(n, seed=0):
    """Noise, stripes and a bright corner, which differ in texture and in place."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 90, (3 * n, 64, 64, 3), dtype=np.uint8)
    X[n : 2 * n, ::4] += 120
    X[2 * n :, :32, 32:] += 120
    return [*X], np.repeat(["noise", "stripes", "corner"], n).tolist()


@pytest.fixture(scope="module")
def model():
    return Imprinter("tinynet", cache=False).fit(images(8))


def test_a_model_has_the_blocks_of_its_backbone(model):
    assert model.state.head.method.blocks == WIDTHS
    rows = model.embed(images(8))
    assert rows.blocks == WIDTHS
    classifier = ImprintClassifier(
        generator=model.state.head.method.generator,
        aggregator=model.state.head.method.aggregator,
        blocks=WIDTHS,
    )
    classifier.fit(rows.X, rows.y)
    items, _ = images(4, seed=1)
    X = model.embed((items, ["a"] * len(items))).X
    labels = [prediction for prediction in model.predict(items)]
    assert classifier.predict(X).tolist() == labels
    proxies = model.state.head.proxies.weights
    np.testing.assert_allclose(np.linalg.norm(proxies, axis=1), np.sqrt(5), rtol=1e-5)


def test_a_saved_model_keeps_its_blocks(model, tmp_path):
    model.save(tmp_path / "m.imprint")
    again = Imprinter.load(tmp_path / "m.imprint", cache=False)
    assert again.state.head.method.blocks == WIDTHS
    items, _ = images(4, seed=1)
    assert np.array_equal(again.predict_proba(items), model.predict_proba(items))
    stated = again.card()
    assert [block["name"] for block in stated.backbone["blocks"]] == [
        "last",
        "relu56 quadrants",
        "add67 quadrants",
        "relu88 quadrants",
        "top std",
    ]
    assert "add67 quadrants" in stated.markdown()


def test_a_file_holds_every_row_once(model, tmp_path):
    """As held-out rows; proxies and exemplars are indices into them."""
    model.save(tmp_path / "m.imprint")
    rows = 24 * sum(WIDTHS) * 4
    assert (tmp_path / "m.imprint").stat().st_size < 1.35 * rows
    again = Imprinter.load(tmp_path / "m.imprint", cache=False).state
    before = model.state.head.proxies
    assert np.array_equal(again.head.proxies.weights, before.weights)
    for label, exemplars in model.state.exemplars.items():
        assert again.exemplars[label].names == exemplars.names
        assert np.array_equal(again.exemplars[label].X, exemplars.X)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("images.0.index", np.array([0, 1, 2, 3, 4, 5, 6, 8])),
        ("images.0.index", np.array([0, 1, 2, 3, 4, 5, 6, -1])),
        ("images.0.index", np.arange(8.0)),
        ("shared/lengths/values", np.zeros(120, np.float32)),
    ],
    ids=str,
)
def test_a_file_with_a_wrong_reference_is_refused(model, tmp_path, name, value):
    model.save(tmp_path / "m.imprint")
    document, arrays = container.read(tmp_path / "m.imprint")
    assert arrays[name].size == value.size
    with pytest.raises(FileError):
        ImprinterState.from_parts(document, {**arrays, name: value}, "m.imprint")


def test_the_last_layer_alone_has_no_blocks(tmp_path):
    model = Imprinter("tinynet:last", cache=False).fit(images(4))
    assert model.state.head.method.blocks == ()
    assert model.state.head.proxies.weights.shape[1] == 512
    model.save(tmp_path / "m.imprint")
    assert Imprinter.load(tmp_path / "m.imprint").embedder.spec == "tinynet:last"
    # a model from before backbones had blocks is loaded by naming the last layer
    assert Imprinter.load(tmp_path / "m.imprint", backbone="tinynet:last")


def test_another_fit_takes_the_blocks_of_its_own_data(model, tmp_path):
    model.save(tmp_path / "m.imprint")
    again = Imprinter.load(tmp_path / "m.imprint", cache=False)
    again.fit(images(3))
    assert again.state.head.method.blocks == WIDTHS


@pytest.mark.parametrize("strategy", ["margin", "qi", "done"])
def test_the_own_classifier_of_a_network_reads_its_last_layer(strategy):
    """Images far from the new classes get the classes that the network itself names."""
    items, labels = images(6)
    model = Imprinter("tinynet", keep_head=strategy, cache=False).fit((items, labels))
    last = load("tinynet:last")
    assert model.embedder.spec == "tinynet:last"
    rng = np.random.default_rng(3)
    others = [*rng.integers(0, 256, (5, 8, 8, 3), dtype=np.uint8)]
    X = last.embed(np.stack([last.prepare(item) for item in others]))
    classifier = backbones.head("tinynet")
    weights, bias = classifier.weights, classifier.bias
    if strategy == "qi":
        X = X / np.linalg.norm(X, axis=1, keepdims=True)
        weights = weights / np.linalg.norm(weights, axis=1, keepdims=True)
        bias = 0
    logits = X @ weights.T + bias
    scores = model.state.head.scores(model.embedder.embed_unlabelled(others).X)
    columns = [i for i, c in enumerate(model.classes_) if c not in set(labels)]
    ours = np.sort(scores[:, columns], axis=1)
    np.testing.assert_allclose(ours, np.sort(logits, axis=1), rtol=1e-3, atol=1e-3)


def test_an_exported_graph_reads_all_blocks(model, tmp_path):
    pytest.importorskip("onnx")
    import onnxruntime

    export(model, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    items, _ = images(4, seed=1)
    backbone = model.backbone
    batch = np.stack([backbone.prepare(item) for item in items])
    (P,) = session.run(["probabilities"], {"images": batch})
    np.testing.assert_allclose(P, model.predict_proba(items), atol=1e-4)
