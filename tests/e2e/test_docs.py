"""Run the README and the docs page by page, each in its own folder.

- A `python` or `yaml` block whose first line is a comment with a path is written to that file. If the path begins with
  `src/`, the folder becomes a copy of the project, and the following commands use it.
- Every other `python` block is executed; the blocks of a page share their names.
- In a `console` block, every line after `$ ` is run, and the lines below it are its expected output. Words must be
  equal, numbers must agree within 10 %, and `...` matches anything.

Each page begins in an empty folder: what its commands need, it writes itself (`imprint sample`).
"""

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

import imprint
from imprint.cli import main

from .pages import BLOCK, COMMAND, FILE, alike

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "reproduction" / "docs").rglob("*.md")),
]
TARGETS = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """One home for all pages, so that the digits are embedded once."""
    return tmp_path_factory.mktemp("home")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_page_runs(page, home, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IMPRINT_HOME", str(home))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # `main` replaces it
    text, names = page.read_text(encoding="utf-8"), {"__name__": "page"}
    for block in BLOCK.finditer(text):
        kind, body = block.groups()
        if file := FILE.match(body):
            write(Path(file[1]), body)
        elif kind == "python":
            line = text[: block.start(2)].count("\n")
            exec(compile("\n" * line + body, str(page), "exec"), names)
        elif kind == "console":
            for command, expected in COMMAND.findall(body):
                check(command, expected)


def write(place, body):
    if place.parts[0] == "src":
        copy_project()
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(body, encoding="utf-8")


def copy_project():
    """Copy the parts of the project that a new component needs."""
    shutil.copytree(Path(imprint.__file__).parent, "src/imprint")
    shutil.copytree(ROOT / "tests" / "contract", "tests/contract")
    for name in ("pyproject.toml", "tests/conftest.py"):
        shutil.copy(ROOT / name, name)


def check(command, expected):
    """Run one command and compare its output. For `make`, only check that the target exists."""
    program, *words = shlex.split(command, comments=True)
    if program == "make":
        assert words[0] in TARGETS, command
        return
    if program == "mkdir":
        Path(words[0]).mkdir()
        return
    if program == "mv":
        shutil.move(*words)
        return
    assert program in ("imprint", "pytest"), f"{command}: say how the tests run it"
    code, printed = (
        in_copy(program, words) if Path("src").exists() else in_process(words)
    )
    assert code == 0, f"$ {command}\n{printed}"
    if expected.strip():
        assert alike(expected, printed), (
            f"$ {command}\nThe page says:\n{expected}\nIt prints:\n{printed}"
        )


def in_process(words):
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        code = main(words)
    return code, out.getvalue()


def in_copy(program, words):
    env = {
        **os.environ,
        "PYTHONPATH": str(Path("src").absolute()),
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": "1",
    }
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(
        [sys.executable, "-m", program, *words],
        env=env,
        text=True,
        timeout=300,
        **pipes,
    )
    return done.returncode, done.stdout
