"""What a person wants predicted: files, folders, texts or a table, or the lines of standard input."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from imprint import datasets
from imprint.core.errors import FileError, ParameterError
from imprint.datasets import Split
from imprint.datasets.split import NO_LABELS, Numbered, RowsOf
from imprint.datasets.tables import table_suffix
from imprint.modalities import Modality

STANDARD_INPUT = "-"


def inputs(given: Sequence[str], kind: Modality, text_column: str | None = None) -> Split:
    """The inputs of a model that reads one kind of them, without labels."""
    words = [word for text in given for word in (_lines() if text == STANDARD_INPUT else [text])]
    if not words:
        raise ParameterError("predict: standard input has no lines.")
    if not kind.needs_backbone or (kind.typed and _is_table(words[0])):
        return _table(words, text_column)
    if not kind.typed:
        return datasets.load_files(words, kind.name)
    return Split(tuple(words), NO_LABELS, tuple(words), (), kind.name)


def _lines() -> list[str]:
    return [line for line in sys.stdin.read().splitlines() if line]


def _is_table(word: str) -> bool:
    return table_suffix(word) is not None and Path(word).is_file()


def _table(words: Sequence[str], text_column: str | None) -> Split:
    if len(words) > 1:
        raise ParameterError(f"predict: one table at a time; {len(words)} were given.")
    if not Path(words[0]).exists():
        raise FileError(f"There is no file {words[0]}; a model of embeddings takes a table, a .npz or a .npy file.")
    columns: dict[str, Any] = {"text_column": text_column}
    return numbered_rows(datasets.load(words[0], "train", labelled=False, **columns))


def numbered_rows(split: Split) -> Split:
    """The split with the name of its file in the names of its rows."""
    if isinstance(split.names, Numbered):  # of a pack or a matrix, which are called after their part alone
        return replace(split, names=RowsOf(split.origin, range(1, len(split) + 1)))
    return split
