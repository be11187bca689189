"""Tags: several labels per input, from the cells of tables and from copies of a file in several folders."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from imprint.core.errors import FileError
from imprint.core.label_sets import from_lists
from imprint.datasets.files import UNREADABLE, FileInputs
from imprint.datasets.split import Split
from imprint.datasets.tables.values import INTEGER, is_missing, quote

FLAGS = {"": False, "0": False, "1": True, "false": False, "true": True}  # cells of a column that is a label


def list_cell(names: Sequence[str], values: Sequence[Any]) -> str:
    """The labels in several columns of a row, as one JSON list. A column of 0 and 1 is a label; other cells are labels.

    >>> list_cell(["joy", "love"], [1, "0"]), list_cell(["first", "second"], ["joy", None])
    ('["joy"]', '["joy"]')
    """
    texts = ["" if is_missing(value) else str(value).strip() for value in values]
    flags = [FLAGS.get(text.lower().removesuffix(".0")) for text in texts]
    present = [name if flag else text for name, text, flag in zip(names, texts, flags) if flag is not False]
    return json.dumps(present)


def with_tags(split: Split, separator: str) -> Split:
    """The inputs with tags: labels are split at the separator, and equal files in several folders are one input."""
    by_cell = {label: _split_cell(str(label), separator, split.origin) for label in split.classes}
    cells = [by_cell[label] for label in split.labels.tolist()]
    if isinstance(split.inputs, FileInputs):
        groups: dict[str, list[int]] = {}
        for i, digest in enumerate(split.inputs.digests()):  # an unreadable file equals no other
            groups.setdefault(f"{digest} {i}" if digest == UNREADABLE else digest, []).append(i)
        cells = [sorted({label for i in group for label in cells[i]}) for group in groups.values()]
        first = [group[0] for group in groups.values()]
        inputs, names = split.inputs.part(first), [split.names[i] for i in first]
        split = replace(split, inputs=inputs, names=names, labels=split.labels[first])
    texts = {label for cell in cells for label in cell}
    are_numbers = all(INTEGER.fullmatch(text) for text in texts)
    tagged = from_lists([map(int, cell) if are_numbers else cell for cell in cells])
    return replace(split, labels=tagged.sets, classes=tagged.labels, tags=True)


def _split_cell(cell: str, separator: str, origin: str) -> list[str]:
    if not cell.startswith("["):
        return [text for part in cell.split(separator) if (text := part.strip())]
    try:
        items = json.loads(cell)
    except (ValueError, RecursionError):
        items = None
    if not isinstance(items, list) or not all(isinstance(item, str | int) and str(item).strip() for item in items):
        raise FileError(f'{origin}: {quote(cell)} is not a list of labels, such as ["joy", "love"].')
    return [str(item).strip() for item in items]
