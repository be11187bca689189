"""TFLite files: a small quantised network created in the test, whose pooling output is the embedding."""

import json
import sys

import numpy as np
import pytest

from imprint.backbones import load
from imprint.backbones.adapters.tflite import truncated
from imprint.backbones.block import projection
from imprint.core.errors import FileError, MissingExtraError, ParameterError

flatbuffers = pytest.importorskip("flatbuffers")
schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
SCALE, ZERO = 0.5, 7
SIDECAR = {"width": 3, "layer": "net/pool", "preprocess": {"size": 4}}


def tensor(name, shape, buffer=0, scale=SCALE, kind=schema.TensorType.UINT8):
    t = schema.TensorT()
    t.name, t.shape, t.type, t.buffer = name.encode(), shape, kind, buffer
    t.quantization = schema.QuantizationParametersT()
    t.quantization.scale, t.quantization.zeroPoint = [scale], [ZERO]
    return t


def operator(code, inputs, outputs, kind, options):
    op = schema.OperatorT()
    op.opcodeIndex, op.inputs, op.outputs = code, inputs, outputs
    op.builtinOptionsType, op.builtinOptions = kind, options
    return op


def pooling():
    options = schema.Pool2DOptionsT()
    options.padding = schema.Padding.VALID
    options.strideW = options.strideH = options.filterWidth = options.filterHeight = 4
    return options


def code(builtin):
    c = schema.OperatorCodeT()
    c.builtinCode = c.deprecatedBuiltinCode = builtin
    c.version = 1
    return c


def network(input_type=schema.TensorType.UINT8):
    """Images of 4 x 4 -> average pool -> reshape to [1, 3], which is valid for a single image only."""
    graph, model, shape = schema.SubGraphT(), schema.ModelT(), schema.BufferT()
    shape.data = np.array([1, 3], np.int32).view(np.uint8)
    graph.tensors = [
        tensor("net/input", [1, 4, 4, 3], kind=input_type),
        tensor("net/pool;net/fused", [1, 1, 1, 3], kind=input_type),
        tensor("net/shape", [2], buffer=1, kind=schema.TensorType.INT32),
        tensor("net/flat", [1, 3], kind=input_type),
    ]
    graph.inputs, graph.outputs = [0], [3]
    pool, reshape = (
        schema.BuiltinOptions.Pool2DOptions,
        schema.BuiltinOptions.ReshapeOptions,
    )
    graph.operators = [
        operator(0, [0], [1], pool, pooling()),
        operator(1, [1, 2], [3], reshape, schema.ReshapeOptionsT()),
    ]
    model.version, model.subgraphs, model.buffers = (
        3,
        [graph],
        [schema.BufferT(), shape],
    )
    model.operatorCodes = [
        code(schema.BuiltinOperator.AVERAGE_POOL_2D),
        code(schema.BuiltinOperator.RESHAPE),
    ]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def deep_network():
    """Images of 8 x 8 -> average pool to a map of 4 x 4 -> pool to one place -> reshape."""
    graph, model, shape = schema.SubGraphT(), schema.ModelT(), schema.BufferT()
    shape.data = np.array([-1, 3], np.int32).view(np.uint8)
    graph.tensors = [
        tensor("net/input", [1, 8, 8, 3]),
        tensor("net/half", [1, 4, 4, 3]),
        tensor("net/pool", [1, 1, 1, 3]),
        tensor("net/shape", [2], buffer=1, kind=schema.TensorType.INT32),
        tensor("net/flat", [1, 3]),
    ]
    graph.inputs, graph.outputs = [0], [4]
    halving = pooling()
    halving.strideW = halving.strideH = 2
    halving.filterWidth = halving.filterHeight = 2
    pool = schema.BuiltinOptions.Pool2DOptions
    graph.operators = [
        operator(0, [0], [1], pool, halving),
        operator(0, [1], [2], pool, pooling()),
        operator(
            1,
            [2, 3],
            [4],
            schema.BuiltinOptions.ReshapeOptions,
            schema.ReshapeOptionsT(),
        ),
    ]
    model.version, model.subgraphs = 3, [graph]
    model.buffers = [schema.BufferT(), shape]
    model.operatorCodes = [
        code(schema.BuiltinOperator.AVERAGE_POOL_2D),
        code(schema.BuiltinOperator.RESHAPE),
    ]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def write(folder, content=None, **record):
    (folder / "m.tflite").write_bytes(network() if content is None else content)
    (folder / "m.tflite.json").write_text(json.dumps(SIDECAR | record))
    return f"tflite:{folder}/m.tflite"


@pytest.fixture
def batch():
    return np.random.default_rng(0).integers(0, 256, (6, 4, 4, 3), dtype=np.uint8)


