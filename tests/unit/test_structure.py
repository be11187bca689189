"""Limits of structure: parameters, class names and comparisons with the name of a modality."""

import ast
from collections import Counter
from pathlib import Path

import pytest

import imprint

ROOT = Path(imprint.__file__).parent
TREES = {
    path.relative_to(ROOT): ast.parse(path.read_text("utf-8"))
    for path in sorted(ROOT.rglob("*.py"))
}
MODALITIES = {"image", "text", "sound", "embedding"}


def nodes(*kinds):
    return [
        (path, node)
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, kinds)
    ]


def is_triton(function):
    return any(
        "triton" in ast.unparse(decorator) for decorator in function.decorator_list
    )


def test_no_function_has_more_than_8_parameters():
    """Except commands, whose parameters are command-line options, and Triton programs, which take only scalars."""
    long = []
    for path, node in nodes(ast.FunctionDef, ast.AsyncFunctionDef):
        if path.parts[0] == "cli" or is_triton(node):
            continue
        names = [
            arg.arg
            for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        ]
        if len([name for name in names if name not in ("self", "cls")]) > 8:
            long.append(f"{path}: {node.name}")
    assert long == []


def test_every_class_name_is_used_once():
    names = Counter(node.name for _, node in nodes(ast.ClassDef))
    assert [name for name, times in names.items() if times > 1] == []


def test_modalities_are_asked_instead_of_compared():
    """At most six comparisons with the name of a modality outside of the family, so that a plug-in can add one."""
    compared = [
        f"{path}:{node.lineno}"
        for path, node in nodes(ast.Compare)
        if path.parts[0] != "modalities"
        and "modality" in ast.unparse(node)
        and any(
            isinstance(part, ast.Constant) and part.value in MODALITIES
            for part in ast.walk(node)
        )
    ]
    assert len(compared) <= 6, compared


@pytest.mark.parametrize("word", ["utils", "helpers", "misc", "common"])
def test_no_module_is_called_utils_or_helpers(word):
    assert [
        str(path) for path in TREES if path.stem == word or word in path.parts
    ] == []
