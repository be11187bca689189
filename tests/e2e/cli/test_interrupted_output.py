"""Output that fails, is interrupted, or would replace other files."""

import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from imprint.core.files import container

POSIX = pytest.mark.skipif(
    sys.platform == "win32", reason="limits and signals are POSIX"
)
FORMATS = {"onnx": "model.onnx", "numpy": "model.npz"}
RAW = ("--backbone", "raw", "--recipe", "qi2018")


@pytest.fixture
def model(imprint, photos) -> Path:
    """A model with one proxy per class, which every export format supports."""
    assert imprint("fit", photos, "-o", "model.imprint", *RAW).code == 0
    return photos.parent / "model.imprint"


def small_files() -> None:
    """Limit file sizes to four kilobytes in the child process, to simulate a nearly full disk."""
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


@POSIX
@pytest.mark.parametrize(
    "words", [["add", "model.imprint", "more"], ["forget", "model.imprint", "dark"]]
)
def test_no_room_for_the_changed_model(
    imprint, model, paint, tmp_path, start, finish, words
):
    paint(tmp_path / "more", ["dark"], first=50)
    assert (
        imprint("embed", "more", "-b", "raw", "-o", "warm.npz").code == 0
    )  # the embeddings are cached already
    before, names = model.read_bytes(), sorted(p.name for p in tmp_path.iterdir())
    done = finish(start(*words, preexec_fn=small_files))
    assert (done.code, done.out) == (2, "")
    line = done.err.splitlines()[-1]
    assert line == "Error: Cannot write model.imprint: File too large."
    assert model.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == names


@POSIX
@pytest.mark.parametrize("to", FORMATS)
def test_no_room_for_the_export(model, tmp_path, start, finish, to):
    target = tmp_path / FORMATS[to]
    finish(start("export", model, "--to", to, preexec_fn=small_files)).refused(
        str(target), "File too large"
    )
    assert not target.exists()


@POSIX
def test_ctrl_c_while_adding_leaves_the_model(
    imprint, photos, paint, tmp_path, start, finish
):
    assert (
        imprint(
            "fit", photos, "-o", "model.imprint", "--backbone", "tinynet", "--no-cache"
        ).code
        == 0
    )
    before, embeddings = (
        (tmp_path / "model.imprint").read_bytes(),
        tmp_path / "home" / "embeddings",
    )
    paint(tmp_path / "more", ["dark", "light"], n=400, first=50)
    process = start("add", "model.imprint", "more", "--threads", 1)
    while not any(embeddings.rglob("*")) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    stopped = finish(process)
    assert (stopped.code, stopped.out, stopped.err.splitlines()[-1]) == (
        130,
        "",
        "Stopped.",
    )
    assert (tmp_path / "model.imprint").read_bytes() == before
    assert imprint("predict", "model.imprint", photos).code == 0


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="only Linux has /sys")
def test_a_folder_that_nobody_can_write_to(imprint, model, photos):
    imprint("fit", photos, "-o", "/sys/kernel/m.imprint", *RAW).refused(
        "Cannot write /sys/kernel/m.imprint: "
    )
    imprint("export", model, "--to", "numpy", "-o", "/sys/kernel/m.npz").refused(
        "Cannot write /sys/kernel/m.npz: "
    )


def test_wrong_paths(imprint, model, photos):
    imprint("export", "no.imprint", "--to", "onnx").refused(
        "no.imprint: no such file; to fit a model"
    )
    imprint("export", photos, "--to", "numpy").refused(
        "this is a folder, not a model file"
    )
    imprint("export", photos / "dark" / "0.png", "--to", "numpy").refused(
        "this is not an imprint model"
    )
    imprint("export", model, "--to", "onnx", "-o", "no/where/m.onnx").refused(
        "there is no folder"
    )
    imprint("export", model, "--to", "onnx", "-o", photos).refused(
        "it is a folder; name a file in it"
    )
    imprint("export", model, "--to", "onnx", "-o", "m.npz").refused(
        "a file for onnx must end in .onnx"
    )


def test_an_export_never_replaces_anything_else(imprint, model, tmp_path):
    (tmp_path / "model.npz").write_bytes(b"my own arrays")
    imprint("export", model, "--to", "numpy").refused(
        "it exists and is not an exported model; choose another name"
    )
    assert (tmp_path / "model.npz").read_bytes() == b"my own arrays"
    assert imprint("export", model, "--to", "numpy", "-o", "other.npz").code == 0
    assert imprint("export", model, "--to", "numpy", "-o", "other.npz").code == 0, (
        "it may replace earlier exports"
    )


def test_a_model_from_another_backbone_is_not_joined_to_this_one(
    imprint, model, tmp_path
):
    document, arrays = container.read(model)
    document["backbone"]["fingerprint"] = "0" * 64
    container.write(model, document, arrays)
    imprint("export", model, "--to", "onnx").refused(
        "was fitted with the backbone raw", "fit the model again"
    )
    assert not (tmp_path / "model.onnx").exists()


def test_a_missing_extra_names_its_command(imprint, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    imprint("export", model, "--to", "onnx").refused(
        "needs onnx: pip install 'weight-imprinting[export]'"
    )


def test_an_unknown_format_and_no_format_are_wrong_usage(imprint, model):
    for words in (["--to", "tensorflow"], []):
        done = imprint("export", model, *words)
        assert (done.code, done.out) == (2, "")
        assert "--to" in done.err


def test_one_class_is_exported_too(imprint, paint, tmp_path):
    imprint("fit", paint(tmp_path / "one", ["dark"]), "-o", "one.imprint", *RAW)
    assert imprint("export", "one.imprint", "--to", "onnx").code == 0
    import onnxruntime

    session = onnxruntime.InferenceSession(
        "one.onnx", providers=["CPUExecutionProvider"]
    )
    scores, probabilities, *_ = session.run(
        None, {"images": np.zeros((2, 28, 28, 1), np.uint8)}
    )
    assert scores.shape == probabilities.shape == (2, 1)
    assert (probabilities == 1).all()


def test_many_files_that_are_not_images_are_named_and_counted(imprint, photos):
    for i in range(15):
        (photos / "dark" / f"broken{i:02}.jpg").write_text("text")
    (photos / "dark" / "page.png").write_bytes(b"%PDF-1.4")
    Image.new("L", (12, 12), 20).save(photos / "dark" / "last.png")
    done = imprint("fit", photos, "-o", "m.imprint", *RAW)
    assert done.code == 1
    assert (
        sum(line.startswith("Skipped dark/broken") for line in done.err.splitlines())
        == 10
    )
    assert "Skipped 6 more that cannot be read." in done.err
    assert "Imprinted 16 images of 3 classes." in done.err


def test_embed_replaces_only_what_embed_wrote(imprint, photos, tmp_path):
    command = ("embed", photos, "-b", "raw", "-o", "a.npz")
    assert imprint(*command).code == 0
    assert imprint(*command).code == 0  # it replaces its own file
    for content in (
        b"thesis",
        {"data": np.arange(3)},
        {"train": np.zeros((2, 2)), "train_labels": np.arange(2)},
    ):
        if isinstance(content, bytes):
            (tmp_path / "a.npz").write_bytes(content)
        else:
            np.savez(tmp_path / "a.npz", **content)
        before = (tmp_path / "a.npz").read_bytes()
        imprint(*command).refused(
            "Cannot write a.npz: it exists and imprint embed did not write it; choose another"
        )
        assert (tmp_path / "a.npz").read_bytes() == before
