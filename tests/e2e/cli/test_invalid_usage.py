"""Invalid usage gets an error of one sentence, and no data are lost."""

import errno
import os
import random
import time

import pytest

from imprint import Imprinter
from imprint.core.files import container, partial

RAW = ("--backbone", "raw", "--recipe", "janson2022")


def test_wrong_path(imprint, model, photos):
    imprint("fit", "./photoz/", "-o", "x.imprint").refused(
        "There is no file or folder ./photoz/"
    )
    imprint("fit", "photoz", "-o", "x.imprint").refused(
        "There is no file or folder photoz, and no data set"
    )
    imprint("fit", "mnits", "-o", "x.imprint").refused("Did you mean 'mnist'?")
    imprint("predict", model, photos, "--csv", "out.csv").refused(
        "--csv takes no file name", "--csv > out.csv"
    )
    imprint("suggest", model, photos, "--csv", "out.csv").refused(
        "--csv takes no file name", "--csv > out.csv"
    )
    imprint("study", "run", "paper/tabel1").refused(
        "Did you mean 'table1'?", "norm_post, ", "imprint list studies"
    )
    imprint("predict", model, "no.png").refused("There is no file or folder no.png")
    imprint("predict", "no.imprint", "a.png").refused("no.imprint: no such file")
    imprint("add", "no.imprint", "photos").refused("no.imprint: no such file")
    imprint("forget", "no.imprint", "cat").refused("no.imprint: no such file")
    imprint("predict", "photos", "a.png").refused("this is a folder, not a model file")


def test_empty_folder(imprint, tmp_path, model):
    (tmp_path / "empty").mkdir()
    imprint("fit", tmp_path / "empty", "-o", "x.imprint", *RAW).refused(
        "has no sub-folders", "one per class"
    )
    imprint("predict", model, tmp_path / "empty").refused("has no images")
    assert not (tmp_path / "x.imprint").exists()


def test_images_without_class_folders(imprint, photos):
    imprint("fit", photos / "dark", "-o", "x.imprint", *RAW).refused(
        "has no sub-folders", "make one per class"
    )


def test_one_class_works_and_says_what_it_means(imprint, paint, tmp_path):
    done = imprint("fit", paint(tmp_path / "one", ["dark"]), "-o", "m.imprint", *RAW)
    assert done.code == 0
    assert "The model has one class: every input is classified as 'dark'." in done.err
    assert "Next: imprint add m.imprint DATA" in done.err
    imprint("forget", "m.imprint", "dark").refused("only class")


def test_text_file_among_images(imprint, photos):
    (photos / "dark" / "notes.txt").write_text("remember")
    (photos / "dark" / "fake.jpg").write_text("not an image")
    done = imprint("fit", photos, "-o", "m.imprint", *RAW)
    assert done.code == 1
    assert "Skipped dark/fake.jpg: not an image" in done.err
    assert "Imprinted 15 images of 3 classes." in done.err


def test_one_unreadable_image_does_not_cost_the_others(imprint, model, photos):
    (photos / "bad.png").write_bytes(b"\x89PNG\r\n\x1a\n broken")
    done = imprint(
        "predict", model, photos / "bad.png", photos / "dark" / "0.png", "--json"
    )
    assert done.code == 1
    assert '"label": "dark"' in done.out
    assert f"Skipped {photos / 'bad.png'}: " in done.err
    none = imprint("predict", model, photos / "bad.png")
    assert (none.code, none.out) == (1, "")
    assert none.err.startswith(f"Error: Cannot read {photos / 'bad.png'}: ")


def test_model_from_another_backbone(imprint, model, photos):
    document, arrays = container.read(model)
    document["backbone"]["fingerprint"] = "0" * 64
    container.write(model, document, arrays)
    before = model.read_bytes()
    for words in (
        ["predict", model, photos],
        ["add", model, photos],
        ["forget", model, "dark"],
    ):
        imprint(*words).refused(
            "was fitted with the backbone raw", "fit the model again"
        )
    assert model.read_bytes() == before


def test_damaged_and_foreign_models(imprint, model, photos):
    whole = model.read_bytes()
    model.write_bytes(whole[:-9])
    imprint("predict", model, photos).refused("damaged")
    model.write_bytes(b"something else")
    imprint("predict", model, photos).refused("not an imprint model")


def test_output_over_something_else(imprint, photos):
    image = photos / "dark" / "0.png"
    before = image.read_bytes()
    imprint("fit", photos, "-o", image, *RAW).refused(
        "it exists and is not an imprint model"
    )
    assert image.read_bytes() == before
    imprint("fit", photos, "-o", photos, *RAW).refused("it is a folder")
    imprint("fit", photos, "-o", "no/where/m.imprint", *RAW).refused(
        "there is no folder"
    )
    imprint("embed", photos, "-o", "e.csv", "-b", "raw").refused("must end in .npz")


def test_disk_full(imprint, model, paint, tmp_path, monkeypatch):
    more, before = paint(tmp_path / "more", ["dark"], first=50), model.read_bytes()
    real = os.fsync

    def full(handle: int) -> None:
        if (
            model.name in os.readlink(f"/proc/self/fd/{handle}")
            if os.path.isdir("/proc/self/fd")
            else True
        ):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    imprint("add", model, more).refused("Cannot write", "No space left on device")
    assert model.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "home",
        "model.imprint",
        "more",
        "photos",
    ]


def test_unwritable_folder(imprint, model, photos, monkeypatch):
    real = os.open

    def denied(path, *args, **options):
        if str(path).endswith(partial.PARTIAL_SUFFIX):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(path, *args, **options)

    before = model.read_bytes()
    assert (
        imprint("embed", photos, "-b", "raw", "-o", "warm.npz").code == 0
    )  # the embeddings are cached already
    monkeypatch.setattr(os, "open", denied)
    imprint("fit", photos, "-o", "new.imprint", *RAW).refused(
        "Cannot write new.imprint: Permission denied"
    )
    imprint("forget", model, "dark").refused("Cannot write", "Permission denied")
    assert model.read_bytes() == before


