"""Records, specifications and preprocessing of backbones, without running a network."""

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from imprint import backbones
from imprint.backbones import (
    Preprocess,
    Record,
    head,
    load,
    names,
    preprocess,
    record,
    stated_fingerprint,
)
from imprint.backbones.record import named
from imprint.core.errors import FileError, ParameterError, UnreadableInput


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_reading_every_record_imports_nothing_heavy():
    code = (
        "import sys\nfrom imprint.backbones import names, record\n[record(n) for n in names()]\n"
        "from imprint.backbones import is_installed, stated_fingerprint\n"
        "[(is_installed(record(n)), stated_fingerprint(n)) for n in names()]\n"
        "heavy = 'torch torchvision onnxruntime PIL timm safetensors tokenizers scipy sklearn'.split()\n"
        "print(sorted(set(heavy) & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


def test_the_expected_backbones_are_listed():
    assert set(names()) >= {
        "tinynet",
        "raw",
        "resnet18",
        "resnet50",
        "vit_b_16",
        "swin_b",
        "deit_tiny",
        "efficientnet_lite0",
        "minilm",
    }


@pytest.mark.parametrize("name", names())
def test_a_record_has_all_required_fields(name):
    r = record(name)
    assert r.name == name
    others = {"minilm": "text", "yamnet": "sound", "minirocket": "series"}
    assert r.modality == others.get(name, "image")
    assert all(
        [
            r.source,
            r.licence,
            r.pretraining,
            r.reg,
            r.width,
            r.tokens or r.seconds or r.input_size or name == "minirocket",
        ]
    )
    assert (
        name == "raw"
        or (r.sha256 and r.size and r.file and r.citation)
        or name == "tinynet"
    )
    assert name in ("raw", *others) or r.top1
    assert Record.from_json(json.loads(json.dumps(r.as_json()))) == r


def test_reg_of_least_squares_equals_the_papers():
    table = {"resnet18": 1e-4, "resnet50": 1e-4, "vit_b_16": 0.1, "swin_b": 0.05}
    assert {n: record(n).reg for n in table} == table


@pytest.mark.parametrize(
    "spec",
    [
        "tinynett",
        "",
        "onnx",
        "onnx:",
        "keras:x",
        "raw:",
        "../secret",
        "../packs/a",
        "..",
        "/etc/x",
        3,
        None,
    ],
)
def test_an_unknown_text_is_refused_with_the_list(spec):
    with pytest.raises(
        ParameterError, match=r"Unknown backbone .*Known: .*raw, .*tinynet.*onnx:FILE"
    ):
        load(spec)
    with pytest.raises(ParameterError, match=r"Unknown backbone"):
        stated_fingerprint(spec)


@pytest.mark.parametrize(
    "name", ["../files/x", "../records/tinynet", "tinynet.json", ""]
)
def test_a_name_cannot_escape_the_folder_of_records(name):
    with pytest.raises(ParameterError, match=r"Unknown backbone"):
        named(name)


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(ParameterError, match="Did you mean 'resnet18'"):
        record("resnet_18")


@pytest.mark.parametrize("file", ["x" * 300, "~nobody_of_this_name/net.onnx", "a\0b"])
def test_impossible_paths_are_not_files(file):
    with pytest.raises(FileError, match="there is no such file"):
        load(f"onnx:{file}")


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_threads_are_checked(threads):
    with pytest.raises(ParameterError, match=r"threads must be int >= 1\.$"):
        load("raw", threads=threads)


def test_a_backbone_is_unpickled_with_its_number_of_threads():
    again = pickle.loads(pickle.dumps(load("tinynet", threads=1)))
    assert again._session.get_session_options().intra_op_num_threads == 1


@pytest.mark.parametrize("device", ["cuda", "gpu", "mps"])
def test_an_unavailable_device_is_not_replaced_by_another(device):
    with pytest.raises(ParameterError, match="'cpu' only"):
        load("raw", device=device)


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"size": (0, 4)}, "size must be two ints"),
        ({"size": (4, 4), "resize": 3}, "resize must be null or an int >="),
        ({"size": (4, 4), "crop": 0}, "crop must be null or a number in"),
        (
            {"size": (4, 4), "crop": 0.5, "resize": 6},
            "crop must be null or a number in",
        ),
        ({"size": (4, 6), "crop": 0.5}, "with a square size"),
        ({"size": (4, 4), "filter": "cubic"}, "filter must be one of"),
        ({"size": (4, 4), "colour": "bgr"}, "colour must be one of"),
        ({"size": (4, 4), "divide": 0}, "divide must be"),
        (
            {"size": (4, 4), "mean": (0.5,), "dtype": "float32"},
            "mean must be null or 3 numbers",
        ),
        (
            {"size": (4, 4), "std": (1, 0, 1), "dtype": "float32"},
            "std must be numbers > 0",
        ),
        ({"size": (4, 4), "divide": 255.0}, "dtype must be 'float32'"),
    ],
)
def test_preprocessing_refuses_invalid_values(given, rule):
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
def test_only_images_are_prepared(item):
    with pytest.raises(ParameterError, match=r"an image must be a uint8 array"):
        load("raw").prepare(item)


