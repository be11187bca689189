"""The backbones on real images, compared with embeddings from other programs."""

import os
from pathlib import Path

import numpy as np
import pytest

from imprint.backbones import head, load

SHARED = Path(
    os.environ.get(
        "IMPRINT_SHARED", Path(__file__).resolve().parents[3].parent / "shared"
    )
)
pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(
        not (SHARED / "embeddings").is_dir(), reason=f"no real embeddings at {SHARED}"
    ),
]
PER_CLASS = 30  # of the 300 or 600 rows of each class


def embed(backbone, images, size=100):
    parts = range(0, len(images), size)
    return np.concatenate(
        [
            backbone.embed(
                np.stack([backbone.prepare(p) for p in images[i : i + size]])
            )
            for i in parts
        ]
    )


def first_of_each_class(labels, count):
    return np.concatenate([np.flatnonzero(labels == c)[:count] for c in range(10)])


def subset(backbone, name, split):
    """Images and quantised embeddings of the first rows of each class."""
    pack = np.load(SHARED / f"data/{name}.npz")
    stored = np.load(SHARED / f"embeddings/subset/{backbone}-{name}.npz")
    rows = first_of_each_class(pack[f"{split}_labels"], PER_CLASS)
    first = first_of_each_class(stored[f"{split}_labels"], PER_CLASS)
    return (
        pack[f"{split}_images"][rows],
        stored[split][first],
        stored["scale"],
        stored["offset"],
    )


@pytest.mark.parametrize(
    ("name", "split"),
    [("mnist", "test"), ("fashionmnist", "train"), ("fashionmnist", "test")],
)
def test_tinynet_reproduces_the_stored_embeddings_within_quantisation(name, split):
    images, bytes_, scale, offset = subset("tinynet", name, split)
    out = embed(load("tinynet:last", threads=2), images)
    steps = np.clip((out - offset) / scale, 0, 255)
    wrong = np.abs(steps - bytes_)
    assert (
        wrong.max() < 1.5
    )  # half a step from rounding, the rest from half-precision weights
    assert (wrong > 0.6).mean() < 0.01
    stored = bytes_ * scale + offset
    cosine = (
        (out * stored).sum(1)
        / np.linalg.norm(out, axis=1)
        / np.linalg.norm(stored, axis=1)
    )
    assert cosine.min() > 0.999


@pytest.mark.parametrize("name", ["mnist", "fashionmnist"])
def test_deit_tiny_reproduces_the_stored_embeddings_within_quantisation(name):
    images, bytes_, scale, offset = subset("deit_tiny", name, "test")
    backbone = load(f"onnx:{SHARED}/models/deit_tiny.onnx")
    assert [block.width for block in backbone.blocks] == [192] * 4
    last = load(f"onnx:{SHARED}/models/deit_tiny.onnx:last")
    out = embed(last, images[::10])
    np.testing.assert_allclose(
        embed(backbone, images[::10])[:, :192], out, rtol=1e-3, atol=1e-4
    )
    assert np.abs(np.clip((out - offset) / scale, 0, 255) - bytes_[::10]).max() < 1.5


def test_mobilenet_reproduces_the_stored_bytes_exactly():
    pytest.importorskip("ai_edge_litert")
    pack = np.load(SHARED / "data/mnist.npz")
    stored = np.load(SHARED / "embeddings/full/mobilenet_v1_0.25_128-mnist.npz")
    backbone = load(f"tflite:{SHARED}/models/mobilenet_v1_0.25_128_quant.tflite:last")
    for split in ("train", "test"):
        want = stored[split][:3000].astype(np.float32) * np.float32(stored["scale"])
        assert np.array_equal(embed(backbone, pack[f"{split}_images"][:3000]), want)