def test_a_home_that_cannot_be_written(imprint, photos, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "file" / "home"))
    advice = "set IMPRINT_HOME to another folder"
    imprint("fit", photos, "-o", "m.imprint", *RAW).refused(advice, "--no-cache")
    imprint("embed", photos, "-o", "e.npz", "-b", "raw").refused(advice)
    imprint("demo").refused(advice, "--no-cache")
    assert imprint("fit", photos, "-o", "m.imprint", *RAW, "--no-cache").code == 0
    assert imprint("predict", "m.imprint", photos).code == 0
    imprint("demo", "--out", tmp_path / "file" / "out").refused(
        "Cannot make the folder"
    )


def test_unknown_names(imprint, model, photos):
    imprint("fit", photos, "-o", "x.imprint", "-b", "tinynt").refused(
        "Unknown backbone", "Did you mean 'tinynet'?"
    )
    imprint("fit", photos, "-o", "x.imprint", "-r", "imprint2024").refused(
        "Did you mean 'imprint2025'?"
    )
    imprint(
        "fit", photos, "-o", "x.imprint", "-b", "raw", "--generator", "kmean"
    ).refused("Did you mean 'kmeans'?")
    imprint(
        "fit", photos, "-o", "x.imprint", "-b", "raw", "--generator", "kmeans(k=0)"
    ).refused("k must be int >= 1")
    imprint("forget", model, "drak").refused(
        "Unknown class 'drak'. Did you mean 'dark'?"
    )


def test_a_missing_extra_names_its_command(imprint, photos, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    imprint("fit", photos, "-o", "x.imprint", "-b", "resnet18").refused(
        "pip install 'weight-imprinting[torch]'"
    )


def test_two_processes_on_one_model_both_count(imprint, paint, tmp_path, start, finish):
    two = paint(tmp_path / "two", ["dark", "light"])
    assert imprint("fit", two, "-o", "m.imprint", *RAW).code == 0
    with Imprinter.change("m.imprint") as model:
        other = start("add", "m.imprint", paint(tmp_path / "new", ["middle"]))
        time.sleep(3)
        assert other.poll() is None, "it must wait until this change is over"
        model.forget("dark")
    assert finish(other).code == 0
    assert Imprinter.load("m.imprint").classes_.tolist() == ["light", "middle"]


def test_killed_at_any_moment_the_model_is_whole(
    imprint, model, paint, tmp_path, start
):
    more = paint(tmp_path / "more", ["dark"], n=40, first=50)
    draw = random.Random(0)
    known = {model.read_bytes()}
    for _ in range(6):
        process = start("add", model, more)
        time.sleep(draw.uniform(0.2, 2.5))
        process.kill()
        process.wait()
        assert Imprinter.load(model).classes_.tolist() == ["dark", "light", "middle"]
        known.add(model.read_bytes())
    assert imprint("predict", model, more).code == 0
    leftovers = [p.name for p in tmp_path.iterdir() if p.name.endswith(".imprint")]
    assert leftovers == ["model.imprint"]


@pytest.mark.parametrize("text", ["--generator", "--seed"])
def test_an_option_without_its_value_is_wrong_usage(imprint, photos, text):
    done = imprint("fit", photos, "-o", "x.imprint", text)
    assert done.code == 2
    assert f"Option '{text}' requires an argument." in done.err


def test_names_are_printed_as_they_are(imprint, paint, tmp_path):
    """Brackets and `:name:` are not markup or emoji: the suggested command must work when it is copied."""
    photos = paint(tmp_path / "photos", ["dark", "light"])
    (photos / "dark").rename(photos / ":cat:")
    (photos / "light").rename(photos / "[red]")
    done = imprint("fit", photos, "-o", "m:cat:.imprint", *RAW)
    assert "Next: imprint predict m:cat:.imprint IMAGE" in done.err
    printed = imprint("predict", "m:cat:.imprint", photos).out
    assert all(f"{label}/0.png" in printed for label in (":cat:", "[red]"))


@pytest.mark.skipif(os.name != "posix", reason="file names are bytes on POSIX only")
def test_names_that_are_not_utf8(imprint, paint, tmp_path):
    photos = paint(tmp_path / "photos", ["dark", "light"])
    try:
        os.rename(photos / "dark", os.fsencode(photos) + b"/caf\xe9")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    assert imprint("fit", photos, "-o", "m.imprint", *RAW).code == 0
    done = imprint("predict", "m.imprint", photos)
    assert done.code == 0
    assert "caf\\udce9" in done.out.encode("ascii", "backslashreplace").decode()


@pytest.mark.skipif(os.name != "posix", reason="devices are files on POSIX only")
def test_a_device_is_never_replaced(imprint, photos, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    imprint("fit", photos, "-o", tmp_path / "pipe", *RAW).refused(
        "Cannot write", "it is not an ordinary file"
    )
    os.mkfifo(tmp_path / "pipe.npz")
    imprint("embed", photos, "-o", tmp_path / "pipe.npz", "-b", "raw").refused(
        "Cannot write", "it is not an ordinary file"
    )


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "~nobody9/x", "-o", "m.imprint"),
        ("check", "~nobody9/x"),
        ("suggest", "~nobody9/x"),
        ("predict", "model.imprint", "~nobody9/x.png"),
        ("evaluate", "model.imprint", "~nobody9/x"),
    ],
)
def test_the_home_of_an_unknown_user(imprint, model, words):
    imprint(*words).refused("~nobody9/x")
