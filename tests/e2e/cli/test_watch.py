"""`imprint watch`, and drift in a stream on the standard input of `imprint predict`."""

import io
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image

from imprint import Imprinter
from imprint.active.drift import DriftMonitor
from imprint.cli.commands.watch import _Watcher

CODE = "import sys; from imprint.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture
def stripes(tmp_path):
    """Fifty pictures of stripes, out of distribution for a model of grey shades."""
    folder = tmp_path / "stripes"
    folder.mkdir()
    for i in range(50):
        picture = (
            np.random.default_rng(i).integers(0, 2, (12, 12), dtype=np.uint8) * 255
        )
        Image.fromarray(picture).save(folder / f"stripes-{i:02}.png")
    return folder


@pytest.fixture
def model(paint, tmp_path, imprint):
    photos = paint(tmp_path / "many", ["dark", "middle", "light"], n=40)
    assert (
        imprint(
            "fit",
            photos,
            "-o",
            "model.imprint",
            "--backbone",
            "raw",
            "--recipe",
            "janson2022",
        ).code
        == 0
    )
    return tmp_path / "model.imprint"


def test_usual_pictures_give_answers_and_no_alarm(imprint, model, paint, tmp_path):
    new = paint(tmp_path / "new", ["dark", "light"], n=10, first=100)
    done = imprint("watch", model, new, "--once", "--json")
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert len(answers) == 20
    assert all(
        f"/{a['label']}/" in a["path"].replace("\\", "/") and 0 < a["known"] <= 1
        for a in answers
    )
    assert (done.code, done.err) == (0, "")


def test_a_file_may_be_moved_away_after_it_was_read(
    imprint, model, paint, tmp_path, monkeypatch
):
    new, look = paint(tmp_path / "new", ["dark"], n=3, first=100), Imprinter.look

    def look_and_move(self, items):
        rows = look(self, items)
        for path in items:
            os.remove(path)
        return rows

    monkeypatch.setattr(Imprinter, "look", look_and_move)
    done = imprint("watch", model, new, "--once")
    assert (done.code, done.err, len(done.out.splitlines())) == (0, "", 3)


def test_a_file_is_classified_once_it_has_stopped_growing(
    model, paint, tmp_path, capsys
):
    (path,) = paint(tmp_path / "new", ["dark"], n=1, first=100).rglob("*.png")
    content, loaded = path.read_bytes(), Imprinter.load(model, cache=False)
    watcher = _Watcher(
        loaded, DriftMonitor.of(loaded.state.head), tmp_path / "new", json=False
    )
    for written, lines in ((content[:40], 0), (content, 0), (content, 1), (content, 0)):
        path.write_bytes(written)
        os.utime(path, (1_000, 1_000))  # file times may be coarse
        watcher.classify(settled=True)
        assert len(capsys.readouterr().out.splitlines()) == lines


def test_other_pictures_give_an_alarm_that_names_them(imprint, model, stripes):
    (stripes / "broken.png").write_bytes(b"no picture")
    done = imprint("watch", model, stripes, "--once")
    assert len(done.out.splitlines()) == 50
    assert "look unlike the training data (evidence 1:" in done.err
    assert "The least familiar: " in done.err
    assert "stripes-" in done.err.split("least familiar")[1]
    assert "Skipped" in done.err
    assert done.code == 1


def test_a_stream_of_predict_is_monitored(imprint, model, stripes, monkeypatch):
    lines = "\n".join(str(path) for path in sorted(stripes.glob("*.png")))
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
    done = imprint("predict", model, "-", "--json")
    assert len(json.loads(done.out)) == 50
    assert "Drift: inputs since" in done.err
    assert "stripes-00.png look unlike" in done.err
    assert "Drift" not in imprint("predict", model, stripes, "--json").err


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent as a POSIX signal")
def test_files_that_arrive_are_classified(model, paint, tmp_path):
    folder = tmp_path / "growing"
    folder.mkdir()
    words = [
        sys.executable,
        "-c",
        CODE,
        "watch",
        str(model),
        str(folder),
        "--every",
        "0.1",
        "--json",
    ]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        time.sleep(0.5)
        paint(folder, ["dark"], n=2, first=200)
        answers = [json.loads(child.stdout.readline()) for _ in range(2)]
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60)
    assert [a["label"] for a in answers] == ["dark", "dark"]
    assert child.returncode == 130


def test_wrong_usage(imprint, model, photos, tmp_path):
    imprint("watch", model, tmp_path / "nowhere").refused("not a folder")
    assert (
        imprint(
            "fit", photos, "-o", "plain.imprint", "--backbone", "raw", "--no-calibrate"
        ).code
        == 0
    )
    imprint("watch", "plain.imprint", photos).refused("not calibrated")
