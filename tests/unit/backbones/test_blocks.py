"""Blocks: several layers and places of a network in one embedding."""

import json
import pickle
import shutil

import numpy as np
import pytest

from imprint.backbones import load, record, stated_fingerprint
from imprint.backbones.adapters.onnx import session
from imprint.backbones.block import POOLINGS, Block, projection
from imprint.backbones.onnx_blocks import add_blocks
from imprint.backbones.onnx_graph import Additions, tensor_names
from imprint.backbones.record import RECORDS, Record
from imprint.core.errors import FileError, ParameterError

WEIGHTS = RECORDS.parent / "weights"
LAST = {"name": "last", "tensor": "embedding", "width": 512}
QUARTERS = {
    "name": "quarters",
    "tensor": "add102",
    "pooling": "quadrants",
    "width": 1280,
}
RULE = {"preprocess": {"size": 64}}


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(0, 256, (7, 64, 64, 3), dtype=np.uint8)


@pytest.fixture
def sidecar(tmp_path):
    def write(**keys):
        shutil.copy(WEIGHTS / "tinynet.onnx", tmp_path / "m.onnx")
        (tmp_path / "m.onnx.json").write_text(json.dumps(RULE | keys))
        return f"onnx:{tmp_path}/m.onnx"

    return write


def quadrants(maps):
    """The means of the four quarters of (n, c, h, w), as in the first experiments."""
    halves = [
        [slice(None, side - side // 2), slice(side // 2, None)]
        for side in maps.shape[2:]
    ]
    means = [maps[:, :, i, j].mean((2, 3)) for i in halves[0] for j in halves[1]]
    return np.stack(means, axis=2).reshape(len(maps), -1)


EXPECTED = {
    "none": lambda x: x.reshape(len(x), -1),
    "mean": lambda x: x.mean((2, 3)),
    "std": lambda x: x.std((2, 3)),
    "quadrants": quadrants,
    "tokens": lambda x: x.mean(1),
    "class_token": lambda x: x[:, 0],
    "patches": lambda x: x[:, 1:].mean(1),
}


@pytest.mark.parametrize("shape", [(5, 6, 7, 7), (5, 6, 2, 9), (5, 6, 4)], ids=str)
@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("opset", [13, 17, 18, 21])
def test_every_pooling_is_that_of_numpy(shape, pooling, opset):
    helper = pytest.importorskip("onnx.helper")
    x = helper.make_tensor_value_info("x", 1, ["n", *shape[1:]])
    node = helper.make_node("Relu", ["x"], ["y"])
    graph = helper.make_graph([node], "g", [x], [])
    opsets = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    values = np.random.default_rng(0).uniform(0, 9, shape).astype(np.float32)
    if pooling != "none" and len(shape) != (
        3 if "to" in pooling or "pat" in pooling else 4
    ):
        block = Block(name="b", tensor="y", pooling=pooling, width=6)
        with pytest.raises(ParameterError, match=rf"The block 'b' of net: .*{pooling}"):
            add_blocks(Additions(), "net", (block,), {"y": shape})
        return
    expected = EXPECTED[pooling](values.astype(np.float64))
    width = expected.shape[1]
    narrow = width // 2
    blocks = (
        Block(name="wide", tensor="y", pooling=pooling, width=width),
        Block(
            name="narrow",
            tensor="y",
            pooling=pooling,
            width=narrow,
            projected_from=width,
        ),
    )
    added = Additions()
    output = add_blocks(added, "net", blocks, {"y": shape})
    runtime = session("net", added.after(model.SerializeToString()), "cpu", 1)
    (rows,) = runtime.run([output], {"x": values})
    np.testing.assert_allclose(rows[:, :width], expected, rtol=1e-5, atol=1e-5)
    projected = expected @ projection(width, narrow)
    np.testing.assert_allclose(rows[:, width:], projected, rtol=1e-5, atol=1e-4)


def test_a_channel_that_hardly_varies_keeps_its_deviation():
    """The mean of squares minus the squared mean has no correct digit here."""
    helper = pytest.importorskip("onnx.helper")
    x = helper.make_tensor_value_info("x", 1, ["n", 1, 4, 4])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [])
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    added = Additions()
    block = Block(name="b", tensor="y", pooling="std", width=1)
    output = add_blocks(added, "net", (block,), {"y": (1, 1, 4, 4)})
    runtime = session("net", added.after(model.SerializeToString()), "cpu", 1)
    values = 1000 + np.random.default_rng(0).normal(0, 0.01, (3, 1, 4, 4))
    (rows,) = runtime.run([output], {"x": values.astype(np.float32)})
    np.testing.assert_allclose(rows, values.std((2, 3)), rtol=0.01)


@pytest.mark.parametrize("name", ["efficientnet_lite0", "tinynet"])
def test_the_shipped_blocks_are_those_of_the_inner_tensors(name, images):
    """Compared with the tensors themselves, pooled by NumPy."""
    backbone = load(name, threads=1)
    batch = np.stack([backbone.prepare(p) for p in images])
    rows = np.split(
        backbone.embed(batch),
        np.cumsum([b.width for b in backbone.blocks])[:-1],
        axis=1,
    )
    content = (RECORDS.parent / backbone.record.file).read_bytes()
    added = Additions()
    tensors = [added.output(b.tensor) for b in backbone.blocks]
    runtime = session(name, added.after(content), "cpu", 1)
    (node,) = runtime.get_inputs()
    values = runtime.run(tensors, {node.name: backbone.preprocess.arrange(batch)})
    for block, actual, tensor in zip(backbone.blocks, rows, values, strict=True):
        expected = EXPECTED[block.pooling](tensor.astype(np.float64))
        if block.projected_from:
            assert expected.shape[1] == block.projected_from
            expected = expected @ projection(block.projected_from, block.width)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(
            actual, expected, atol=1e-4 * scale, err_msg=block.name
        )


def test_the_blocks_of_texts_are_the_means_of_their_layers():
    backbone = load("minilm", threads=1)
    text = "Where is my card?"
    parts = np.split(backbone.embed([text])[0], 6)
    content = (WEIGHTS / "minilm.onnx").read_bytes()
    added = Additions()
    tensors = [added.output(b.tensor) for b in backbone.blocks]
    runtime = session("minilm", added.after(content), "cpu", 1)
    ids = np.array([backbone.tokenizer.encode(text).ids])
    feed = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    values = runtime.run(tensors, feed | {"token_type_ids": np.zeros_like(ids)})
    for part, tensor in zip(parts, values, strict=True):
        np.testing.assert_allclose(part, tensor[0].mean(0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["efficientnet_lite0", "tinynet", "minilm"])
def test_the_last_layer_alone_is_the_first_block(name):
    backbone = load(name, threads=1)
    last = load(f"{name}:last", threads=1)
    assert stated_fingerprint(f"{name}:last") == last.fingerprint
    assert last.fingerprint != backbone.fingerprint
    assert (last.blocks, last.width) == ((), backbone.blocks[0].width)
    items = ["a text", "another one", "b"]
    if name != "minilm":
        rng = np.random.default_rng(0)
        items = rng.integers(0, 256, (3, 70, 80, 3), dtype=np.uint8)
    prepared = [last.prepare(item) for item in items]
    batch = prepared if name == "minilm" else np.stack(prepared)
    first = backbone.embed(batch)[:, : last.width]
    np.testing.assert_allclose(first, last.embed(batch), rtol=1e-4, atol=1e-5)
    assert pickle.loads(pickle.dumps(last)).fingerprint == last.fingerprint


def test_the_last_layer_of_a_network_of_one_layer_is_the_network():
    assert record("raw:last") == record("raw")
    assert stated_fingerprint("raw:last") == stated_fingerprint("raw")


def test_a_last_layer_that_is_pooled_stays_pooled(sidecar, images):
    mean = {"name": "m", "tensor": "add102", "pooling": "mean", "width": 320}
    spec = sidecar(blocks=[mean, LAST])
    last = load(f"{spec}:last")
    assert last.width == 320
    np.testing.assert_array_equal(last.embed(images), load(spec).embed(images)[:, :320])


def test_a_file_of_your_own_may_state_blocks(sidecar, images):
    spec = sidecar(blocks=[LAST, QUARTERS])
    backbone = load(spec)
    assert backbone.width == 1792
    assert [b.name for b in backbone.blocks] == ["last", "quarters"]
    # the record travels in model files
    stored = json.loads(json.dumps(backbone.record.as_json()))
    assert Record.from_json(stored) == backbone.record
    one = load(f"{spec}:last")
    assert "blocks" not in one.record.as_json()
    assert one.fingerprint == load("tinynet:last").fingerprint
    np.testing.assert_allclose(
        backbone.embed(images)[:, :512], one.embed(images), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(
    "change",
    [
        {"name": "other"},
        {"tensor": "relu99", "width": 5120},
        {"width": 640, "projected_from": 1280},
        {"pooling": "std", "width": 320},
    ],
    ids=str,
)
def test_the_fingerprint_changes_with_every_fact_of_a_block(sidecar, change):
    before = stated_fingerprint(sidecar(blocks=[LAST, QUARTERS]))
    after = stated_fingerprint(sidecar(blocks=[LAST, QUARTERS | change]))
    assert before != after


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"blocks": {}}, "it must be a list"),
        ({"blocks": [LAST, 1]}, "1 must be a JSON object"),
        (
            {"blocks": [LAST | {"width": 0}]},
            r"Block\(width=0\): width must be int >= 1",
        ),
        ({"blocks": [LAST | {"width": True}]}, "width must be int >= 1"),
        ({"blocks": [LAST | {"tensor": ""}]}, r"Block\(tensor=''\)"),
        ({"blocks": [{"name": "a", "width": 3}]}, "must have 'tensor'"),
        (
            {"blocks": [LAST | {"pool": "mean"}]},
            "Unknown key of a block 'pool'. Did you mean 'pooling'",
        ),
        (
            {"blocks": [LAST | {"pooling": "meen"}]},
            "Unknown pooling 'meen'. Did you mean 'mean'",
        ),
        (
            {"blocks": [LAST | {"projected_from": 512}]},
            "projected_from must be int >= 513",
        ),
        ({"blocks": [LAST, LAST]}, "names of blocks must differ"),
        (
            {"blocks": [LAST], "width": 513},
            "width must be the sum of the widths of its blocks, 512",
        ),
        ({"blocks": [LAST], "layer": "embedding"}, "with blocks, leave layer out"),
    ],
    ids=str,
)
def test_a_bad_block_is_refused_in_one_sentence(sidecar, keys, message):
    with pytest.raises(FileError, match=message):
        load(sidecar(**keys))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tensor": "add103"}, r"Unknown tensor of m 'add103'. Did you mean 'add102'"),
        (
            {"width": 1281},
            r"The block 'quarters' of m gives 1280 numbers; its record says width 1281",
        ),
        (
            {"width": 100, "projected_from": 1281},
            "gives 1280 numbers; its record says projected_from 1281",
        ),
        (
            {"pooling": "tokens"},
            "its tensor has 4 axes, and the pooling 'tokens' needs 3",
        ),
        ({"tensor": "globalaveragepool106"}, "its map has 1 x 1 places"),
    ],
    ids=str,
)
def test_a_block_that_the_network_does_not_have_is_refused(sidecar, change, message):
    with pytest.raises(ParameterError, match=message):
        load(sidecar(blocks=[LAST, QUARTERS | change]))


