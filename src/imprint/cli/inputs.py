"""The arguments of `imprint predict`: files, folders, texts, a table, or standard input."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from imprint import datasets
from imprint.core.errors import FileError, ParameterError
from imprint.datasets import Split
from imprint.datasets.split import NO_LABELS
from imprint.datasets.tables import load_table, table_suffix
from imprint.imprinter.items import GivenInputs
from imprint.modalities import Modality, of_file

STANDARD_INPUT = "-"


def read_inputs(given: Sequence[str], kind: Modality, text_column: str | None = None, texts: bool = False) -> Split:
    """The inputs of a model, without labels; with `texts` every argument is a text.

    Otherwise an argument that exists as a file, or ends like one, is a file.
    """
    if texts and not kind.typed:
        raise ParameterError(f"--text: this model reads {kind.plural}, not texts.")
    values: list[Any] = []
    for word in given:
        values += _standard_input(kind) if word == STANDARD_INPUT else [word if texts else _value(word, kind)]
    if not values:
        raise ParameterError("predict: standard input has no lines.")
    paths = [value for value in values if isinstance(value, Path)]
    if not kind.needs_backbone or (kind.typed and any(map(table_suffix, paths))):
        return _table(values, kind, text_column)
    if not kind.typed and len(paths) == len(values):
        return datasets.load_files(paths, kind.name)
    items: list[Any] = []
    for value in values:
        is_folder = isinstance(value, Path) and value.is_dir()
        items += map(Path, datasets.load_files([value], kind.name).names) if is_folder else [value]
    names = ["standard input" if isinstance(item, bytes) else str(item) for item in items]
    names = [name if name.strip() else kind.name_of(name, i) for i, name in enumerate(names)]
    return Split(GivenInputs(kind, items), NO_LABELS, names, (), kind.name)


def relative_names(names: Sequence[str], given: Sequence[str]) -> Sequence[str]:
    """The names of files, relative to the folder that was given, or to the common parent of several folders."""
    folders = [os.path.expanduser(word) for word in given if os.path.isdir(os.path.expanduser(word))]
    if not folders or len({os.path.isabs(folder) for folder in folders}) > 1:
        return names
    root = os.path.commonpath(folders) + os.sep
    return [name.removeprefix(root) for name in names]


def _table(values: Sequence[Any], kind: Modality, text_column: str | None) -> Split:
    """All rows of one table, of any split."""
    if len(values) > 1:
        raise ParameterError(f"predict: give one table at a time, not {len(values)} arguments.")
    path = Path(values[0])
    if not path.exists():
        raise FileError(f"There is no file {path}; a model of {kind.plural} reads a table, a .npz or a .npy file.")
    if table_suffix(path):
        return load_table(path, None, labelled=False, text_column=text_column)
    return datasets.load(path, labelled=False, text_column=text_column)


def _value(word: str, kind: Modality) -> str | Path:
    """A path, or for a model of texts a text."""
    path = Path(word).expanduser()
    if not kind.typed:
        return path
    if not word.strip():  # the path "" is the current folder
        return word
    exists = os.path.exists(path)  # False if it is longer than any file name
    if not exists and (table_suffix(path) or of_file(word)):
        raise FileError(f"There is no file {word}; to classify these words as a text, add --text.")
    return path if exists else word


def _standard_input(kind: Modality) -> list[Any]:
    """The lines of standard input, each a text or a path; or its bytes, if they are one input and not lines."""
    raw = sys.stdin.buffer.read() if hasattr(sys.stdin, "buffer") else sys.stdin.read().encode()
    try:
        lines = [line for line in raw.decode("utf-8-sig").splitlines() if line.strip()]
    except UnicodeDecodeError:
        if kind.typed or not kind.needs_backbone:
            raise ParameterError("predict: standard input is not text in UTF-8.") from None
        return [raw]
    if kind.typed:
        return list(lines)
    return [raw] if "\0" in "".join(lines) else [Path(line) for line in lines]
