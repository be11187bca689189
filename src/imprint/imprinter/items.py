"""Python values, such as a list of paths or a data frame, as a `Split`."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from imprint.core.errors import ParameterError, UnreadableInput
from imprint.core.label_sets import read_tags
from imprint.core.types import Array
from imprint.datasets import Split
from imprint.datasets.split import NO_LABELS, Inputs, classes_of, plain_labels
from imprint.embeddings import Skipped
from imprint.modalities import Modality, family, modality, of_file, read_file
from imprint.modalities.embedding import matrix

BLANK = "the text is empty"
LABEL_COLUMNS = ("label", "labels", "category", "target", "y")
INPUT_COLUMNS = {"text": "text", "image": "image", "picture": "image", "audio": "sound", "sound": "sound"}
"""Columns of a table that hold the inputs, and their modality."""


class Embedded(NamedTuple):
    """Embeddings in memory; `y` holds the labels of labelled inputs, and unreadable inputs have no row."""

    X: Array  # (n, d) float32
    names: Sequence[str]
    skipped: tuple[Skipped, ...]
    y: Array | None = None  # (n,)
    notices: tuple[str, ...] = ()  # sentences about training data, such as texts that were cut
    tags: tuple[Any, ...] | None = None  # all labels, where `y` holds label sets (see `core.label_sets`)

    @property
    def readable(self) -> Array:
        """The indices of the rows among all inputs of `look`, which lists the others in `skipped`.  # (n,)"""
        return np.delete(np.arange(len(self.X) + len(self.skipped)), [one.index for one in self.skipped])

    @property
    def labels(self) -> list[Any]:
        """The labels of the rows, each once, sorted."""
        return np.unique(np.asarray(self.y)).tolist() if self.tags is None else list(self.tags)


class GivenInputs:
    """Python values as inputs of one modality, converted on access; a blank text is unreadable, as a blank file is."""

    def __init__(self, kind: Modality, values: Inputs):
        self.kind, self.values = kind, values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, i: int) -> Any:
        value = self.values[i]
        if isinstance(value, Mapping) and (value.get("bytes") or value.get("path")):  # an undecoded Hugging Face image
            value = value.get("bytes") or os.fspath(value["path"])
        if isinstance(value, bytes):
            return self.kind.read(value)
        if isinstance(value, os.PathLike) or (isinstance(value, str) and not self.kind.typed):
            return self.kind.read(read_file(value))
        item = self.kind.convert(value)
        if self.kind.typed and not str(item).strip():
            raise UnreadableInput("a text", BLANK)
        return item


def given_split(values: Any, labels: Any = None, kind: Modality | None = None) -> Split:
    """Values, and perhaps their labels, as a split; `kind` is the modality of the model, None if not yet known."""
    if isinstance(values, Mapping) or hasattr(values, "column_names") or hasattr(values, "columns"):
        values, labels, kind = _of_table(values, labels, kind)
    values = _column(values)
    kind = kind or _kind_of(values)
    items = kind.listed(values)
    names = [kind.name_of(value, i) for i, value in enumerate(items)]
    inputs = items if not kind.needs_backbone else GivenInputs(kind, items)
    if labels is None:
        return Split(inputs, NO_LABELS, names, (), kind.name)
    tagged = read_tags(_column(labels))
    y = plain_labels(_column(labels) if tagged is None else tagged.sets)
    if len(y) != len(items):
        raise ParameterError(f"fit(items, labels): {len(items)} items and {len(y)} labels; the numbers must be equal.")
    return Split(inputs, y, names, tagged.labels if tagged else classes_of(y), kind.name, tags=tagged is not None)


def _kind_of(values: Any) -> Modality:
    """The modality of some values, if there is no backbone yet."""
    if isinstance(values, np.ndarray) and values.ndim == 2 and values.dtype != np.uint8:
        return modality("embedding")
    first = list(values[:10]) if isinstance(values, Sequence | np.ndarray) else [values]
    if first and all(isinstance(value, str) for value in first):
        kind, *others = {of_file(value) for value in first}
        return modality("text") if others or kind is None else kind
    if first and all(isinstance(value, os.PathLike) for value in first):
        return of_file(first[0]) or modality("image")
    kinds = [kind for kind in map(modality, family.names()) if first and all(map(kind.recognises, first))]
    if not kinds:
        what = type(first[0]).__name__ if first else "nothing"
        raise ParameterError(f"Cannot tell what {what} is; name the backbone that reads it: Imprinter(backbone=...).")
    return kinds[0]


def _of_table(table: Any, labels: Any, kind: Modality | None) -> tuple[Any, Any, Modality]:
    """The inputs, labels and modality of a data frame, an Arrow table, a Hugging Face data set or a dict of columns."""
    names = list(table if isinstance(table, Mapping) else getattr(table, "column_names", None) or table.columns)
    if labels is None and (column := next((name for name in LABEL_COLUMNS if name in names), None)):
        labels = table[column]
        names.remove(column)
    if column := next((name for name in INPUT_COLUMNS if name in names), None):
        return table[column], labels, kind or modality(INPUT_COLUMNS[column])
    columns = [np.asarray(_column(table[name])) for name in names]
    if not columns or any(c.dtype.kind not in "fiu" for c in columns):
        known, has = ", ".join(INPUT_COLUMNS), ", ".join(map(str, names))
        raise ParameterError(f"The table has neither a column {known} nor only numbers; it has: {has}.")
    X = columns[0] if columns[0].ndim == 2 else np.stack(columns, axis=1)
    return matrix(X), labels, modality("embedding")


def _column(values: Any) -> Any:
    """A column of pandas, polars, Arrow or torch as a list or an array; anything else unchanged."""
    if hasattr(values, "cpu"):
        return np.asarray(values.cpu())
    names = () if isinstance(values, np.ndarray | list | tuple) else ("to_pylist", "to_list", "tolist")
    convert = next((getattr(values, name) for name in names if hasattr(values, name)), None)
    return values if convert is None else convert()