@pytest.mark.parametrize("content", [b"", b"not a model", "cut"])
def test_a_damaged_file_with_blocks_is_refused(sidecar, tmp_path, content):
    spec = sidecar(blocks=[LAST, QUARTERS])
    whole = (WEIGHTS / "tinynet.onnx").read_bytes()
    (tmp_path / "m.onnx").write_bytes(whole[:3000] if content == "cut" else content)
    with pytest.raises(FileError, match="m is not a model ONNX Runtime can run"):
        load(spec)


def test_the_tensors_of_a_model_are_those_of_onnx():
    onnx = pytest.importorskip("onnx")
    content = (WEIGHTS / "tinynet.onnx").read_bytes()
    nodes = onnx.load_from_string(content).graph.node
    assert tensor_names(content) == [name for node in nodes for name in node.output]


def test_a_block_of_texts_must_be_a_mean_of_tokens():
    from dataclasses import replace

    from imprint.backbones.adapters.text import SentenceEncoder

    source = record("minilm")
    changed = replace(source.blocks[1], pooling="class_token")
    with pytest.raises(ParameterError, match="must have the pooling 'tokens'"):
        SentenceEncoder(
            replace(source, blocks=(source.blocks[0], changed), width=768), "cpu", 1
        )


def test_a_projection_keeps_angles():
    """Of 1,280 numbers, 384 remain; inner products of unit rows change by about 1 / sqrt(384)."""
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(40, 1280))) ** 2  # far from normal, as activations are
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    P = projection(1280, 384).astype(np.float64)
    np.testing.assert_allclose(P.T @ P, np.eye(384), atol=1e-6)
    projected = X @ P * np.sqrt(1280 / 384)
    assert np.abs(projected @ projected.T - X @ X.T).max() < 5 / np.sqrt(384)
    assert np.abs(projected @ projected.T - X @ X.T).mean() < 1.5 / np.sqrt(384)


def test_a_projection_is_the_same_in_every_version():
    corner = projection(1280, 384)[:2, :3]
    np.testing.assert_allclose(corner, PROJECTION_CORNER, rtol=1e-6)


PROJECTION_CORNER = [
    [0.03952844, 0.03952835, 0.0395282],
    [-0.0395282, -0.0395274, -0.03952606],
]
