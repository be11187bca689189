"""`predict --window` prints a timeline, and `watch --window` follows a stream of samples."""

import io
import json
import sys

import numpy as np
import pytest

from imprint import Imprinter
from imprint.cli import main

LENGTH = 40


def samples(kind: str, number: int, seed: int) -> np.ndarray:
    """Noise about a level, or a fast sine.  # (number, 2)"""
    noise = np.random.default_rng(seed).normal(0, 0.1, (number, 2))
    phase = np.arange(number)[:, None] * [1.1, 0.7]
    level = np.array([0, 1])
    return noise + (np.sin(phase) if kind == "shake" else level)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    labels = ["rest", "shake"] * 12
    series = [samples(label, LENGTH, i).T for i, label in enumerate(labels)]
    path = tmp_path_factory.mktemp("model") / "m.imprint"
    Imprinter(cache=False).fit(np.stack(series), labels).save(path)
    return str(path)


@pytest.fixture
def recording(tmp_path):
    parts = [samples("rest", 120, 90), samples("shake", 160, 91)]
    path = tmp_path / "recording.csv"
    lines = [f"{x:.4f},{y:.4f}" for x, y in np.concatenate(parts)]
    path.write_text("\n".join(["x,y", *lines]) + "\n")
    return path


def test_a_timeline(model, recording, capsys):
    words = ["--window", "4s", "--rate", "10", "--json"]
    assert main(["predict", model, str(recording), *words]) == 0
    segments = json.loads(capsys.readouterr().out)
    found = [(s["label"], s["start"], s["end"]) for s in segments]
    assert found == [("rest", 0, 12), ("shake", 12, 28)]


def test_a_recording_that_is_too_short_is_named(model, recording, capsys):
    assert main(["predict", model, str(recording), "--window", "300"]) == 1
    assert "280 samples; a window has 300" in capsys.readouterr().err


def test_a_stream_with_a_gap(model, recording, capsys):
    lines = recording.read_text().splitlines()
    lines[61] = "1.0,"  # sample 61 has one value
    recording.write_text("\n".join(lines) + "\n")
    words = [
        "watch",
        model,
        str(recording),
        "--window",
        str(LENGTH),
        "--once",
        "--json",
    ]
    assert main(words) == 1
    out, err = capsys.readouterr()
    starts = [json.loads(line)["start"] for line in out.splitlines()]
    assert starts == [0, 61, 101, 141, 181, 221]
    assert "Skipped sample 61: 1 missing value" in err


def test_standard_input_line_by_line(model, recording, capsys, monkeypatch):
    content = recording.read_bytes().split(b"\n", 1)[1]  # without names of columns
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert main(["watch", model, "-", "--window", str(LENGTH), "--json"]) == 0
    labels = [json.loads(x)["label"] for x in capsys.readouterr().out.splitlines()]
    assert labels == ["rest"] * 3 + ["shake"] * 4


def test_windows_need_a_model_of_series(tmp_path, capsys):
    draw = np.random.default_rng(0).normal(size=(8, 4))
    path = tmp_path / "e.imprint"
    Imprinter("embeddings").fit(draw, ["a", "b"] * 4).save(path)
    assert main(["predict", str(path), "x.csv", "--window", "5"]) == 2
    assert "are not cut into windows" in capsys.readouterr().err
