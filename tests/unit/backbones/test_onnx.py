"""ONNX files and the default backbone."""

import hashlib
import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

from imprint.backbones import load, record
from imprint.backbones.record import RECORDS
from imprint.core.errors import FileError, ParameterError

TINYNET = RECORDS.parent / "weights/tinynet.onnx"
ONE_BY_ONE = (
    Path(__file__).parents[1] / "fixtures/mean_of_one.onnx"
)  # float NCHW (1, 3, 4, 4), mean over pixels
SIDECAR = {"width": 512, "layer": "embedding", "preprocess": {"size": 64}}


@pytest.fixture(scope="module")
def tinynet():
    return load("tinynet", threads=1)


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(0, 256, (5, 48, 32, 3), dtype=np.uint8)


def sidecar(folder, content, source=TINYNET):
    """Copy a model and write a record next to it; return the specification that loads it."""
    shutil.copy(source, folder / "m.onnx")
    (folder / "m.onnx.json").write_text(
        content if isinstance(content, str) else json.dumps(content)
    )
    return f"onnx:{folder}/m.onnx"


def batch(backbone, images):
    return np.stack([backbone.prepare(p) for p in images])


def test_tinynet_is_the_file_its_record_describes(tinynet):
    assert hashlib.sha256(TINYNET.read_bytes()).hexdigest() == record("tinynet").sha256
    assert tinynet.width == 512 * 5
    assert tinynet.modality == "image"


def test_tinynet_embeds_alone_as_in_a_batch(tinynet, images):
    x = batch(tinynet, images)
    together = tinynet.embed(x)
    assert together.shape == (5, 2560)
    assert together.dtype == np.float32
    assert together[:, :512].min() >= 0
    assert together.std(0).max() > 0.01
    alone = np.concatenate([tinynet.embed(x[i : i + 1]) for i in range(5)])
    np.testing.assert_allclose(together, alone, rtol=1e-4, atol=1e-5)


def test_an_empty_batch_gives_no_rows(tinynet):
    assert tinynet.embed(np.empty((0, 64, 64, 3), np.uint8)).shape == (0, 2560)


def test_a_batch_may_be_a_view(tinynet, images):
    x = batch(tinynet, images)
    assert np.array_equal(tinynet.embed(x[::2]), tinynet.embed(x[::2].copy()))


def test_one_thread_or_two_agree(images, tinynet):
    two = load("tinynet", threads=2)
    np.testing.assert_allclose(
        two.embed(batch(two, images)),
        tinynet.embed(batch(two, images)),
        rtol=1e-4,
        atol=1e-5,
    )
    assert two.fingerprint == tinynet.fingerprint


def test_tinynet_in_a_file_is_known_by_its_checksum_or_by_its_record(tmp_path, images):
    mine = load(sidecar(tmp_path, SIDECAR), threads=1)
    last = load("tinynet:last", threads=1)
    assert np.array_equal(
        mine.embed(batch(mine, images)), last.embed(batch(last, images))
    )
    assert mine.fingerprint == last.fingerprint
    assert mine.record.name == "m"


def test_the_fingerprint_changes_with_the_preprocessing(tmp_path):
    other = SIDECAR | {"preprocess": {"size": 64, "filter": "bicubic"}}
    last = load("tinynet:last")
    assert load(sidecar(tmp_path, other)).fingerprint != last.fingerprint


def test_a_model_of_fixed_batch_one_runs_row_by_row(tmp_path, images):
    rule = {"size": 4, "layout": "NCHW", "dtype": "float32", "divide": 255.0}
    mean = load(sidecar(tmp_path, {"width": 3, "preprocess": rule}, ONE_BY_ONE))
    x = batch(mean, images)
    np.testing.assert_allclose(mean.embed(x), x.mean((1, 2)) / 255, rtol=1e-5)


