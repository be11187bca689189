"""A lack of memory is an error of the machine, not damage to the input that is being read."""

import io
import json
import subprocess
import sys
import threading
import time
import wave
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from imprint import Imprinter, datasets
from imprint.core.errors import (
    ImprintError,
    OutOfMemoryError,
    UnreadableInput,
    reporting_damage,
)
from imprint.core.memory import DecodingBudget, usable_memory
from imprint.modalities import image, modality

LIMITED = """
import json, resource, sys
from pathlib import Path
from imprint import Imprinter, datasets
from imprint.core.errors import UnreadableInput
from imprint.modalities.image import read_image

def address_space():
    return int(Path("/proc/self/status").read_text().split("VmSize:")[1].split()[0]) << 10

folder = sys.argv[1]
small = Path(folder, "small.png").read_bytes()
read_image(small)
for path in Path(folder).glob("large.*"):  # every format is loaded before memory is short
    try:
        read_image(path.read_bytes()[:200])
    except UnreadableInput:
        pass
answers = {}
for path in sorted(Path(folder).glob("large.*")):
    raw = path.read_bytes()
    resource.setrlimit(resource.RLIMIT_AS, (address_space() + (100 << 20), -1))
    try:
        read_image(raw)
        answers[path.name] = "read"
    except Exception as e:
        answers[path.name] = [isinstance(e, MemoryError), str(e)]
    try:
        read_image(small[:-30])
    except Exception as e:
        answers["damaged " + path.name] = isinstance(e, UnreadableInput)
    resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
    answers["again " + path.name] = read_image(raw).shape
print(json.dumps(answers))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is that of Linux")
def test_a_large_image_in_little_memory_is_no_damage(tmp_path):
    large = Image.new("RGB", (8000, 7000), (200, 30, 90))
    formats = [
        name for name in image.formats() if name in ("PNG", "JPEG", "TIFF", "WEBP")
    ]
    for name in formats:
        large.save(tmp_path / f"large.{name.lower()}", name)
    large.resize((30, 30)).save(tmp_path / "small.png")
    words = [sys.executable, "-c", LIMITED, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    answers = json.loads(done.stdout)
    for name in formats:
        file = f"large.{name.lower()}"
        is_lack, sentence = answers[file]
        assert is_lack, (file, sentence)
        assert "not enough memory" in sentence
        assert answers[f"again {file}"] == [7000, 8000, 3]
        assert answers[f"damaged {file}"]


def png(side=20):
    out = io.BytesIO()
    Image.new("RGB", (side, side), (9, 90, 200)).save(out, "PNG")
    return out.getvalue()


def wav():
    out = io.BytesIO()
    with wave.open(out, "wb") as f:
        f.setparams((1, 2, 16000, 0, "NONE", ""))
        f.writeframes(np.zeros(160, "<i2").tobytes())
    return out.getvalue()


def lacking(*_, **__):
    raise MemoryError


@pytest.mark.parametrize("error", [MemoryError, pa.ArrowMemoryError])
def test_a_reader_that_runs_out_of_memory_reports_no_damage(error):
    with pytest.raises(MemoryError), reporting_damage("a.csv", "table"):
        raise error


def test_readers_of_files_pass_a_lack_of_memory_on(tmp_path, monkeypatch):
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "1.png").write_bytes(png())
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("cat/1.png", png())
    folder = datasets.load(tmp_path)
    packed = datasets.load(tmp_path / "a.zip")
    monkeypatch.setattr(image, "_rgb", lacking)
    for split in (folder, packed):
        with pytest.raises(OutOfMemoryError, match=r"cat/1\.png"):
            split.inputs[0]
    monkeypatch.undo()
    monkeypatch.setattr(zipfile.ZipExtFile, "read", lacking)
    with pytest.raises(MemoryError):
        packed.inputs[0]
    monkeypatch.undo()
    monkeypatch.setattr("imprint.modalities.sound._samples", lacking)
    with pytest.raises(MemoryError):
        modality("sound").read(wav())


def test_fit_skips_no_intact_image(tmp_path, monkeypatch):
    for label, side in (("cat", 20), ("dog", 30)):
        (tmp_path / label).mkdir()
        for i in range(3):
            (tmp_path / label / f"{i}.png").write_bytes(png(side + i))
    decode = image._rgb

    def lacks_for_one(image):
        return lacking() if image.size == (31, 31) else decode(image)

    monkeypatch.setattr(image, "_rgb", lacks_for_one)
    with pytest.raises(OutOfMemoryError, match=r"dog/1\.png"):
        Imprinter("raw", cache=False).fit(tmp_path)


def test_the_error_is_one_of_imprint_and_one_of_python():
    assert issubclass(OutOfMemoryError, ImprintError)
    assert issubclass(OutOfMemoryError, MemoryError)
    assert not issubclass(OutOfMemoryError, UnreadableInput)


def held_at_once(budget, sizes):
    """The largest number of pixels that threads held at the same time."""
    lock = threading.Lock()
    now, most = 0, 0

    def decode(pixels):
        nonlocal now, most
        with budget.holding():
            budget.take(pixels)
            with lock:
                now += pixels
                most = max(most, now)
            time.sleep(0.01)
            with lock:
                now -= pixels

    threads = [threading.Thread(target=decode, args=(size,)) for size in sizes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    return most


def test_pixels_that_are_decoded_at_once_are_limited():
    assert held_at_once(DecodingBudget(100), [30] * 12) <= 100
    assert held_at_once(DecodingBudget(100), [30] * 12) > 30, "they run side by side"
    # a larger one waits until it is alone
    assert held_at_once(DecodingBudget(100), [250, 30, 250, 30]) == 250


def test_pixels_count_until_the_outermost_block_ends():
    budget = DecodingBudget(100)
    with budget.holding():
        with budget.holding():
            budget.take(60)
        assert budget.used == 60
        budget.take(90)  # a thread does not wait for itself
        assert budget.used == 150
    assert budget.used == 0
    budget.take(40)  # without a block, nothing says when they are released
    assert budget.used == 0


def test_a_failure_gives_the_pixels_back():
    budget = DecodingBudget(100)

    @budget.holding()
    def fail():
        budget.take(60)
        raise UnreadableInput("a.png", "damaged")

    with pytest.raises(UnreadableInput):
        fail()
    assert budget.used == 0


def test_the_limit_is_a_share_of_the_memory():
    memory = image.DECODING.limit * image.BYTES_PER_PIXEL
    assert image.DECODING.limit >= image.MAX_PIXELS
    assert memory <= max(usable_memory() / 8, image.MAX_PIXELS * image.BYTES_PER_PIXEL)


def test_reading_an_image_takes_its_pixels():
    before = image.DECODING.used
    with image.DECODING.holding():
        image.read_image(png(50))
        assert image.DECODING.used == before + 2500
    with pytest.raises(UnreadableInput):
        image.read_image(png(50)[:-40])
    assert image.DECODING.used == before


MANY = """
import sys, threading
from pathlib import Path
from imprint import backbones, recipes
from imprint.core.memory import peak_memory
from imprint.method import Method
from imprint.modalities import image
from imprint.serve.project import Project

