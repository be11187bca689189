"""Labels from nested folders: `animal/cat/x.jpg` has the label `animal/cat`."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import TypeAlias

NUMBER = re.compile(r"[\W\d_]+")
"""Names without letters, such as 2023 or 2023-05-01: sub-folders that sort the inputs of a class."""
SHOWN = 3


Nesting: TypeAlias = bool | Collection[str] | None
"""How nested folders are read: as a tree of classes (True), as one class per top folder (False), as their names suggest
(None), or as the classes of a model, which are given, suggest."""


def folder_labels(names: Sequence[str], tree: Nesting = None) -> tuple[list[str], tuple[str, ...]]:
    """The label of each file by its relative path, and sentences about how nested folders were read.

    A folder that holds files is a class, and so is everything below it. By default, sub-folders whose names have no
    letters belong to the folder above them, and folders of which none has two sub-folders are read as flat.
    `tree=True` reads all of these as classes, and `tree=False` makes each top folder one class. Where `tree` holds the
    classes of a model, folders below one of them belong to it, folders below a node of its tree are new classes there,
    and the others are read by default. If classes of the model are numbers below a node, so may these be.

    >>> folder_labels(["animal/cat/1.png", "animal/dog/1.png", "sky/2023/1.png"])[0]
    ['animal/cat', 'animal/dog', 'sky']
    >>> folder_labels(["cat/2023/1.png", "cat/2024/1.png", "dog/old/1.png"])[1]
    ('Sub-folders such as cat/2023 belong to their class cat; --tree (tree=True) makes each a class.',)
    """
    folders, known = [name.rpartition("/")[0] for name in names], set() if isinstance(tree, bool | None) else {*tree}
    holding, by_default = set(folders), not isinstance(tree, bool)
    leaves = {folder: _first(folder, holding) for folder in holding}
    if by_default and not any(_lettered(label) != label for label in known):
        leaves = {folder: _lettered(leaf) for folder, leaf in leaves.items()}
    parents = Counter(leaf.rpartition("/")[0] for leaf in {*leaves.values()} if "/" in leaf)
    if tree is False or (by_default and max(parents.values(), default=0) < 2):
        nodes = {label.split("/", 1)[0] for label in known if "/" in label}
        tops = {folder: folder.split("/", 1)[0] for folder in leaves}
        leaves = {folder: leaf if tops[folder] in nodes else tops[folder] for folder, leaf in leaves.items()}
    leaves = {folder: _last(folder, known) or leaf for folder, leaf in leaves.items()}
    return [leaves[folder] for folder in folders], _sentences(leaves, known) if by_default else ()


def _prefixes(folder: str) -> list[str]:
    parts = folder.split("/")
    return ["/".join(parts[: n + 1]) for n in range(len(parts))]


def _first(folder: str, holding: Collection[str]) -> str:
    """The topmost folder on the path that holds files itself."""
    return next(prefix for prefix in _prefixes(folder) if prefix in holding)


def _last(folder: str, classes: Collection[str]) -> str | None:
    """The deepest folder on the path that is a class."""
    return next((prefix for prefix in reversed(_prefixes(folder)) if prefix in classes), None)


def _lettered(leaf: str) -> str:
    while "/" in leaf and NUMBER.fullmatch(leaf.rpartition("/")[2]):
        leaf = leaf.rpartition("/")[0]
    return leaf


def _sentences(leaves: dict[str, str], classes: Collection[str]) -> tuple[str, ...]:
    new = {folder: leaf for folder, leaf in leaves.items() if leaf not in classes}
    nested, merged = sorted({leaf for leaf in new.values() if "/" in leaf}), sorted(f for f in new if f != new[f])
    lines = []
    if nested:
        named = ", ".join(nested[:SHOWN]) + (", ..." if len(nested) > SHOWN else "")
        lines.append(
            f"Nested folders are a tree of classes: {named}; --flat (tree=False) makes each top folder one class."
        )
    if merged:
        named = f"{merged[0]} belong to their class {new[merged[0]]}"
        lines.append(f"Sub-folders such as {named}; --tree (tree=True) makes each a class.")
    return tuple(lines)