def test_a_backbone_of_a_relative_path_is_unpickled_in_another_folder(
    tmp_path, monkeypatch, images
):
    sidecar(tmp_path, SIDECAR)
    monkeypatch.chdir(tmp_path)
    before = load("onnx:m.onnx", threads=1)
    pickled = pickle.dumps(before)
    monkeypatch.chdir("/")
    after = pickle.loads(pickled)
    assert after.fingerprint == before.fingerprint
    assert np.array_equal(
        after.embed(batch(after, images)), before.embed(batch(before, images))
    )


def test_a_known_file_is_not_recognised_under_another_prefix(tmp_path):
    shutil.copy(TINYNET, tmp_path / "m.tflite")
    with pytest.raises(FileError, match=r"m\.tflite has no record"):
        load(f"tflite:{tmp_path}/m.tflite")


def test_a_file_without_record_says_what_to_write_and_where(tmp_path):
    shutil.copy(ONE_BY_ONE, tmp_path / "m.onnx")
    with pytest.raises(
        FileError,
        match=r'm\.onnx has no record: write .*m\.onnx\.json, such as \{"width"',
    ):
        load(f"onnx:{tmp_path}/m.onnx")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "must be a JSON object"),
        ({"layer": "embedding"}, "must have 'width'"),
        (SIDECAR | {"wdth": 1}, "no key 'wdth'"),
        (SIDECAR | {"width": "512"}, r"width='512'\): width has the wrong type"),
        (SIDECAR | {"width": 0}, "width must be int >= 1"),
        (SIDECAR | {"width": True}, "wrong type"),
        (SIDECAR | {"preprocess": {"sizes": 64}}, "at least a size"),
        (SIDECAR | {"preprocess": {"size": 64, "sizes": 64}}, "no key 'sizes'"),
        (SIDECAR | {"preprocess": {"size": "64"}}, "size must be two ints"),
        (SIDECAR | {"preprocess": {"size": 64, "divide": "x"}}, "wrong type"),
        (SIDECAR | {"preprocess": None}, "preprocess must describe"),
        (SIDECAR | {"modality": "film"}, "Unknown modality 'film'"),
        (SIDECAR | {"sha256": "ABC"}, "sha256 must be"),
        (SIDECAR | {"sha256": "0" * 64}, "its record says 0000"),
        (SIDECAR | {"adapter": "tflite"}, "adapter must be 'onnx'"),
    ],
)
def test_a_bad_record_is_refused_in_one_sentence(tmp_path, content, message):
    with pytest.raises(FileError, match=message):
        load(sidecar(tmp_path, content))


def test_a_layer_that_does_not_exist_gets_the_list(tmp_path):
    with pytest.raises(
        ParameterError, match=r"Unknown layer 'embeding'. Did you mean 'embedding'"
    ):
        load(sidecar(tmp_path, SIDECAR | {"layer": "embeding"}))


@pytest.mark.parametrize(
    "rule",
    [{"size": 32}, {"size": 64, "dtype": "float32"}, {"size": 64, "layout": "NCHW"}],
    ids=str,
)
def test_a_record_that_does_not_fit_the_input_is_refused(tmp_path, rule):
    with pytest.raises(
        ParameterError,
        match=r"feeds it tensor\(.*but its input is tensor\(uint8\) \['n', 64, 64, 3\]",
    ):
        load(sidecar(tmp_path, SIDECAR | {"preprocess": rule}))


def test_a_width_that_the_layer_does_not_have_is_refused(tmp_path, images):
    b = load(sidecar(tmp_path, SIDECAR | {"width": 511}))
    with pytest.raises(
        ParameterError, match="gives 512 numbers; its record says width 511"
    ):
        b.embed(batch(b, images))


@pytest.mark.parametrize(
    "content",
    [b"", b"not a model", TINYNET.read_bytes()[:3000]],
    ids=["empty", "text", "cut"],
)
def test_a_damaged_file_is_refused(tmp_path, content):
    spec = sidecar(tmp_path, SIDECAR)
    (tmp_path / "m.onnx").write_bytes(content)
    with pytest.raises(FileError, match="m is not a model ONNX Runtime can run"):
        load(spec)


