"""Labels from nested folders: `animal/cat/x.jpg` has the label `animal/cat`."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import TypeAlias

NUMBER = re.compile(r"[\W\d_]+")
"""Names without letters, such as 2023 or 2023-05-01: sub-folders that sort the inputs of a class."""
SHOWN = 3  # classes that a sentence names
Nesting: TypeAlias = bool | Collection[str] | None
"""How nested folders are read: as a tree of classes (True), as one class per top folder (False), by their names (None),
or next to the classes of a model, which are given."""


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
    with_files, by_default = set(folders), not isinstance(tree, bool)
    paths = {folder: list(accumulate(folder.split("/"), "{}/{}".format)) for folder in with_files}
    labels = {folder: next(above for above in path if above in with_files) for folder, path in paths.items()}
    if by_default and not any(_without_numbers(label) != label for label in known):
        labels = {folder: _without_numbers(label) for folder, label in labels.items()}
    parents = Counter(label.rpartition("/")[0] for label in {*labels.values()} if "/" in label)
    if tree is False or (by_default and max(parents.values(), default=0) < 2):
        nodes = {label.split("/", 1)[0] for label in known if "/" in label}
        labels = {folder: label if paths[folder][0] in nodes else paths[folder][0] for folder, label in labels.items()}
    known_above = {folder: [above for above in path if above in known] for folder, path in paths.items()}
    labels = {folder: [label, *known_above[folder]][-1] for folder, label in labels.items()}
    return [labels[folder] for folder in folders], _sentences(labels, known) if by_default else ()


def _without_numbers(label: str) -> str:
    """The label without folders at its end whose names have no letters."""
    while "/" in label and NUMBER.fullmatch(label.rpartition("/")[2]):
        label = label.rpartition("/")[0]
    return label


def _sentences(labels: dict[str, str], classes: Collection[str]) -> tuple[str, ...]:
    new = {folder: label for folder, label in labels.items() if label not in classes}
    nested, merged = sorted({label for label in new.values() if "/" in label}), sorted(f for f in new if f != new[f])
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