@pytest.mark.parametrize(
    ("name", "width"),
    [
        ("mobilenet_v1_0.25_128_quant", 2176),
        ("mobilenet_v1_0.5_160_quant", 3456),
        ("mobilenet_v1_1.0_224_quant_embedding_extractor", 4352),
        ("tf2_mobilenet_v2_1.0_224_ptq", 4736),
    ],
)
def test_every_mobilenet_separates_photographs_better_than_pixels(name, width):
    pytest.importorskip("ai_edge_litert")
    pack = np.load(SHARED / "data/cifar10.npz")
    scores = {}
    for spec in (f"tflite:{SHARED}/models/{name}.tflite", "raw"):
        train, test = (
            embed(load(spec), pack[f"{s}_images"][:200]) for s in ("train", "test")
        )
        means = np.stack(
            [train[pack["train_labels"][:200] == c].mean(0) for c in range(10)]
        )
        unit = means / np.linalg.norm(means, axis=1, keepdims=True)
        scores[spec] = np.mean((test @ unit.T).argmax(1) == pack["test_labels"][:200])
        if spec != "raw":
            assert test.shape[1] == width
    assert max(scores, key=scores.get) != "raw"


def test_efficientnet_in_half_precision_is_the_original():
    ort = pytest.importorskip("onnxruntime")
    backbone, whole = (
        load("efficientnet_lite0:last", threads=2),
        SHARED / "models/efficientnet_lite0.onnx",
    )
    original = ort.InferenceSession(whole, providers=["CPUExecutionProvider"])
    for name in ("cifar10", "mnist"):
        images = np.load(SHARED / f"data/{name}.npz")["test_images"][:40]
        x = np.stack([backbone.prepare(p) for p in images])
        (want,) = original.run(["feat"], {"x": backbone.preprocess.arrange(x)})
        out = backbone.embed(x)
        cosine = (
            (out * want).sum(1)
            / np.linalg.norm(out, axis=1)
            / np.linalg.norm(want, axis=1)
        )
        assert cosine.min() > 0.99998


def test_the_head_of_efficientnet_names_lorries_and_birds():
    pack, classifier = np.load(SHARED / "data/cifar10.npz"), head("efficientnet_lite0")
    out = embed(load("efficientnet_lite0:last"), pack["test_images"][:300])
    guess = np.array(classifier.ids)[
        (out @ classifier.weights.T + classifier.bias).argmax(1)
    ]
    for label, id_ in (
        (9, "n03796401"),
        (2, "n01530575"),
    ):  # lorry: moving van; bird: brambling
        share = np.mean(guess[pack["test_labels"][:300] == label] == id_)
        assert share > 5 * np.mean(guess[pack["test_labels"][:300] != label] == id_)


def test_minilm_separates_the_intents_of_bank_customers():
    import csv

    def rows(split):
        with open(
            SHARED / f"data/text/banking77/{split}.csv", encoding="utf-8", newline=""
        ) as f:
            return [(r["text"], r["category"]) for r in csv.DictReader(f)]

    some = {label for _, label in rows("test")[::40]}
    (train, y), (test, truth) = (
        zip(*[r for r in rows(s) if r[1] in some][::n])
        for s, n in (("train", 8), ("test", 8))
    )
    backbone = load("minilm")
    X, Q = (backbone.embed(texts) for texts in (train, test))
    means = np.stack([X[np.array(y) == c].mean(0) for c in sorted(some)])
    unit = means / np.linalg.norm(means, axis=1, keepdims=True)
    assert (
        np.mean(np.array(sorted(some))[(Q @ unit.T).argmax(1)] == np.array(truth)) > 0.8
    )


def test_the_head_recognises_the_classes_tinynet_was_trained_on():
    stored = np.load(SHARED / "embeddings/subset/tinynet-tinyimagenet100.npz")
    X = stored["test"].astype(np.float32) * stored["scale"] + stored["offset"]
    guess = (X @ head("tinynet").weights.T + head("tinynet").bias).argmax(1)
    ids = np.array(
        [
            np.bincount(guess[stored["test_labels"] == c], minlength=200).argmax()
            for c in range(100)
        ]
    )
    assert len(set(ids)) == 100
    assert np.mean(guess == ids[stored["test_labels"]]) == pytest.approx(
        0.6146, abs=0.002
    )