def test_the_pool_is_read_for_any_batch_and_dequantised(tmp_path, batch):
    b = load(write(tmp_path), threads=1)
    out = b.embed(batch)
    want = (np.rint(batch.mean((1, 2))) - ZERO) * SCALE
    assert out.dtype == np.float32
    assert np.abs(out - want).max() <= SCALE  # the runtime rounds halves differently
    assert np.array_equal(out % SCALE, np.zeros_like(out))
    assert np.array_equal(
        np.concatenate([b.embed(batch[i : i + 2]) for i in (0, 2, 4)]), out
    )


def test_layers_after_the_embedding_are_removed(tmp_path):
    write(tmp_path)
    cut = truncated(network(), "m", ["net/pool"])
    graph = schema.Model.GetRootAs(cut).Subgraphs(0)
    assert (graph.OperatorsLength(), list(graph.OutputsAsNumpy())) == (1, [1])


def block(name, tensor, pooling, width, **more):
    return {"name": name, "tensor": tensor, "pooling": pooling, "width": width} | more


BLOCKS = [
    block("last", "net/pool", "none", 3),
    block("mean", "net/half", "mean", 3),
    block("spread", "net/half", "std", 3),
    block("places", "net/half", "quadrants", 12),
    block("narrow", "net/half", "quadrants", 5, projected_from=12),
]


def test_blocks_are_read_in_one_pass_and_pooled(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (5, 8, 8, 3), dtype=np.uint8)
    described = {"width": 26, "layer": None, "preprocess": {"size": 8}}
    b = load(write(tmp_path, deep_network(), **described, blocks=BLOCKS), threads=1)
    last, mean, spread, places, narrow = np.split(
        b.embed(images), np.cumsum([3, 3, 3, 12]), axis=1
    )
    half = images.reshape(5, 4, 2, 4, 2, 3).mean((2, 4))  # the map, not yet rounded
    half = (half - ZERO) * SCALE
    quarters = half.reshape(5, 2, 2, 2, 2, 3).mean((2, 4)).transpose(0, 3, 1, 2)
    assert np.abs(mean - half.mean((1, 2))).max() <= SCALE
    assert np.abs(spread - half.std((1, 2))).max() <= SCALE
    assert np.abs(places - quarters.reshape(5, 12)).max() <= SCALE
    assert np.abs(last - mean).max() <= 2 * SCALE
    np.testing.assert_allclose(narrow, places @ projection(12, 5), rtol=1e-5)
    one_by_one = [b.embed(images[i : i + 1]) for i in range(5)]
    np.testing.assert_allclose(np.concatenate(one_by_one), b.embed(images), rtol=1e-6)
    only = load(f"tflite:{tmp_path}/m.tflite:last")
    assert np.array_equal(only.embed(images), last)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (block("b", "net/half", "mean", 4), "gives 3 numbers; its record says 4"),
        (block("b", "net/half", "tokens", 3), "networks of this kind have no tokens"),
        (block("b", "net/flat", "std", 3), "has 2 axes, and the pooling 'std' needs 4"),
    ],
)
def test_blocks_that_do_not_fit_are_refused(tmp_path, wrong, message):
    blocks = [BLOCKS[0], wrong]
    described = {"width": 3 + wrong["width"], "layer": None, "preprocess": {"size": 8}}
    b = load(write(tmp_path, deep_network(), **described, blocks=blocks))
    with pytest.raises(ParameterError, match=message):
        b.embed(np.zeros((1, 8, 8, 3), np.uint8))


def test_without_a_layer_the_output_is_the_embedding(tmp_path, batch):
    b = load(write(tmp_path, layer=None))
    assert np.array_equal(b.embed(batch[:1]), load(write(tmp_path)).embed(batch[:1]))


def test_an_unknown_layer_gets_the_list(tmp_path):
    with pytest.raises(
        ParameterError,
        match=r"Unknown layer 'net/pol'. Did you mean 'net/pool'\? Known: net/pool, net/flat",
    ):
        load(write(tmp_path, layer="net/pol"))


def test_another_input_type_is_refused(tmp_path):
    with pytest.raises(
        ParameterError, match="feeds it uint8, but its inputs are: int8"
    ):
        load(write(tmp_path, network(schema.TensorType.INT8)))


@pytest.mark.parametrize(
    "content",
    [b"", b"not a model at all", network()[:200]],
    ids=["empty", "text", "cut"],
)
@pytest.mark.parametrize("layer", ["net/pool", None])
def test_a_damaged_file_is_refused(tmp_path, content, layer):
    with pytest.raises(FileError, match=r"m is not a (TFLite )?model"):
        load(write(tmp_path, content, layer=layer))


def test_cuda_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="'cpu' only"):
        load(write(tmp_path), device="cuda")


def test_without_litert_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ai_edge_litert.schema_py_generated", None)
    with pytest.raises(
        MissingExtraError,
        match=r"^m needs ai-edge-litert: pip install 'weight-imprinting\[litert\]', or in a clone: pip install '.\[litert\]'\.$",
    ):
        load(write(tmp_path))
