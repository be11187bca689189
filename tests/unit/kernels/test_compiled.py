"""Cached machine code is reused, but not after an upgrade that changed its source."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import imprint

pytest.importorskip("numba")

PACKAGE = Path(imprint.__file__).parent
CALLEE = """
from typing import NamedTuple
from imprint.kernels.compiled import jit

class Pair(NamedTuple):
    first: int
    second: int

@jit
def weighted(pair):
    return pair.first + {value} * pair.second
"""
CALLER = """
from imprint.kernels.compiled import jit
from imprint.kernels.compiled.{module} import Pair, weighted

@jit
def total(pair):
    return weighted(pair)

def answer():
    return total(Pair(0, 1)), sum(total.stats.cache_hits.values())
"""
CALL = "from imprint.kernels.compiled.caller import answer; print(*answer())"


def install(folder, module, value):
    """Write a compiled function and one that calls it into a copy of the package."""
    compiled = folder / "imprint" / "kernels" / "compiled"
    for name, text in (
        (module, CALLEE.format(value=value)),
        ("caller", CALLER.format(module=module)),
    ):
        (compiled / f"{name}.py").write_text(text)
    os.utime(
        compiled / f"{module}.py", (value, value)
    )  # Python detects changes by the modification time
    os.utime(
        compiled / "caller.py", (1, 1)
    )  # numba by the time and size of the caller's file


def answer(folder):
    environment = {**os.environ, "PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": ""}
    words = [sys.executable, "-c", CALL]
    done = subprocess.run(
        words, env=environment, cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return tuple(map(int, done.stdout.split()))


def test_machine_code_is_used_again_until_a_function_that_it_calls_changes_or_moves(
    tmp_path,
):
    shutil.copytree(
        PACKAGE,
        tmp_path / "imprint",
        ignore=shutil.ignore_patterns("__pycache__", "weights", "*.onnx"),
    )
    install(tmp_path, "callee", 2)
    assert answer(tmp_path) == (2, 0)
    assert answer(tmp_path) == (2, 1)
    install(tmp_path, "callee", 3)
    assert answer(tmp_path) == (3, 0)
    (tmp_path / "imprint" / "kernels" / "compiled" / "callee.py").unlink()
    install(tmp_path, "moved1", 3)
    assert answer(tmp_path) == (3, 0)
