"""Exported heads give the same predictions as the library."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from sklearn.datasets import load_digits

from imprint import ImprintClassifier, Imprinter
from imprint.calibration.estimates import Estimates, fit_conformal
from imprint.core.errors import FileError, MissingExtraError, ParameterError
from imprint.core.files import container
from imprint.export import export, export_file
from imprint.export.onnx import Graph

QI = {"generator": "mean", "norm_post": "l2", "aggregator": "max"}
ONE_BY_ONE = (
    Path(__file__).parents[1] / "fixtures/mean_of_one.onnx"
)  # float NCHW (1, 3, 4, 4), mean over pixels
PLAIN = {"norm_pre": "none", "norm_post": "none", "norm_inf": "none"}
DECIDERS = [
    {"generator": "mean"},
    {"generator": "kmeans(k=5)"},
    {"generator": "least_squares", **PLAIN},
    {"generator": "mean", **PLAIN, "norm_post": "quantile"},
    {"generator": "mean", **PLAIN, "aggregator": "nearest(m=1)"},
    {"generator": "all", "aggregator": "nearest(m=5)"},
    {"generator": "all", "aggregator": "nearest(m=6, weighting='uniform')", **PLAIN},
    {
        "generator": "kmeans(k=4)",
        "aggregator": "nearest(m=3, metric='cosine')",
        **PLAIN,
    },
    {"generator": "kmeans(k=4)", "aggregator": "kernel"},
    {"generator": "all", "aggregator": "kernel(noise=0.01)", **PLAIN},
]


@pytest.fixture(scope="module")
def digits():
    """Handwritten digits as embeddings: 400 training rows and 1,000 queries."""
    X, y = load_digits(return_X_y=True)
    X = X.astype(np.float32)
    return X[:400], y[:400], X[400:1400]


def fitted(digits, dtype=np.float32, **parts):
    return ImprintClassifier(**{"aggregator": "max", **parts}, random_state=0).fit(
        digits[0].astype(dtype), digits[1]
    )


def run(path, **inputs):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("parts", DECIDERS, ids=lambda p: " ".join(p.values()))
def test_onnx_heads_equal_the_library(digits, tmp_path, parts, dtype):
    model, queries = fitted(digits, dtype, **parts), digits[2].astype(dtype)
    export(model, tmp_path / "h.onnx")
    scores, probabilities = run(tmp_path / "h.onnx", embeddings=queries)
    assert scores.dtype == probabilities.dtype == dtype
    np.testing.assert_array_equal(
        model.classes_[scores.argmax(axis=1)], model.predict(queries)
    )
    close = {"rtol": 1e-5, "atol": 1e-5}
    np.testing.assert_allclose(scores, model.decision_function(queries), **close)
    np.testing.assert_allclose(
        probabilities, model.predict_proba(queries), rtol=1e-3, atol=1e-5
    )


@pytest.mark.parametrize("aggregator", ["max", "kernel"])
def test_calibrated_onnx_heads_equal_the_library(digits, tmp_path, aggregator):
    X, y, queries = digits
    wrong = np.where(
        np.arange(len(y)) % 8 == 0, (y + 3) % 10, y
    )  # wrong labels raise the floor of the probabilities
    model = ImprintClassifier(
        aggregator=aggregator, calibrate=True, random_state=0
    ).fit(X, wrong)
    calibration = model.head_.calibration
    assert calibration.floor > 0.01
    assert abs(calibration.temperature - 1) > 0.01
    export(model, tmp_path / "h.onnx")
    _, probabilities, known = run(tmp_path / "h.onnx", embeddings=queries)
    np.testing.assert_allclose(
        probabilities, model.predict_proba(queries), rtol=1e-3, atol=1e-5
    )
    np.testing.assert_allclose(known, model.known(queries), atol=2 / len(y))


@pytest.mark.parametrize(
    ("dtype", "noise", "stored"),
    [
        (np.float32, 0.1, np.float32),
        (np.float32, 1e-8, np.float64),
        (np.float64, 0.1, np.float64),
    ],
)
def test_scores_and_p_values_share_kernels_in_the_precision_of_the_library(
    digits, tmp_path, dtype, noise, stored
):
    X, y, queries = digits
    aggregator = f"kernel(noise={noise})"
    settings = {"generator": "all", "blocks": (40, 24), "calibrate": True}
    model = ImprintClassifier(**settings, aggregator=aggregator, random_state=0)
    model.fit(X.astype(dtype), y)
    export(model, tmp_path / "h.onnx")
    graph = onnx.load(tmp_path / "h.onnx").graph
    arrays = [onnx.numpy_helper.to_array(one) for one in graph.initializer]
    (proxies,) = [one for one in arrays if one.shape == (len(X), X.shape[1])]
    assert proxies.dtype == stored
    queries = queries.astype(dtype)
    _, probabilities, known = run(tmp_path / "h.onnx", embeddings=queries)
    expected = model.predict_proba(queries)
    np.testing.assert_allclose(probabilities, expected, rtol=0, atol=1e-4)
    np.testing.assert_allclose(known, model.known(queries), atol=2 / len(y))


def test_p_values_of_many_proxies_follow_from_some_of_them(
    digits, tmp_path, monkeypatch
):
    monkeypatch.setattr("imprint.gaussian_process.posterior.MAX_WITNESSES", 100)
    X, y, queries = digits
    settings = {"generator": "all", "aggregator": "kernel", "calibrate": True}
    model = ImprintClassifier(**settings, random_state=0).fit(X, y)
    export(model, tmp_path / "h.onnx")
    graph = onnx.load(tmp_path / "h.onnx").graph
    stored = [one.dims[0] for one in graph.initializer if list(one.dims)[1:] == [64]]
    assert max(stored) == len(X)
    assert 90 <= min(stored) <= 110
    _, _, known = run(tmp_path / "h.onnx", embeddings=queries)
    np.testing.assert_allclose(known, model.known(queries), atol=2 / len(y))


def test_p_values_of_a_graph_count_held_out_rows_with_an_equal_score():
    S = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.6]])
    estimates = Estimates(None, 0.0, 1.0, **fit_conformal(S, None, np.ones(3)))
    g = Graph()
    g.add("Identity", estimates.graph_p_values(g, "scores", None), result="known")
    tensors = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.DOUBLE, None)
        for name in ("scores", "known")
    ]
    graph = onnx.helper.make_graph(
        g.nodes, "p_values", tensors[:1], tensors[1:], initializer=g.constants
    )
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", g.opset)], ir_version=8
    )
    (known,) = run(model.SerializeToString(), scores=S)
    assert known.tolist() == estimates.p_values(S, None).tolist() == [1, 0.75, 0.5]


@pytest.mark.parametrize("norm_inf", ["l2", "none"])
def test_max_with_one_proxy_per_class_is_a_linear_layer(digits, tmp_path, norm_inf):
    model = fitted(digits, generator="mean", norm_inf=norm_inf)
    export(model, tmp_path / "h.onnx")
    graph = onnx.load(tmp_path / "h.onnx").graph
    nodes = [node for node in graph.node if node.op_type != "Identity"]
    assert [node.op_type for node in nodes[-3:]] == ["Gemm", "Div", "Softmax"]
    assert norm_inf == "l2" or len(nodes) == 3
    layer = nodes[-3]
    (weights,) = (t for t in graph.initializer if t.name == layer.input[1])
    np.testing.assert_array_equal(
        onnx.numpy_helper.to_array(weights), model.proxies_.weights
    )
    assert [list(n.input) for n in graph.node if n.output[0] == "scores"] == [
        list(layer.output)
    ]


def test_torch_takes_one_proxy_per_class_as_linear(digits, tmp_path):
    model = fitted(digits, generator="mean")
    export(model, tmp_path / "h.safetensors", "torch")
    layer = torch.nn.Linear(64, 10, bias=False)
    layer.load_state_dict(load_file(tmp_path / "h.safetensors"))
    with torch.no_grad():
        winners = layer(
            torch.nn.functional.normalize(torch.from_numpy(digits[2]))
        ).argmax(dim=1)
    np.testing.assert_array_equal(winners.numpy(), model.predict(digits[2]))
    with safe_open(tmp_path / "h.safetensors", "np") as f:
        assert json.loads(f.metadata()["imprint.export"])["classes"] == list(range(10))


def test_torch_takes_many_proxies_with_their_owners(digits, tmp_path):
    model = fitted(digits, generator="kmeans(k=5)")
    export(model, tmp_path / "h.safetensors", "torch")
    state = load_file(tmp_path / "h.safetensors")
    products = (
        torch.nn.functional.normalize(torch.from_numpy(digits[2])) @ state["weight"].T
    )
    scores = torch.full((1000, 10), -torch.inf).scatter_reduce(
        1, state["owners"].expand(1000, -1), products, "amax"
    )
    np.testing.assert_array_equal(
        scores.argmax(dim=1).numpy(), model.predict(digits[2])
    )


def test_the_numpy_format_needs_only_numpy(digits, tmp_path):
    labels = np.array(["Größe", "零", "c", "d", "e", "f", "g", "h", "i", "j"])
    model = ImprintClassifier(generator="kmeans(k=5)", aggregator="max", random_state=0)
    model.fit(digits[0], labels[digits[1]])
    export(model, tmp_path / "h.npz", "numpy")
    with np.load(tmp_path / "h.npz", allow_pickle=False) as f:
        classes, owners, weights = f["classes"], f["owners"], f["weights"]
        assert f["norm"] == "l2"
        about = json.loads(str(f["imprint.export"]))
    products = digits[2] / np.linalg.norm(digits[2], axis=1, keepdims=True) @ weights.T
    scores = np.maximum.reduceat(
        products, np.searchsorted(owners, range(len(classes))), axis=1
    )
    np.testing.assert_array_equal(
        classes[scores.argmax(axis=1)], model.predict(digits[2])
    )
    assert about["classes"] == sorted(labels.tolist())
    assert "Euclidean length" in about["use"]
    assert "largest inner product" in about["use"]


def test_kernel_predicts_with_numpy_only(digits, tmp_path):
    """Follows the description in the file step by step."""
    model = fitted(digits, generator="kmeans(k=5)", aggregator="kernel")
    export(model, tmp_path / "h.npz", "numpy")
    with np.load(tmp_path / "h.npz", allow_pickle=False) as f:
        about = json.loads(str(f["imprint.export"]))
        Q = digits[2].astype(float) / np.linalg.norm(digits[2], axis=1, keepdims=True)
        apart = ((Q[:, None, :] - f["weights"]) ** 2).sum(axis=2)
        scores = np.exp(-about["rate"] * apart) @ f["coefficients"]
        np.testing.assert_array_equal(
            f["classes"][scores.argmax(axis=1)], model.predict(digits[2])
        )
    np.testing.assert_allclose(scores, model.decision_function(digits[2]), atol=1e-4)
    E = np.exp(scores / about["scale"])
    np.testing.assert_allclose(
        E / E.sum(axis=1, keepdims=True), model.predict_proba(digits[2]), atol=1e-3
    )
    assert "the scores are k times the coefficients" in about["use"]


def test_labels_are_in_the_metadata(digits, tmp_path):
    labels = np.array([f"klasse {c} é" for c in range(10)])
    export(
        ImprintClassifier(**QI).fit(digits[0], labels[digits[1]]), tmp_path / "h.onnx"
    )
    session = onnxruntime.InferenceSession(
        tmp_path / "h.onnx", providers=["CPUExecutionProvider"]
    )
    facts = session.get_modelmeta().custom_metadata_map
    assert json.loads(facts["classes"]) == labels.tolist()
    assert json.loads(facts["imprint.export"])["method"] == "l2 / mean / l2 / l2 / max"


def test_rows_that_are_zero_huge_or_tiny(digits, tmp_path):
    model = fitted(digits, generator="mean")
    export(model, tmp_path / "h.onnx")
    row = digits[2][0] / 16
    queries = np.stack([row * 0, row, row * np.float32(1e37), row * np.float32(1e-37)])
    scores, *_ = run(tmp_path / "h.onnx", embeddings=queries)
    np.testing.assert_allclose(
        scores, model.decision_function(queries), rtol=1e-5, atol=1e-6
    )
    assert not scores[0].any()


def test_classes_of_unequal_size(tmp_path, awkward):
    X, y = awkward
    model = ImprintClassifier(generator="kmeans(k=3)", random_state=0).fit(X, y)
    assert np.bincount(model.proxies_.labels).tolist() == [3, 3, 1]
    export(model, tmp_path / "h.onnx")
    np.testing.assert_allclose(
        run(tmp_path / "h.onnx", embeddings=X)[0], model.decision_function(X), atol=1e-6
    )


# Images


@pytest.fixture
def shades():
    images = np.random.default_rng(0).integers(0, 99, (8, 12, 9, 3), dtype=np.uint8)
    images[:4] += 120
    return images, ["light"] * 4 + ["dark"] * 4


def test_raw_pixels_become_one_graph(shades, tmp_path):
    model = Imprinter("raw", generator="mean").fit(shades)
    exported = export(model, tmp_path / "m.onnx")
    assert exported.backbone == "raw"
    prepared = np.stack([model.backbone.prepare(p) for p in shades[0]])
    scores, *_ = run(tmp_path / "m.onnx", images=prepared)
    X = model.look(shades[0]).X
    np.testing.assert_allclose(
        scores[:, 1] - scores[:, 0], model.classifier.decision_function(X), atol=1e-5
    )


@pytest.mark.parametrize("opset", [None, 13, 18, 21])
@pytest.mark.parametrize(
    "rule", [{}, {"divide": 255.0, "mean": [0.4, 0.5, 0.6], "std": [0.2, 0.3, 0.4]}]
)
def test_the_graph_includes_the_preprocessing_of_images(shades, tmp_path, rule, opset):
    """A channels-first network with batch size one, in several opset versions."""
    network = onnx.load(ONE_BY_ONE)
    if opset is not None:
        network = onnx.version_converter.convert_version(network, opset)
    onnx.save(network, tmp_path / "n.onnx")
    full = {"size": 4, "layout": "NCHW", "dtype": "float32", **rule}
    (tmp_path / "n.onnx.json").write_text(json.dumps({"width": 3, "preprocess": full}))
    model = Imprinter(f"onnx:{tmp_path}/n.onnx", generator="mean").fit(shades)
    export(model, tmp_path / "m.onnx")
    for image in shades[0]:
        scores, *_ = run(
            tmp_path / "m.onnx", images=model.backbone.prepare(image)[None]
        )
        expected = model.classifier.decision_function(model.look([image]).X)
        np.testing.assert_allclose(scores[:, 1] - scores[:, 0], expected, atol=1e-5)
    assert str(tmp_path).encode() not in (tmp_path / "m.onnx").read_bytes(), (
        "the file contains no local paths"
    )


def test_every_pixel_keeps_its_position(shades, tmp_path):
    """A channels-first network that flattens images, which are higher than wide."""
    images = onnx.helper.make_tensor_value_info(
        "images", onnx.TensorProto.UINT8, ["n", 3, 5, 2]
    )
    output = onnx.helper.make_tensor_value_info(
        "out", onnx.TensorProto.FLOAT, ["n", 30]
    )
    nodes = [
        onnx.helper.make_node("Cast", ["images"], ["float"], to=onnx.TensorProto.FLOAT),
        onnx.helper.make_node("Flatten", ["float"], ["out"]),
    ]
    opset = onnx.helper.make_opsetid("", 17)
    graph = onnx.helper.make_graph(nodes, "flat", [images], [output])
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8),
        tmp_path / "n.onnx",
    )
    rule = {"size": [5, 2], "layout": "NCHW", "dtype": "uint8"}
    (tmp_path / "n.onnx.json").write_text(json.dumps({"width": 30, "preprocess": rule}))
    model = Imprinter(f"onnx:{tmp_path}/n.onnx", generator="mean").fit(shades)
    export(model, tmp_path / "m.onnx")
    prepared = np.stack([model.backbone.prepare(p) for p in shades[0]])
    scores, *_ = run(tmp_path / "m.onnx", images=prepared)
    expected = model.classifier.decision_function(model.look(shades[0]).X)
    np.testing.assert_allclose(scores[:, 1] - scores[:, 0], expected, atol=1e-5)


def test_a_head_is_exported_without_its_backbone(shades, tmp_path):
    model = Imprinter("raw", generator="mean").fit(shades)
    model.save(tmp_path / "m.imprint")
    document, arrays = container.read(tmp_path / "m.imprint")
    document["backbone"]["spec"] = "onnx:gone.onnx"
    container.write(tmp_path / "m.imprint", document, arrays)
    for to, name in (("numpy", "h.npz"), ("torch", "h.safetensors")):
        assert export_file(tmp_path / "m.imprint", tmp_path / name, to).backbone is None
    export_file(tmp_path / "m.imprint", tmp_path / "h.onnx", head_only=True)
    facts = {p.key: p.value for p in onnx.load(tmp_path / "h.onnx").metadata_props}
    about = json.loads(facts["imprint.export"])
    assert about["backbone"]["fingerprint"] == model.backbone.fingerprint
    with pytest.raises(FileError, match=r"gone.onnx: there is no such file"):
        export_file(tmp_path / "m.imprint", tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()


# Errors


def test_components_without_a_graph_are_refused(digits, tmp_path):
    far = fitted(
        digits, generator="mean", aggregator="nearest(m=1, metric='manhattan')"
    )
    with pytest.raises(
        ParameterError,
        match=r"^export\(to='onnx'\): nearest\(m=1, metric='manhattan'\) has no graph\.$",
    ):
        export(far, tmp_path / "h.onnx")
    for to, name in (("torch", "h.safetensors"), ("numpy", "h.npz")):
        assert (
            "nearest by manhattan distance"
            in export(far, tmp_path / name, to).model.about["use"]
        )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["h.npz", "h.safetensors"]


def test_a_network_that_is_not_onnx_is_refused(shades, tmp_path):
    model = Imprinter("raw", generator="mean").fit(shades)
    record = replace(model.backbone.record, name="resnet18", adapter="torchvision")
    model.embedder.__dict__["backbone"] = SimpleNamespace(
        record=record, fingerprint="0" * 64
    )
    with pytest.raises(
        ParameterError,
        match=r"that ONNX Runtime runs, not resnet18; export the head, .* head_only=True",
    ):
        export(model, tmp_path / "m.onnx")
    export(model, tmp_path / "m.onnx", head_only=True)


def test_an_old_network_is_refused(shades, tmp_path):
    network = onnx.load(ONE_BY_ONE)
    network.opset_import[0].version = 12
    onnx.save(network, tmp_path / "n.onnx")
    rule = {"size": 4, "layout": "NCHW", "dtype": "float32"}
    (tmp_path / "n.onnx.json").write_text(json.dumps({"width": 3, "preprocess": rule}))
    model = Imprinter(f"onnx:{tmp_path}/n.onnx", generator="mean").fit(shades)
    with pytest.raises(ParameterError, match="opset 12; it must be 13 or later"):
        export(model, tmp_path / "m.onnx")


def test_without_onnx_the_sentence_says_what_to_install(digits, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(
        MissingExtraError,
        match=r"needs onnx: pip install 'weight-imprinting\[export\]'",
    ):
        export(fitted(digits, generator="mean"), tmp_path / "h.onnx")
    export(fitted(digits, generator="mean"), tmp_path / "h.npz", "numpy")


def test_formats_names_and_foreign_files(digits, tmp_path):
    model = fitted(digits, generator="mean")
    with pytest.raises(
        ParameterError, match=r"Unknown format 'onx'. Did you mean 'onnx'"
    ):
        export(model, tmp_path / "h.onnx", "onx")
    with pytest.raises(FileError, match=r"for numpy must end in .npz"):
        export(model, tmp_path / "h.onnx", "numpy")
    (tmp_path / "h.onnx").write_bytes(ONE_BY_ONE.read_bytes())
    with pytest.raises(FileError, match="it exists and is not an exported model"):
        export(model, tmp_path / "h.onnx")
    assert (tmp_path / "h.onnx").read_bytes() == ONE_BY_ONE.read_bytes()
    for to, name in (
        ("onnx", "a.onnx"),
        ("torch", "a.safetensors"),
        ("numpy", "a.npz"),
    ):
        export(model, tmp_path / name, to)
        before = (tmp_path / name).read_bytes()
        export(model, tmp_path / name, to)
        assert (
            tmp_path / name
        ).read_bytes() == before or to == "numpy"  # a zip archive contains the time


def test_the_stated_calibration_gives_the_probabilities_of_the_model(tmp_path):
    X, y = load_digits(return_X_y=True)
    X, y = X[:600].astype(np.float32), y[:600]
    clf = ImprintClassifier(
        generator="kmeans(k=3)", aggregator="max", calibrate=True
    ).fit(X[:400], y[:400])
    stated = export(clf, tmp_path / "head.npz", "numpy").model.about["calibration"]
    head = clf.head_
    P = np.asarray(
        head.aggregator.probabilities(head.scores(X[400:]), head.prepared),
        dtype=np.float64,
    )
    tempered = P ** stated["power"]
    calibrated = (
        tempered / tempered.sum(axis=1, keepdims=True) * (1 - stated["floor"])
        + stated["floor"] / P.shape[1]
    )
    assert abs(stated["power"] - 1) > 0.1  # otherwise the test would be trivial
    assert np.allclose(calibrated, clf.predict_proba(X[400:]), atol=1e-4)
