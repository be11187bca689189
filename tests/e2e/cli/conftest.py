"""Fixtures: a folder of images, and the command line as a user calls it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from PIL import Image

from imprint.cli import main

SHADES = {"dark": 20, "middle": 120, "light": 230}
RAW = ("--backbone", "raw", "--recipe", "janson2022")
"""Pixels and nearest means: fast, and accurate on shades of grey."""


class Done(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    def refused(self, *parts: str) -> None:
        """Assert exit code 2, no standard output, and an error of one sentence that contains all `parts`."""
        assert (self.code, self.out) == (2, "")
        *notes, line = self.err.splitlines()
        assert not any(note.startswith("Error: ") for note in notes)
        assert line.startswith("Error: ")
        assert line.endswith(".")
        for part in parts:
            assert part in line


def _paint(root: Path, labels, n: int = 5, first: int = 0) -> Path:
    for label in labels:
        (root / label).mkdir(parents=True, exist_ok=True)
        for i in range(first, first + n):
            noise = np.random.default_rng(i).integers(-15, 15, (12, 12))
            Image.fromarray((SHADES[label] + noise).astype(np.uint8)).save(
                root / label / f"{i}.png"
            )
    return root


@pytest.fixture
def paint():
    """Make noisy grey images, one folder per shade: `paint(root, labels, n, first)`."""
    return _paint


@pytest.fixture(autouse=True)
def own_place(tmp_path, monkeypatch):
    """A separate home and working folder for each test."""
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # `main` replaces it


@pytest.fixture
def photos(tmp_path) -> Path:
    return _paint(tmp_path / "photos", SHADES)


@pytest.fixture
def model(photos, imprint) -> Path:
    path = photos.parent / "model.imprint"
    assert imprint("fit", photos, "-o", path, *RAW).code == 0
    return path


@pytest.fixture
def imprint(capsys):
    """Run a command in this process."""

    def call(*args: object) -> Done:
        capsys.readouterr()
        code = main([str(a) for a in args])
        return Done(code, *capsys.readouterr())

    return call


@pytest.fixture
def start():
    """Start a command in a new process, with one thread per library; or run `code` that calls `main`."""
    running = []

    def call(*args: object, code: str | None = None, **options) -> subprocess.Popen:
        env = {**os.environ, "OMP_NUM_THREADS": "1", **options.pop("env", {})}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        words = [
            sys.executable,
            *(["-m", "imprint"] if code is None else ["-c", code]),
            *map(str, args),
        ]
        running.append(subprocess.Popen(words, env=env, **{**pipes, **options}))
        return running[-1]

    yield call
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def finish():
    """Wait for a process that `start` started."""

    def wait(process: subprocess.Popen) -> Done:
        out, err = process.communicate(timeout=120)
        return Done(process.returncode, out, err)

    return wait