@pytest.mark.parametrize("name", ["nearest", "bilinear", "bicubic"])
def test_a_grey_image_is_prepared_as_its_rgb_copy(rng, name):
    rule, grey = (
        Preprocess(size=(20, 24), filter=name),
        rng.integers(0, 256, (33, 17), dtype=np.uint8),
    )
    want = np.asarray(
        Image.fromarray(grey)
        .convert("RGB")
        .resize((24, 20), Image.Resampling[name.upper()])
    )
    assert np.array_equal(rule.image(grey), want)
    assert np.array_equal(rule.image(np.stack([grey] * 3, -1)), want)


@pytest.mark.parametrize(
    "shape", [(375, 500, 3), (641, 96, 3), (32, 32), (1, 1), (7, 300)]
)
def test_a_crop_keeps_the_middle_of_the_shorter_side(shape):
    image = np.zeros(shape, np.uint8)
    side = max(1, int(0.875 * min(shape[:2])))
    top, left = ((n - side + 1) // 2 for n in shape[:2])
    image[top : top + side, left : left + side] = 200
    rule = Preprocess(size=(16, 16), crop=0.875, filter="box")
    assert (rule.image(image) == 200).all()
    image[top, left], image[top + side - 1, left + side - 1] = 0, 0
    cropped = rule.image(image)
    assert side > 60 or cropped[0, 0].max() < 200
    assert side > 60 or cropped[-1, -1].max() < 200


def test_normalising_pixels_is_the_stated_arithmetic_to_the_bit(rng):
    batch = rng.integers(0, 256, (3, 5, 5, 3), dtype=np.uint8)
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    values = {
        "size": (5, 5),
        "dtype": "float32",
        "divide": 255.0,
        "mean": mean,
        "std": std,
    }
    want = (batch.astype(np.float32) / np.float32(255) - np.float32(mean)) / np.float32(
        std
    )
    assert np.array_equal(Preprocess(**values).arrange(batch), want)
    planes = Preprocess(**values, layout="NCHW").arrange(batch)
    assert np.array_equal(planes, want.transpose(0, 3, 1, 2))
    assert planes.flags.c_contiguous


def test_preparing_does_not_change_the_image_and_accepts_views(rng):
    big = rng.integers(0, 256, (40, 60, 3), dtype=np.uint8)
    copy, rule = big.copy(), Preprocess(size=(8, 8))
    assert np.array_equal(
        rule.image(big[::2, ::3]), rule.image(np.ascontiguousarray(big[::2, ::3]))
    )
    assert np.array_equal(big, copy)


def test_raw_is_the_pixels_of_a_28_x_28_image(rng):
    image, raw = rng.integers(0, 256, (28, 28), dtype=np.uint8), load("raw")
    assert np.array_equal(
        raw.embed(raw.prepare(image)[None])[0], image.ravel() / np.float32(255)
    )
    assert raw.embed(raw.prepare(image)[None]).dtype == np.float32


def test_raw_makes_colours_grey_before_it_resizes(rng):
    image, raw = rng.integers(0, 256, (50, 31, 3), dtype=np.uint8), load("raw")
    want = (
        Image.fromarray(image).convert("L").resize((28, 28), Image.Resampling.BILINEAR)
    )
    assert np.array_equal(raw.prepare(image)[..., 0], np.asarray(want))


def test_the_heads_have_named_classes():
    h, large = head("tinynet"), head("efficientnet_lite0")
    assert large.weights.shape == (1000, 1280)
    assert (len(set(large.ids)), len(large.names), large.names[0]) == (
        1000,
        1000,
        "tench",
    )
    assert h.weights.shape == (200, 512)
    assert h.bias.shape == (200,)
    assert len(set(h.names)) == len(set(h.ids)) == 200
    assert list(h.ids) == sorted(h.ids)
    with pytest.raises(ParameterError, match="no pre-training head"):
        head("raw")


def test_the_public_names():
    assert set(backbones.__all__) <= set(vars(backbones))


@pytest.mark.parametrize("prefix", ["onnx", "tflite"])
def test_a_missing_model_file_says_where_it_should_be(tmp_path, prefix):
    with pytest.raises(
        FileError,
        match=rf"{prefix}:.*m\.{prefix}: there is no such file; put the model there",
    ):
        load(f"{prefix}:{tmp_path}/m.{prefix}")


def test_a_named_model_has_its_record_only_once_loaded():
    with pytest.raises(ParameterError, match=r"use load\('timm:x'\)\.record"):
        record("timm:x")


RULES = [
    {"size": (224, 224), "resize": 256, "filter": "bilinear"},
    {"size": (224, 224), "resize": 232, "filter": "bicubic"},
    {"size": (28, 28), "colour": "grey"},
    {"size": (64, 48), "filter": "lanczos"},
    {"size": (32, 32), "crop": 0.875, "filter": "bicubic"},
]


@pytest.mark.parametrize("values", RULES, ids=str)
@pytest.mark.parametrize(
    "shape", [(30, 700, 3), (900, 20, 3), (300, 200), (5, 5, 3)], ids=str
)
def test_resizing_in_bounded_steps_equals_direct_resizing(
    rng, monkeypatch, values, shape
):
    image, rule = (
        rng.integers(90, 160, shape, dtype=np.uint8),
        Preprocess(**values),
    )  # filters clip no value
    direct = rule.image(image).astype(int)
    monkeypatch.setattr(preprocess, "MAX_INTERMEDIATE_PIXELS", 0)
    assert np.abs(rule.image(image) - direct).max() <= 2  # both steps round


THIN = """
import resource, sys, numpy as np
from imprint.backbones.preprocess import Preprocess
rules = [Preprocess(size=(224, 224), resize=256), Preprocess(size=(28, 28), colour="grey"), Preprocess(size=(224, 224))]
shapes = (30_000, 1, 3), (1, 30_000, 3), (1 << 18, 255, 3), (255, 1 << 18, 3)
images = [np.zeros(shape, np.uint8) for shape in shapes]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for rule in rules:
    for image in images:
        image.fill(1)
        assert rule.image(image).shape[:2] == rule.size
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(
    sys.platform != "linux", reason="memory is counted in kilobytes on Linux"
)
def test_a_thin_image_costs_little_memory():
    out = subprocess.run(
        [sys.executable, "-c", THIN], capture_output=True, text=True, check=True
    )
    assert (
        int(out.stdout) < 900_000
    )  # kB: the images themselves are 200 MB, and 267 MB inside Pillow


def test_an_image_with_an_extremely_long_side_is_unreadable():
    for shape in ((1 << 18) + 1, 1, 3), (1, (1 << 18) + 1):
        with pytest.raises(
            UnreadableInput, match=r"262,145.* pixels; the limit of a side is 262,144"
        ):
            Preprocess(size=(28, 28)).image(np.zeros(shape, np.uint8))
