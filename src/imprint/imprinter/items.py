"""Inputs given as Python values, such as a list of paths or a data frame, and notices
about training data.
"""

import os
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from imprint.core.arrays import Array
from imprint.core.blocks import read_blocks
from imprint.core.errors import (
    ParameterError,
    UnreadableInput,
    count,
    first_names,
    printable,
)
from imprint.core.label_sets import read_tags
from imprint.datasets import Split
from imprint.datasets.columns import (
    NAME_COLUMNS,
    PATH_COLUMNS,
    find_column,
    find_label_column,
    normalised,
)
from imprint.datasets.split import NO_LABELS, Inputs, classes_of, plain_labels
from imprint.embeddings import Skipped
from imprint.modalities import Modality, builtin, family, modality, of_file, read_file
from imprint.modalities.embedding import matrix

BLANK_REASON = "the text is empty"  # why a blank text is skipped
INPUT_COLUMNS = {
    "text": "text",
    "image": "image",
    "picture": "image",
    "audio": "sound",
    "sound": "sound",
}
"""Columns of a table that hold the inputs, and their modality."""
MAX_NAMED = 5  # inputs that one notice names
# relative to the largest value: rows of equal inputs differ by rounding
TOLERANCE = 1e-5
MISSING_LABEL = -1  # the label that many libraries give to rows without one
COMMON_ENGLISH = (
    "the and of to in is it for that with on was are this have not you what how my"
    " can i"
)
COMMON_FOREIGN = (
    "der die das und ist nicht ein eine ich mit für auf den von zu wie mein le la les"
    " et est une des que pas je pour dans du avec mon el los las es un una por con para"
    " como mi il che di è per non sono come het een van niet ik de o os um uma não com"
    " och är att det som inte jag på"
)
ENGLISH_WORDS, FOREIGN_WORDS = (
    frozenset(COMMON_ENGLISH.split()),
    frozenset(COMMON_FOREIGN.split()),
)
WORD = re.compile(r"[^\W\d_]+")


class Embedded(NamedTuple):
    """Embeddings in memory; `y` holds the labels of labelled inputs, and unreadable
    inputs have no row.
    """

    X: Array  # (n, d) float32
    names: Sequence[str]
    skipped: tuple[Skipped, ...]
    y: Array | None = None  # (n,)
    # sentences about training data, such as texts that were cut
    notices: tuple[str, ...] = ()
    # all labels, where `y` holds label sets (see `core.label_sets`)
    tags: tuple[Any, ...] | None = None
    folders: bool = False  # whether the labels are names of folders
    weight: Array | None = None  # (n,) of labelled inputs; None: all count alike
    blocks: tuple[int, ...] = ()  # the widths of the blocks of X, if it has several

    @property
    def readable(self) -> Array:
        """The index of each row among all inputs, including those in `skipped`.  #
        (n,)
        """
        return np.delete(
            np.arange(len(self.X) + len(self.skipped)),
            [skipped.index for skipped in self.skipped],
        )

    @property
    def labels(self) -> list[Any]:
        """The labels of the rows, each once, sorted."""
        return (
            np.unique(np.asarray(self.y)).tolist()
            if self.tags is None
            else list(self.tags)
        )


class PythonInputs:
    """Python values as inputs of one modality, converted on access; a blank text is
    unreadable, as a blank file is.
    """

    def __init__(self, kind: Modality, values: Inputs):
        self.kind, self.values = kind, values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, i: int) -> Any:
        value = self.values[i]
        # an undecoded Hugging Face image
        if isinstance(value, Mapping) and (value.get("bytes") or value.get("path")):
            value = value.get("bytes") or os.fspath(value["path"])
        if isinstance(value, bytes):
            return self.kind.read(value)
        if isinstance(value, os.PathLike) or (
            isinstance(value, str) and not self.kind.typed
        ):
            return self.kind.read(read_file(value))
        item = self.kind.convert(value)
        if self.kind.typed and not str(item).strip():
            raise UnreadableInput("a text", BLANK_REASON)
        return item


def split_of_values(
    values: Any, labels: Any = None, kind: Modality | None = None
) -> Split:
    """Python values, and perhaps their labels, as a split; without a `kind`, the values
    determine the modality.
    """
    blocks: tuple[int, ...] = ()
    whole = None if kind is not None and kind.typed else _kind_of_whole(values, kind)
    if whole is not None:
        kind = whole
    elif (
        isinstance(values, Mapping)
        or hasattr(values, "column_names")
        or hasattr(values, "columns")
    ):
        values, labels, kind, blocks = _table_inputs(values, labels, kind)
    values = values if whole is not None else _column(values)
    kind = kind or _infer_modality(values)
    items = kind.listed(values)
    names = [kind.name_of(value, i) for i, value in enumerate(items)]
    inputs = items if not kind.needs_backbone else PythonInputs(kind, items)
    if labels is None:
        return Split(inputs, NO_LABELS, names, (), kind.name, blocks=blocks)
    tagged = read_tags(_column(labels))
    y = plain_labels(_column(labels) if tagged is None else tagged.sets)
    if len(y) != len(items):
        raise ParameterError(
            f"fit(items, labels): {len(items)} items and {len(y)} labels; the numbers"
            " must be equal."
        )
    return Split(
        inputs,
        y,
        names,
        tagged.labels if tagged else classes_of(y),
        kind.name,
        tags=tagged is not None,
        blocks=blocks,
    )


