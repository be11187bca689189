"""The reproduction imports only what the public packages export: the interface suffices for research."""

import ast
import runpy
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PUBLIC = runpy.run_path(str(ROOT / "docs" / "api.py"))["MODULES"]
FILES = sorted((ROOT / "reproduction" / "src" / "imprint_reproduction").glob("*.py"))


def private_imports(source):
    """The names that a file imports from imprint, but that no public package exports."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [
                part.name for part in node.names if part.name.split(".")[0] == "imprint"
            ]
        if (
            not isinstance(node, ast.ImportFrom)
            or node.module.split(".")[0] != "imprint"
        ):
            continue
        exported = import_module(node.module).__all__ if node.module in PUBLIC else []
        for part in node.names:
            is_package = f"{node.module}.{part.name}" in PUBLIC
            if part.name not in exported and not is_package:
                names.append(f"{node.module}.{part.name}")
    return names


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_only_public_names_are_imported(file):
    assert private_imports(file.read_text("utf-8")) == []


def test_private_names_are_found():
    assert private_imports("from imprint.kernels.cpu import cores") == [
        "imprint.kernels.cpu.cores"
    ]
    assert private_imports("from imprint.stats import tied_ranks") == [
        "imprint.stats.tied_ranks"
    ]
    assert private_imports("import imprint.core") == ["imprint.core"]
    assert private_imports("from imprint import tasks\nimport numpy") == []