def test_cuda_is_not_replaced_by_cpu():
    with pytest.raises(
        ParameterError, match=r"load\('tinynet', device='cuda'\): .*onnxruntime-gpu"
    ):
        load("tinynet", device="cuda")


def test_loading_and_running_prints_nothing(capfd, images):
    b = load("tinynet")
    b.embed(batch(b, images))
    assert capfd.readouterr() == ("", "")


def external_model(folder, location, where):
    """A model with external data: as an initialiser (dense or sparse), in a node, a subgraph or a function."""
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    weights = helper.make_tensor("w", onnx.TensorProto.FLOAT, [1], [0.0])
    weights.ClearField("float_data")
    weights.data_location = onnx.TensorProto.EXTERNAL
    weights.external_data.add(key="location", value=location)
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 3, 4, 4])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    nodes, initialisers, sparse, functions = [], [], [], []
    opsets = [helper.make_opsetid("", 15), helper.make_opsetid("own", 1)]
    constant = helper.make_node("Constant", [], ["w"], value=weights)
    if where == "initialiser":
        initialisers = [weights]
    elif where == "sparse values":
        indices = helper.make_tensor("i", onnx.TensorProto.INT64, [1], [0])
        sparse = [helper.make_sparse_tensor(weights, indices, [1])]
    elif where == "sparse indices":
        values = helper.make_tensor("w", onnx.TensorProto.FLOAT, [1], [1.0])
        weights.data_type, weights.name = onnx.TensorProto.INT64, "i"
        sparse = [helper.make_sparse_tensor(values, weights, [1])]
    elif where == "subgraph":
        output = helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, [1])
        branch = helper.make_graph([constant], "branch", [], [output])
        true = helper.make_tensor("c", onnx.TensorProto.BOOL, [], [True])
        nodes = [helper.make_node("Constant", [], ["c"], value=true)]
        nodes += [
            helper.make_node("If", ["c"], ["w"], then_branch=branch, else_branch=branch)
        ]
    elif where == "function":
        functions = [
            helper.make_function("own", "Weights", [], ["w"], [constant], opsets[:1])
        ]
        nodes = [helper.make_node("Weights", [], ["w"], domain="own")]
    else:
        nodes = [constant]
    nodes.append(helper.make_node("Add", ["x", "w"], ["y"]))
    graph = helper.make_graph(
        nodes, "g", [x], [y], initialisers, sparse_initializer=sparse
    )
    model = helper.make_model(
        graph, opset_imports=opsets, ir_version=8, functions=functions
    )
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    (folder / "m.onnx.json").write_text(json.dumps({"width": 48, "preprocess": RULE}))
    return f"onnx:{folder}/m.onnx"


RULE = {"size": 4, "layout": "NCHW", "dtype": "float32"}


@pytest.mark.parametrize(
    "where",
    ["initialiser", "sparse values", "sparse indices", "node", "subgraph", "function"],
)
def test_weights_in_another_file_are_refused(tmp_path, monkeypatch, where):
    """The fingerprint covers only the model file, so different external weights would have the same fingerprint."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.bin").write_bytes(bytes(8))
    for location in ("w.bin", "../w.bin", str(tmp_path / "w.bin")):
        with pytest.raises(
            FileError,
            match=r"m keeps its weights in another file \(external data\), which its finger",
        ):
            load(external_model(tmp_path, location, where))
    with pytest.raises(
        FileError, match="m is not a model ONNX Runtime can run: "
    ):  # external data at a memory address
        load(external_model(tmp_path, "*/_ORT_MEM_ADDR_/*", where))


def test_a_tensor_called_location_is_not_external_data(tmp_path):
    onnx = pytest.importorskip("onnx")
    model = onnx.load(ONE_BY_ONE)
    model.graph.doc_string = "location"
    model.metadata_props.add(key="location", value="w.bin")
    onnx.save(model, tmp_path / "a.onnx")
    assert (
        load(
            sidecar(tmp_path, {"width": 3, "preprocess": RULE}, tmp_path / "a.onnx")
        ).width
        == 3
    )