def _kind_of_whole(values: Any, kind: Modality | None) -> Modality | None:
    """The modality of which one value, such as an array of three axes, holds several
    inputs; None if that is not known before its parts are looked at.
    """
    kinds = [kind] if kind is not None else builtin()
    requested = kind is not None
    return next((k for k in kinds if k.recognises_all(values, requested)), None)


def _infer_modality(values: Any) -> Modality:
    """The modality of values, from the type or the file name of the first ten."""
    if isinstance(values, np.ndarray) and values.ndim == 2 and values.dtype != np.uint8:
        return modality("embedding")
    first = list(values[:10]) if isinstance(values, Sequence | np.ndarray) else [values]
    if first and all(isinstance(value, str) for value in first):
        kind, *others = {of_file(value) for value in first}
        return modality("text") if others or kind is None else kind
    if first and all(isinstance(value, os.PathLike) for value in first):
        return of_file(first[0]) or modality("image")
    kinds = [
        kind
        for kind in map(modality, family.names())
        if first and all(map(kind.recognises, first))
    ]
    if not kinds:
        what = type(first[0]).__name__ if first else "nothing"
        raise ParameterError(
            f"Cannot tell what {what} is; name the backbone that reads it:"
            " Imprinter(backbone=...)."
        )
    return kinds[0]


def _table_inputs(
    table: Any, labels: Any, kind: Modality | None
) -> tuple[Any, Any, Modality, tuple[int, ...]]:
    """The inputs, labels, modality and widths of blocks of a data frame, an Arrow
    table, a Hugging Face data set or a dict of columns.

    Several columns whose cells are embeddings are blocks.
    """
    names = list(
        table
        if isinstance(table, Mapping)
        else getattr(table, "column_names", None) or table.columns
    )
    column = find_label_column(names)
    if labels is None and column is not None:
        labels = table[column]
        names.remove(column)
    composed = _composed_inputs(table, names, labels, kind)
    if composed is not None:
        return *composed, ()
    column = find_column(list(INPUT_COLUMNS), names)
    if column is not None:
        kind = kind or modality(INPUT_COLUMNS[normalised(column)])
        return table[column], labels, kind, ()
    numbers = [name for name in names if normalised(name) not in NAME_COLUMNS]
    columns = [np.asarray(_column(table[name])) for name in numbers]
    has_numbers = bool(columns) and all(c.dtype.kind in "fiu" for c in columns)
    column = find_column(PATH_COLUMNS, names)
    if column is not None:
        paths = _paths_in_column(table[column], kind, has_numbers)
        if paths is not None:
            kind = kind or of_file(paths[0]) or modality("image")
            return paths, labels, kind, ()
    if not has_numbers:
        expected = ", ".join(INPUT_COLUMNS)
        present = ", ".join(map(str, names))
        raise ParameterError(
            f"The table has neither a column {expected} nor only numbers; it has:"
            f" {present}."
        )
    if all(column.ndim == 2 for column in columns):
        X = np.concatenate(columns, axis=1)
        widths = read_blocks([column.shape[1] for column in columns])
        return matrix(X), labels, modality("embedding"), widths
    X = columns[0] if columns[0].ndim == 2 else np.stack(columns, axis=1)
    return matrix(X), labels, modality("embedding"), ()


def _composed_inputs(
    table: Any, names: Sequence[str], labels: Any, kind: Modality | None
) -> tuple[Any, Any, Modality] | None:
    """Inputs that consist of several cells, such as time series, with one label each;
    None if the columns hold none.
    """
    texts = [str(name) for name in names]
    kinds = [kind] if kind is not None else builtin()
    reader = next((k for k in kinds if k.reads_columns(texts, kind is not None)), None)
    if reader is None:
        return None
    columns = {text: _column(table[name]) for text, name in zip(texts, names)}
    inputs = reader.from_columns(columns, kind is not None)
    if labels is not None and len(labels) == len(inputs.owner):
        _, first_rows = np.unique(inputs.owner, return_index=True)
        cells = list(_column(labels))
        labels = [cells[row] for row in first_rows.tolist()]
    return inputs.inputs, labels, reader


