"""The role of each column of a table, and the embeddings in it as a float32 matrix.

Arrow converts columns fast, but does not name the cell that is wrong. What it cannot convert is converted cell by cell,
so that an error names the cell.
"""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from imprint.core.errors import FileError
from imprint.core.types import Array
from imprint.datasets.tables.formats import NumberedRow
from imprint.datasets.tables.reading import TableBatch
from imprint.datasets.tables.values import Cell, is_number, number_of, numbers_of, quote, quote_names

TEXT_COLUMN, SPLIT_COLUMN = "text", "split"
LABEL_COLUMNS = ("label", "labels", "category")
NAME_COLUMNS = ("name", "path", "file", "filename", "id", "index", "", "unnamed: 0", "__index_level_0__")
"""Columns that name a row, in upper or lower case; pandas writes its index as one of the last three."""


@dataclass(frozen=True)
class TableLayout:
    """Which columns hold what. `inputs` is one column of texts or of lists, or the columns of numbers in order."""

    kind: Literal["text", "numbers", "list"]
    inputs: tuple[str, ...]
    known: frozenset[str]  # every column of the first row, read or not
    label: str | None
    split: str | None
    name: str | None
    tags: tuple[str, ...]  # the columns of labels where there are several; then `label` is their description

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that is read."""
        others = (*(self.tags or (self.label,)), self.split, self.name)
        return self.inputs + tuple(column for column in others if column is not None)


def choose_layout(
    path: Path, first: NumberedRow, *, labelled: bool, label_column: str | None, text_column: str | None
) -> TableLayout:
    """The layout of a table by its column names and its first row."""
    number, values = first
    label = label_column or next((c for c in LABEL_COLUMNS if c in values), None)
    several = () if label is None or label in values else tuple(c.strip() for c in label.split(","))
    tags = several if len(several) > 1 else ()
    if tags or label_column is not None or (labelled and label is None):
        for column in tags or (label or LABEL_COLUMNS[0],):
            _check_column(path, column, list(values), "label_column")
    if text_column is not None:
        _check_column(path, text_column, list(values), "text_column")
    text = text_column or (TEXT_COLUMN if TEXT_COLUMN in values else None)
    split = SPLIT_COLUMN if SPLIT_COLUMN in values and SPLIT_COLUMN not in (label, text) else None
    names = [c for c in values if c.lower() in NAME_COLUMNS and c not in (label, text)]
    kind: Literal["text", "numbers", "list"] = "text"
    inputs: tuple[str, ...] = (text or "",)
    if text is None:
        kind, inputs = _number_columns(
            path, number, {c: v for c, v in values.items() if c not in (label, split, *names, *tags)}
        )
    roles = (label if labelled else None, split, next(iter(names), None), tags if labelled else ())
    return TableLayout(kind, inputs, frozenset(values), *roles)


def _number_columns(
    path: Path, number: int, values: Mapping[str, Any]
) -> tuple[Literal["numbers", "list"], tuple[str, ...]]:
    """The columns of the embeddings, by their values in the first row."""
    lists = [c for c, v in values.items() if isinstance(v, list) or (isinstance(v, str) and v.lstrip()[:1] == "[")]
    if len(lists) > 1:
        raise FileError(
            f"{path} has more than one column of lists: {quote_names(lists)}; keep the one with the embeddings."
        )
    if lists:
        return "list", tuple(lists)
    if not values:
        raise FileError(f"{path} has neither a column 'text' nor columns of numbers.")
    for column, value in values.items():
        if not is_number(value):
            raise Cell(path, number, column).error(_not_a_number(value))
    return "numbers", tuple(values)


def _not_a_number(value: Any) -> str:
    if value is None or value == "":
        return "there is no number"
    if isinstance(value, dict):
        return "it is nested; a column must hold numbers, lists of numbers, or texts"
    hint = "; if it holds the texts, name it as text_column" if isinstance(value, str) else ""
    return f"{quote(value)} is not a number{hint}"


def _check_column(path: Path, column: str, columns: Sequence[str], option: str) -> None:
    if column in columns:
        return
    by_lower = {c.lower(): c for c in columns}
    similar = difflib.get_close_matches(column.lower(), by_lower, 1, cutoff=0.5)
    advice = f"Did you mean {by_lower[similar[0]]!r}?" if similar else f"Name another as {option}."
    raise FileError(f"{path} has no column {column!r}. {advice} It has: {quote_names(columns)}.")


def matrix_of(path: Path, batch: TableBatch, layout: TableLayout, width: int | None) -> Array:
    """The embeddings of a batch, (rows, width); `width` is that of the batches before."""
    if layout.kind == "numbers":
        _check_columns(path, batch, layout)
    arrays = [batch.columns.get(column) for column in layout.inputs]
    X = None if any(isinstance(a, list) or a is None for a in arrays) else _from_arrow(arrays, layout.kind)
    if X is not None and width in (None, X.shape[1]) and np.isfinite(X).all():
        return X
    rows: list[list[float]] = []
    for number, *values in zip(batch.rows, *(batch.values(column) for column in layout.inputs)):
        cells = [Cell(path, number, column) for column in layout.inputs]
        if layout.kind == "numbers":
            rows.append([number_of(value, cell) for value, cell in zip(values, cells)])
        else:
            rows.append(numbers_of(values[0], cells[0], width))
            width = len(rows[-1])
    return np.array(rows, dtype=np.float32)


def _check_columns(path: Path, batch: TableBatch, layout: TableLayout) -> None:
    """Refuse numbers in columns that the first row does not have: in JSON Lines, each row names its own."""
    for column in sorted(batch.columns.keys() - layout.known):
        row = next(number for number, value in zip(batch.rows, batch.values(column)) if value is not None)
        raise Cell(path, row, column).error("the first row has no such column")


def _from_arrow(arrays: list[Any], kind: str) -> Array | None:
    """The matrix in Arrow arrays; None if they hold anything but numbers, or lists of one length."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        with np.errstate(over="ignore"):
            if kind == "numbers":
                return np.stack([_floats(array) for array in arrays], axis=1, dtype=np.float32)
            widths = pc.unique(pc.list_value_length(arrays[0])).to_pylist()
            if len(widths) != 1 or not widths[0]:
                return None
            return _floats(arrays[0].flatten()).astype(np.float32).reshape(-1, widths[0])
    except (pa.ArrowException, TypeError):
        return None


def _floats(array: Any) -> Array:
    """The numbers in an Arrow array; raises TypeError if it holds anything else, or missing values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if pa.types.is_string(kind):
        array = pc.cast(pc.utf8_trim_whitespace(array), pa.float64())
    elif array.null_count or not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        raise TypeError
    elif kind not in (pa.float32(), pa.float64()):
        array = array.cast(pa.float64(), safe=False)
    numbers: Array = array.to_numpy(zero_copy_only=False)
    return numbers
