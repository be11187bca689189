"""Exported models on a thousand real images, run without imprint."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from PIL import Image

from imprint import Imprinter, datasets
from imprint.cli import main
from imprint.export import export, export_file

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "run_onnx.py"
WITHOUT_IMPRINT = """
import runpy, sys
for name in ("imprint", "sklearn", "scipy", "torch", "onnx"):
    sys.modules[name] = None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture(autouse=True)
def own_place(tmp_path, monkeypatch):
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # `main` replaces it


def outputs(path, **inputs):
    """The outputs of ONNX Runtime, in batches of 64 rows."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    ((name, rows),) = inputs.items()
    names = ["scores", "probabilities"]
    parts = [
        session.run(names, {name: rows[i : i + 64]}) for i in range(0, len(rows), 64)
    ]
    return [np.concatenate(p) for p in zip(*parts)]


def equal(model, path, images):
    """Assert that the graph and the library give the same predictions and probabilities."""
    scores, probabilities = outputs(
        path, images=np.stack([model.backbone.prepare(p) for p in images])
    )
    rows = model.look(images)
    np.testing.assert_array_equal(
        model.classes_[scores.argmax(axis=1)], model.predict(rows)
    )
    np.testing.assert_allclose(probabilities, model.predict_proba(rows), atol=1e-3)


def test_a_thousand_digits_from_pixels_to_labels():
    learnt, queries = datasets.load("digits", "test"), datasets.load("digits", "train")
    model = Imprinter("tinynet", threads=1).fit(
        ([learnt.inputs[i] for i in range(200)], learnt.labels[:200])
    )
    model.save("m.imprint")
    exported = export_file("m.imprint", "m.onnx")
    assert exported.backbone == "tinynet"
    equal(model, exported.path, [queries.inputs[i] for i in range(1000)])


@pytest.mark.shared
def test_a_thousand_clothes_from_pixels_to_labels(shared_folder):
    with np.load(shared_folder / "data" / "fashionmnist.npz") as pack:
        learnt = pack["train_images"][:200], pack["train_labels"][:200]
        queries = pack["test_images"][:1000]
    model = Imprinter("tinynet", threads=1).fit((list(learnt[0]), learnt[1]))
    equal(model, export(model, "m.onnx").path, list(queries))


@pytest.mark.shared
def test_a_network_with_floats_and_channels_first(shared_folder):
    with np.load(shared_folder / "data" / "cifar10.npz") as pack:
        images, labels = list(pack["train_images"][:40]), pack["train_labels"][:40]
    model = Imprinter(
        f"onnx:{shared_folder}/models/deit_tiny.onnx", threads=1, recipe="qi2018"
    )
    model.fit((images[:20], labels[:20]))
    equal(model, export(model, "m.onnx").path, images[20:])


@pytest.fixture(params=["efficientnet_lite0", "tinynet"])
def network(request):
    """A network that crops the centre of an image, and one that uses the whole image."""
    return request.param


@pytest.fixture
def photos(tmp_path, network):
    """Digits as image files, grey and coloured, not all square, and a model fitted on them."""
    split = datasets.load("digits", "test")
    for i in range(60):
        folder = tmp_path / "photos" / f"digit {split.labels[i]}"
        folder.mkdir(parents=True, exist_ok=True)
        image = Image.fromarray(split.inputs[i]).resize((8, 8 + i % 3))
        (image.convert("RGB") if i % 2 else image).save(folder / f"{i}.png")
    assert (
        main(["fit", "photos", "-o", "m.imprint", "-b", network, "--threads", "1"]) == 0
    )
    return sorted((tmp_path / "photos").rglob("*.png"))


def test_a_short_program_without_imprint_agrees_with_the_library(photos, capsys):
    assert main(["export", "m.imprint", "--to", "onnx"]) == 0
    words = [sys.executable, "-c", WITHOUT_IMPRINT, EXAMPLE, "m.onnx", *photos]
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, check=True
    )
    capsys.readouterr()
    assert main(["predict", "m.imprint", *map(str, photos), "--json"]) == 0
    answers = json.loads(capsys.readouterr().out)
    assert done.stdout.splitlines() == [
        f"{a['path']}\t{a['label']}\t{a['probability']:.3f}" for a in answers
    ]
    assert EXAMPLE.read_text("utf-8") in (ROOT / "docs" / "export.md").read_text(
        "utf-8"
    )


def test_the_program_agrees_on_images_of_every_kind(photos, capsys):
    grey = np.asarray(Image.open(photos[0]).convert("L"))
    kinds = {
        "wide.png": Image.fromarray(grey.astype(np.uint16) * 257),
        "clear.png": Image.fromarray(np.dstack([grey] * 3 + [255 - grey])),
        "palette.gif": Image.fromarray(grey).convert("P"),
        "bits.png": Image.fromarray(grey > 100),
    }
    for name, image in kinds.items():
        image.save(name)
    assert main(["export", "m.imprint", "--to", "onnx"]) == 0
    words = [sys.executable, "-c", WITHOUT_IMPRINT, EXAMPLE, "m.onnx", *kinds]
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, check=True
    )
    capsys.readouterr()
    assert main(["predict", "m.imprint", *kinds, "--json"]) == 0
    answers = json.loads(capsys.readouterr().out)
    assert done.stdout.splitlines() == [
        f"{a['path']}\t{a['label']}\t{a['probability']:.3f}" for a in answers
    ]


def test_the_command(photos, network, capsys):
    capsys.readouterr()
    assert (
        main(
            [
                "export",
                "m.imprint",
                "--to",
                "onnx",
                "--head-only",
                "-o",
                "head.onnx",
                "--json",
            ]
        )
        == 0
    )
    printed = json.loads(capsys.readouterr().out)
    assert (printed["file"], printed["backbone"]) == ("head.onnx", None)
    assert printed["classes"][0] == "digit 0"
    assert printed["bytes"] == Path("head.onnx").stat().st_size
    assert main(["export", "m.imprint", "--to", "onnx"]) == 0
    assert capsys.readouterr().err.startswith(
        f"m.onnx: {network} and the head, 10 classes, "
    )
    for to, name in (("torch", "m.safetensors"), ("numpy", "m.npz")):
        assert main(["export", "m.imprint", "--to", to]) == 0
        assert capsys.readouterr().err.startswith(
            f"{name}: the head without a backbone, 10 classes, "
        )
    assert main(["export", "m.imprint", "--to", "tflite"]) == 2