def _paths_in_column(
    cells: Any, kind: Modality | None, has_numbers: bool
) -> list[Path] | None:
    """The paths of the inputs; None if they are only the names of rows of numbers."""
    values = list(_column(cells))
    if not values or not all(isinstance(cell, str | os.PathLike) for cell in values):
        return None
    if has_numbers and kind is not None:
        return list(map(Path, values)) if kind.needs_backbone else None
    if has_numbers and of_file(values[0]) is not None:
        raise ParameterError(
            f"The table has both paths, such as {os.fspath(values[0])!r}, and numbers;"
            " leave one out, or name the backbone that reads the files:"
            " Imprinter(backbone=...)."
        )
    return None if has_numbers else list(map(Path, values))


def _column(values: Any) -> Any:
    """A column of pandas, polars, Arrow or torch as a list or an array; anything else
    unchanged.
    """
    if hasattr(values, "cpu"):
        return np.asarray(values.cpu())
    names = (
        ()
        if isinstance(values, np.ndarray | list | tuple)
        else ("to_pylist", "to_list", "tolist")
    )
    convert = next(
        (getattr(values, name) for name in names if hasattr(values, name)), None
    )
    return values if convert is None else convert()


def notices(
    split: Split, rows: Embedded, blank: Sequence[Skipped], backbone: Any
) -> Iterator[str]:
    """Sentences about labelled data, their embeddings, and the blank texts that were
    left out.
    """
    kind, labels, readable = split.kind, split.labels, rows.readable
    yield from split.omissions
    if blank:
        names = first_names([skipped.name for skipped in blank], MAX_NAMED)
        yield f"Left out {count(len(blank), 'blank text')}: {names}."
    if labels.dtype.kind in "iu" and (
        unlabelled := int(np.sum(labels == MISSING_LABEL))
    ):
        subject = f"{kind.count(unlabelled)} {'has' if unlabelled == 1 else 'have'}"
        yield (
            f"{subject} the label -1, which often means 'no label'; here it is a class"
            " like the others."
        )
    with_pipe = [
        label
        for label in split.classes
        if isinstance(label, str) and "|" in label.strip("|")
    ]
    if with_pipe and not split.tags and split.origin:  # the data are a file
        example = printable(with_pipe[0], 60)
        yield (
            f"Labels such as {example!r} are one class each; --separator '|'"
            " (separator='|') reads them as tags."
        )
    if kind.typed:
        yield from _text_notices([split.inputs[i] for i in readable.tolist()], backbone)
    pairs = conflicts(rows.X, labels[readable])
    for pair in readable[np.array(pairs[:MAX_NAMED], dtype=np.intp)].tolist():
        first, second = (
            f"{printable(split.names[i])} ({printable(labels[i], 60)})" for i in pair
        )
        yield f"The same {kind.noun} has two labels: {first} and {second}."
    if len(pairs) > MAX_NAMED:
        yield (
            f"{len(pairs) - MAX_NAMED:,} more pairs of equal {kind.plural} have two"
            " labels; see imprint check."
        )


def _text_notices(texts: Sequence[str], backbone: Any) -> Iterator[str]:
    """Sentences about texts that the backbone truncates, or that are not in its
    language.
    """
    name, tokens = backbone.record.name, backbone.record.tokens
    # a token has at least one character
    long = [text for text in texts if tokens is not None and len(text) > tokens]
    if long and (truncated := backbone.count_truncated(long)):
        yield (
            f"{truncated:,} of {len(texts):,} texts have more than {tokens} tokens;"
            f" {name} ignores the rest."
        )
    beginnings = backbone.cut(texts)
    foreign = (
        sum(map(is_foreign, beginnings)) if backbone.record.language == "en" else 0
    )
    if foreign > len(texts) / 20:
        yield (
            f"{foreign:,} of {len(texts):,} texts do not look English, and {name} was"
            " trained on English; use a multilingual backbone, such as sentence:NAME."
        )


def is_foreign(text: str) -> bool:
    """Whether a text is probably not in English, by its letters and its most frequent
    words.
    """
    words = WORD.findall(text.lower())
    letters = "".join(words)
    if (
        letters
        and sum(unicodedata.name(c, "").startswith("LATIN") for c in letters)
        < len(letters) / 2
    ):
        return True
    foreign = sum(word in FOREIGN_WORDS for word in words)
    return foreign >= 2 and foreign > sum(word in ENGLISH_WORDS for word in words)


def conflicts(X: Array, y: Array) -> list[tuple[int, int]]:
    """Pairs of equal rows that have different labels, in ascending order.

    Rows are compared with their neighbours in the order of one random projection: equal
    rows lie together.
    """
    if len(X) < 2:
        return []
    limit = TOLERANCE * max(float(np.abs(X).max()), 1e-30)
    projection: Array = np.random.default_rng(0).normal(size=(X.shape[1],))
    order = np.argsort(X @ projection.astype(X.dtype), kind="stable")
    first, second = order[:-1], order[1:]
    differ = y[first] != y[second]
    pairs = np.sort(np.stack([first, second], axis=1)[differ], axis=1).tolist()
    return sorted((i, j) for i, j in pairs if np.abs(X[i] - X[j]).max() <= limit)
