"""Records, texts, preprocessing: what can be known of a backbone without running it."""

import json
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from imprint import backbones
from imprint.backbones import Preprocess, Record, head, load, names, record
from imprint.backbones.record import FILES, RECORDS
from imprint.core.errors import FileError, ParameterError

FILE_RECORDS = sorted(FILES.glob("*.json"))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_reading_every_record_imports_nothing_heavy():
    code = (
        "import sys\nfrom imprint.backbones import names, record\n[record(n) for n in names()]\n"
        "print(sorted({'torch', 'torchvision', 'onnxruntime', 'PIL', 'timm', 'safetensors'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_the_names_of_the_issue_are_there():
    assert set(names()) >= {"tinynet", "raw", "resnet18", "resnet50", "vit_b_16", "swin_b"}


@pytest.mark.parametrize("name", names())
def test_a_record_says_what_a_user_must_know(name):
    r = record(name)
    assert r.name == name
    assert r.modality == "image"
    assert all([r.source, r.licence, r.pretraining, r.reg, r.width, r.input_size])
    assert name == "raw" or (r.sha256 and r.top1)
    assert Record.from_json(json.loads(json.dumps(r.as_json()))) == r


@pytest.mark.parametrize("path", FILE_RECORDS, ids=lambda p: p.stem)
def test_a_shipped_record_of_a_file_is_whole(path):
    r = Record.from_json(json.loads(path.read_text()))
    assert len(r.sha256 or "") == 64
    assert all([r.layer, r.source, r.licence, r.pretraining, r.top1, r.reg, r.citation])
    assert path.name == f"{r.name}.{r.adapter}.json"


def test_the_least_squares_reg_is_the_papers():
    table = {"resnet18": 1e-4, "resnet50": 1e-4, "vit_b_16": 0.1, "swin_b": 0.05}
    assert {n: record(n).reg for n in table} == table


@pytest.mark.parametrize("spec", ["tinynett", "", "onnx", "onnx:", "keras:x", "raw:", "../secret", 3, None])
def test_an_unknown_text_is_refused_with_the_list(spec):
    with pytest.raises(ParameterError, match=r"Unknown backbone .*Known: raw, .*tinynet.*onnx:FILE"):
        load(spec)


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(ParameterError, match="Did you mean 'resnet18'"):
        record("resnet_18")


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_threads_are_checked(threads):
    with pytest.raises(ParameterError, match=r"threads must be None or int >= 1\.$"):
        load("raw", threads=threads)


@pytest.mark.parametrize("device", ["cuda", "gpu", "mps"])
def test_no_device_is_swapped_for_another(device):
    with pytest.raises(ParameterError, match="'cpu' alone"):
        load("raw", device=device)


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"size": (0, 4)}, "size must be two ints"),
        ({"size": (4, 4), "resize": 3}, "resize must be null or an int >="),
        ({"size": (4, 4), "filter": "cubic"}, "filter must be one of"),
        ({"size": (4, 4), "colour": "bgr"}, "colour must be one of"),
        ({"size": (4, 4), "divide": 0}, "divide must be"),
        ({"size": (4, 4), "mean": (0.5,), "dtype": "float32"}, "mean must be null or 3 numbers"),
        ({"size": (4, 4), "std": (1, 0, 1), "dtype": "float32"}, "std must be numbers > 0"),
        ({"size": (4, 4), "divide": 255.0}, "dtype must be 'float32'"),
    ],
)
def test_preprocessing_refuses_what_makes_no_sense(given, rule):
    with pytest.raises(ParameterError, match=rule):
        Preprocess(**given)


@pytest.mark.parametrize(
    "item",
    [
        np.zeros((4, 4), np.float32),
        np.zeros((4, 4, 4), np.uint8),
        np.zeros((0, 4), np.uint8),
        np.zeros(4, np.uint8),
        [[0]],
        "x.jpg",
    ],
    ids=["floats", "alpha", "empty", "line", "list", "path"],
)
def test_only_pictures_are_prepared(item):
    with pytest.raises(ParameterError, match=r"a picture must be a uint8 array"):
        load("raw").prepare(item)


@pytest.mark.parametrize("name", ["nearest", "bilinear", "bicubic"])
def test_a_grey_picture_is_prepared_as_its_rgb_copy(rng, name):
    rule, grey = Preprocess(size=(20, 24), filter=name), rng.integers(0, 256, (33, 17), dtype=np.uint8)
    want = np.asarray(Image.fromarray(grey).convert("RGB").resize((24, 20), Image.Resampling[name.upper()]))
    assert np.array_equal(rule.picture(grey), want)
    assert np.array_equal(rule.picture(np.stack([grey] * 3, -1)), want)


def test_preparing_leaves_the_picture_alone_and_takes_views(rng):
    big = rng.integers(0, 256, (40, 60, 3), dtype=np.uint8)
    copy, rule = big.copy(), Preprocess(size=(8, 8))
    assert np.array_equal(rule.picture(big[::2, ::3]), rule.picture(np.ascontiguousarray(big[::2, ::3])))
    assert np.array_equal(big, copy)


def test_raw_is_the_pixels_of_a_28_x_28_picture(rng):
    picture, raw = rng.integers(0, 256, (28, 28), dtype=np.uint8), load("raw")
    assert np.array_equal(raw.embed(raw.prepare(picture)[None])[0], picture.ravel() / np.float32(255))
    assert raw.embed(raw.prepare(picture)[None]).dtype == np.float32


def test_raw_makes_colours_grey_before_it_resizes(rng):
    picture, raw = rng.integers(0, 256, (50, 31, 3), dtype=np.uint8), load("raw")
    want = Image.fromarray(picture).convert("L").resize((28, 28), Image.Resampling.BILINEAR)
    assert np.array_equal(raw.prepare(picture)[..., 0], np.asarray(want))


def test_the_head_has_two_hundred_named_classes():
    h = head("tinynet")
    assert h.weights.shape == (200, 512)
    assert h.bias.shape == (200,)
    assert len(set(h.names)) == len(set(h.ids)) == 200
    assert list(h.ids) == sorted(h.ids)
    with pytest.raises(ParameterError, match="no pre-training head"):
        head("raw")


def test_every_file_a_record_names_ships():
    for name in names():
        for file in filter(None, (record(name).file, record(name).head)):
            assert (RECORDS.parent / file).is_file()


def test_the_public_names():
    assert set(backbones.__all__) <= set(vars(backbones))


@pytest.mark.parametrize("prefix", ["onnx", "tflite"])
def test_a_missing_model_file_says_where_it_should_be(tmp_path, prefix):
    with pytest.raises(FileError, match=rf"{prefix}:.*m\.{prefix}: there is no such file; put the model there"):
        load(f"{prefix}:{tmp_path}/m.{prefix}")


def test_a_named_model_has_its_record_only_once_loaded():
    with pytest.raises(ParameterError, match=r"use load\('timm:x'\)\.record"):
        record("timm:x")
