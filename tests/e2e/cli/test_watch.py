"""`imprint watch`, and drift in a stream on the standard input of `imprint predict`."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from imprint import Imprinter
from imprint.active.drift import DriftMonitor
from imprint.cli.commands.watch import _Watcher

CODE = "import sys; from imprint.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture
def stripes(tmp_path):
    """Fifty images of stripes, out of distribution for a model of grey shades."""
    folder = tmp_path / "stripes"
    folder.mkdir()
    for i in range(50):
        image = np.random.default_rng(i).integers(0, 2, (12, 12), dtype=np.uint8) * 255
        Image.fromarray(image).save(folder / f"stripes-{i:02}.png")
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


def test_usual_images_give_answers_and_no_alarm(imprint, model, paint, tmp_path):
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


def test_other_images_give_an_alarm_that_names_them(imprint, model, stripes):
    (stripes / "broken.png").write_bytes(b"no image")
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


@pytest.fixture
def watcher(model):
    """Watches a folder with the model of shades."""

    def watch(folder):
        loaded = Imprinter.load(model, cache=False)
        monitor = DriftMonitor.of(loaded.state.head)
        return _Watcher(loaded, monitor, folder, json=False)

    return watch


def test_a_sub_folder_may_disappear_during_a_scan(
    watcher, paint, tmp_path, monkeypatch, capsys
):
    new = paint(tmp_path / "new", ["dark", "light"], n=2, first=100)
    scandir = os.scandir

    def scan(path=".", *rest):
        if not isinstance(path, int) and Path(path).name == "light":
            monkeypatch.undo()
            shutil.rmtree(path)
        return scandir(path, *rest)

    watching = watcher(new)
    monkeypatch.setattr(os, "scandir", scan)
    watching.classify(settled=False)
    done = capsys.readouterr()
    assert (len(done.out.splitlines()), done.err) == (2, "")
    assert not (new / "light").exists()
    shutil.rmtree(new)  # and so may the folder itself
    watching.classify(settled=False)
    paint(new, ["light"], n=1, first=300)
    watching.classify(settled=False)
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_a_slowly_written_file_is_classified_in_the_end(
    watcher, paint, tmp_path, capsys
):
    (path,) = paint(tmp_path / "new", ["dark"], n=1, first=100).rglob("*.png")
    content, watching = path.read_bytes(), watcher(tmp_path / "new")
    path.write_bytes(content[:40])
    for _ in range(3):  # it stands still for a while
        watching.classify(settled=True)
    done = capsys.readouterr()
    assert (done.out, done.err.count("Skipped")) == ("", 1)
    path.write_bytes(content)
    for _ in range(3):
        watching.classify(settled=True)
    done = capsys.readouterr()
    assert (len(done.out.splitlines()), done.err) == (1, "")
    assert not watching.unreadable


def test_a_replaced_file_is_classified_again(watcher, paint, tmp_path, capsys):
    new = paint(tmp_path / "new", ["dark"], n=1, first=100)
    other = paint(tmp_path / "other", ["light"], n=1, first=100)
    watching, shown = watcher(new), []
    for _ in range(3):
        watching.classify(settled=True)
    shown += capsys.readouterr().out.splitlines()
    os.replace(other / "light" / "100.png", new / "dark" / "100.png")
    for _ in range(3):
        watching.classify(settled=True)
    shown += capsys.readouterr().out.splitlines()
    assert [line.split("\t")[1] for line in shown] == ["dark", "light"]
    assert watching.monitor.inputs == 2


def test_a_file_that_only_gets_a_new_time_is_not_another_input(
    watcher, paint, tmp_path, capsys
):
    new = paint(tmp_path / "new", ["dark"], n=1, first=100)
    watching = watcher(new)
    for change in range(3):
        os.utime(new / "dark" / "100.png", (1000 * change, 1000 * change))
        watching.classify(settled=False)
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert watching.monitor.inputs == 1


def test_texts_in_files_are_watched(imprint, tmp_path):
    texts = {"money": ["refund it", "a fee", "my money"], "card": ["lost card"] * 2}
    rows = [
        f"{text} {i},{label}"
        for label, all in texts.items()
        for i, text in enumerate(all)
    ]
    (tmp_path / "mails.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    assert imprint("fit", "mails.csv", "-o", "m.imprint").code == 0
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "a.txt").write_text("where is my money")
    (tmp_path / "inbox" / "b.txt").write_text("  ")
    done = imprint("watch", "m.imprint", "inbox", "--once", "--json")
    (answer,) = map(json.loads, done.out.splitlines())
    assert (answer["path"], answer["label"]) == ("inbox/a.txt", "money")
    assert "Skipped inbox/b.txt: the text is empty." in done.err
    assert done.code == 1
    (tmp_path / "inbox" / "more.csv").write_text("text\nmy card\nmy fee\n")
    done = imprint("watch", "m.imprint", "inbox", "--once", "--json")
    assert "inbox/more.csv is a table, which watch does not read" in done.err
    assert "imprint predict MODEL inbox/more.csv" in done.err


def test_a_model_of_embeddings_watches_nothing(imprint, tmp_path):
    np.savez(
        "train.npz",
        X=np.random.default_rng(0).normal(size=(20, 4)),
        y=np.repeat(["a", "b"], 10),
    )
    assert imprint("fit", "train.npz", "-o", "m.imprint").code == 0
    (tmp_path / "new").mkdir()
    imprint("watch", "m.imprint", "new", "--once").refused(
        "a model of embeddings", "imprint predict"
    )
