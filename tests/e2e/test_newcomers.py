"""Scripts of four typical new users, run from an installed wheel in separate folders."""

import os
import shlex
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from .pages import BLOCK, COMMAND, alike

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "tests" / "e2e" / "newcomers"
LARGEST = (
    45_000_000  # bytes of a wheel or sdist; the shipped weights are 38 million of them
)

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="the scripts are for a POSIX shell"
)


def call(*words: object, **options) -> str:
    done = subprocess.run(
        [str(w) for w in words], capture_output=True, text=True, timeout=380, **options
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def built(tmp_path_factory) -> Path:
    """The wheel and the sdist of this tree."""
    folder = tmp_path_factory.mktemp("dist")
    call(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=ROOT)
    return folder


@pytest.fixture(scope="session")
def installed(built, tmp_path_factory) -> dict[str, str]:
    """Environment variables of a new virtual environment with the wheel; other packages come from the test environment.

    numba is hidden: new users without the extra `fast` do not have it, and it would compile every loop again.
    """
    place = tmp_path_factory.mktemp("installed") / "venv"
    call(sys.executable, "-m", "venv", "--without-pip", place)
    python = place / "bin" / "python"
    (wheel,) = built.glob("*.whl")
    pip = (
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--disable-pip-version-check",
    )
    call(*pip, "--no-deps", "--no-index", "--no-compile", wheel)
    (packages,) = place.glob("lib/*/site-packages")
    paths = dict.fromkeys(sysconfig.get_paths()[key] for key in ("purelib", "platlib"))
    # the reproduction is installed in the test environment from its folder
    folders = [*paths, str(ROOT / "reproduction" / "src")]
    (packages / "tests.pth").write_text("\n".join(folders) + "\n")
    (packages / "sitecustomize.py").write_text(
        "import sys\nsys.modules['numba'] = None\n"
    )
    environment = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("PYTHON", "PYTEST", "COV"))
    }
    return {
        **environment,
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
        "OMP_NUM_THREADS": "1",
    }


@pytest.fixture
def place(installed, tmp_path) -> dict:
    """An empty folder and home."""
    home = str(tmp_path / "home")
    (tmp_path / "here").mkdir()
    return {
        "cwd": tmp_path / "here",
        "env": {**installed, "IMPRINT_HOME": home, "HOME": home},
    }


def test_imprint_is_imported_from_the_wheel(place):
    path = call("python", "-c", "import imprint; print(imprint.__file__)", **place)
    assert path.startswith(str(Path(place["env"]["PATH"].split(os.pathsep)[0]).parent))
    assert call("imprint", "--version", **place).startswith("imprint ")


@pytest.mark.parametrize(
    "script", ["images.sh", "device.py", "researcher.sh", "developer.sh"]
)
def test_newcomer(script, place):
    call("python" if script.endswith(".py") else "sh", SCRIPTS / script, **place)


TUTORIALS = ["README.md", "docs/quickstart.md"] + [
    f"docs/start/{name}.md" for name in ("images", "texts", "series", "embeddings")
]
"""The first pages that somebody reads: what they show runs from an installation."""


@pytest.fixture(scope="module")
def first_home(tmp_path_factory) -> str:
    """A home without anything, for all pages: the samples are embedded once."""
    return str(tmp_path_factory.mktemp("home"))


@pytest.mark.parametrize("page", TUTORIALS)
def test_pages_run_in_order_from_an_installation(page, installed, first_home, tmp_path):
    environment = {**installed, "IMPRINT_HOME": first_home, "PYTHONUNBUFFERED": "1"}
    options = {"cwd": tmp_path, "env": environment}
    programs: list[str] = []  # those of a page share their names
    ran = 0
    for block in BLOCK.finditer((ROOT / page).read_text("utf-8")):
        kind, body = block.groups()
        if kind == "python":
            programs.append(body)
            (tmp_path / "page.py").write_text("\n".join(programs), encoding="utf-8")
            call("python", "page.py", **options)
        for command, expected in COMMAND.findall(body) if kind == "console" else ():
            program, *words = shlex.split(command, comments=True)
            if program == "make":
                continue  # it needs the clone
            assert program == "imprint", command
            printed = print_of(program, *words, **options)
            assert not expected.strip() or alike(expected, printed), (
                f"$ {command}\nThe page says:\n{expected}\nIt prints:\n{printed}"
            )
            ran += 1
    assert ran > 2


def print_of(*words: str, **options) -> str:
    """What a command prints to a terminal: its output and its messages, as they come."""
    done = subprocess.run(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=380,
        **options,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}"
    return done.stdout


def test_every_script_is_run():
    parts = {"photos.py", "median.py", "conftest.py"}
    assert {p.name for p in SCRIPTS.glob("*.*")} - parts == {
        "images.sh",
        "device.py",
        "researcher.sh",
        "developer.sh",
    }


def test_the_wheel_and_the_source_archive_hold_licence_weights_and_records(
    built, tmp_path
):
    (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
    inside = zipfile.ZipFile(wheel).namelist()
    for name in ("tinynet", "efficientnet_lite0"):
        files = (
            f"weights/{name}.onnx",
            f"weights/{name}_head.safetensors",
            f"records/{name}.json",
        )
        assert {
            f"imprint/backbones/{file}" for file in (*files, "weights/minilm.onnx")
        } <= set(inside)
    for name in ("LICENSE", "NOTICE", "LICENSES/Apache-2.0.txt"):
        assert [n for n in inside if n.endswith(f"licenses/{name}")]
    assert "imprint/py.typed" in inside
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (tree,) = tmp_path.iterdir()
    for name in (
        "LICENSE",
        "Makefile",
        "examples/run_onnx.py",
        "tests/e2e/newcomers/images.sh",
        "docs/export.md",
    ):
        assert (tree / name).is_file()
    call(
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "-t",
        "wheel",
        "-d",
        tmp_path / "again",
        cwd=tree,
    )
    (again,) = (tmp_path / "again").glob("*.whl")
    assert sorted(zipfile.ZipFile(again).namelist()) == sorted(inside), (
        "the sdist builds the same wheel"
    )
    assert max(wheel.stat().st_size, sdist.stat().st_size) < LARGEST