image.DECODING.limit = image.MAX_PIXELS  # as in 8 GB or less
raw = Path(sys.argv[1]).read_bytes()
method = Method.of(**recipes.describe("janson2022").parts())
project = Project(Path(sys.argv[2]), "raw", backbones.load("raw"), method)
threads = [
    threading.Thread(target=lambda: project.embed(raw, "a.png").result()) for _ in range(10)
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
status = Path("/proc/self/status").read_text()
print(peak_memory() >> 20, int(status.split("VmRSS:")[1].split()[0]) >> 10)
project.close()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured as on Linux")
def test_ten_large_images_at_once_need_the_memory_of_one(tmp_path):
    Image.new("RGB", (8000, 8000)).save(tmp_path / "a.png")
    words = [sys.executable, "-c", MANY, tmp_path / "a.png", tmp_path / "project"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    peak, afterwards = map(int, done.stdout.split())
    # one image takes 256 MB in Pillow and 192 MB as an array
    assert peak < 900
    assert afterwards < 300


@pytest.mark.parametrize(
    "error", [MemoryError(), OutOfMemoryError("Not enough for a.png.")]
)
def test_servers_and_commands_report_it_as_a_failure_of_the_machine(
    error, tmp_path, monkeypatch, capsys
):
    pytest.importorskip("starlette")
    from imprint import cli
    from imprint.inference.server import refusal as of_api
    from imprint.serve.requests import refusal as of_page

    for refusal in (of_api, of_page):
        answer = refusal(error)
        assert answer.status_code == 503
        assert (str(error) or "not enough memory") in answer.body.decode()

    def fails(*_, **__):
        raise error

    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(datasets, "load", fails)
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path))
    words = ["fit", "digits", "-o", str(tmp_path / "m.imprint")]
    if isinstance(error, ImprintError):
        assert cli.main(words) == 1
        assert capsys.readouterr().err.endswith("Error: Not enough for a.png.\n")
    else:
        with pytest.raises(MemoryError):
            cli.main(words)
    assert not (tmp_path / "m.imprint").exists()
