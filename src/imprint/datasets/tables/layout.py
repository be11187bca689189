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
from imprint.datasets.tables.values import Cell, is_number, number_of, numbers_of, short, some

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
    tags: tuple[str, ...] = ()  # the columns of labels where there are several; then `label` is their description

    @property
    def others(self) -> tuple[str, ...]:
        """The columns that are read in addition to the inputs."""
        labels = self.tags or (self.label,)
        return tuple(c for c in (*labels, self.split, self.name) if c is not None)

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that is read."""
        return self.inputs + self.others


def choose_layout(
    path: Path, first: NumberedRow, *, labelled: bool, label_column: str | None, text_column: str | None
) -> TableLayout:
    """The layout of a table by its column names and its first row."""
    number, values = first
    columns = list(values)
    label = label_column or next((c for c in LABEL_COLUMNS if c in values), None)
    several = [] if label in (None, *values) else [c.strip() for c in str(label).split(",")]
    for column in several if len(several) > 1 else ():
        _check_column(path, column, columns, "label_column")
    if len(several) < 2 and (label_column is not None or (labelled and label is None)):
        _check_column(path, label or LABEL_COLUMNS[0], columns, "label_column")
    text = text_column or (TEXT_COLUMN if TEXT_COLUMN in values else None)
    if text_column is not None:
        _check_column(path, text_column, columns, "text_column")
    split = SPLIT_COLUMN if SPLIT_COLUMN in values and SPLIT_COLUMN not in (label, text) else None
    names = [c for c in columns if c.lower() in NAME_COLUMNS and c not in (label, text)]
    roles: dict[str, Any] = {
        "known": frozenset(columns),
        "label": label if labelled else None,
        "split": split,
        "name": next(iter(names), None),
        "tags": tuple(several) if labelled and len(several) > 1 else (),
    }
    if text is not None:
        return TableLayout("text", (text,), **roles)
    rest = {c: v for c, v in values.items() if c not in (label, split, *names, *several)}
    return _of_numbers(path, number, rest, roles)


def _of_numbers(path: Path, number: int, values: Mapping[str, Any], roles: dict[str, Any]) -> TableLayout:
    lists = [c for c, v in values.items() if _is_list(v)]
    if len(lists) > 1:
        raise FileError(f"{path} has more than one column of lists: {some(lists)}; keep the one with the embeddings.")
    if lists:
        return TableLayout("list", tuple(lists), **roles)
    if not values:
        raise FileError(f"{path} has neither a column 'text' nor columns of numbers.")
    for column, value in values.items():
        if not is_number(value):
            raise FileError(f"{path}, row {number}, column {short(column)}: {_not_a_number(value)}.")
    return TableLayout("numbers", tuple(values), **roles)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) or (isinstance(value, str) and value.lstrip().startswith("["))


def _not_a_number(value: Any) -> str:
    if value is None or value == "":
        return "there is no number"
    if isinstance(value, dict):
        return "it is nested; a column must hold numbers, lists of numbers, or texts"
    hint = "; if it holds the texts, name it as text_column" if isinstance(value, str) else ""
    return f"{short(value)} is not a number{hint}"


def _check_column(path: Path, column: str, columns: Sequence[str], option: str) -> None:
    if column in columns:
        return
    by_lower = {c.lower(): c for c in columns}
    similar = difflib.get_close_matches(column.lower(), by_lower, 1, cutoff=0.5)
    advice = f"Did you mean {by_lower[similar[0]]!r}?" if similar else f"Name another as {option}."
    raise FileError(f"{path} has no column {column!r}. {advice} It has: {some(columns)}.")


def matrix_of(path: Path, batch: TableBatch, layout: TableLayout, width: int | None) -> Array:
    """The embeddings of a batch, (rows, width); `width` is that of the batches before."""
    if layout.kind == "numbers":
        _check_columns(path, batch, layout)
    arrays = [batch.columns.get(column) for column in layout.inputs]
    X = None if any(isinstance(a, list) or a is None for a in arrays) else _from_arrow(arrays, layout.kind)
    if X is not None and width in (None, X.shape[1]) and np.isfinite(X).all():
        return X
    columns = [batch.values(column) for column in layout.inputs]
    if layout.kind == "numbers":
        return np.array(
            [
                [number_of(v, Cell(path, number, c)) for c, v in zip(layout.inputs, values)]
                for number, *values in zip(batch.rows, *columns)
            ],
            dtype=np.float32,
        )
    rows: list[list[float]] = []
    for number, value in zip(batch.rows, columns[0]):
        rows.append(numbers_of(value, Cell(path, number, layout.inputs[0]), width))
        width = len(rows[-1])
    return np.array(rows, dtype=np.float32)


def _check_columns(path: Path, batch: TableBatch, layout: TableLayout) -> None:
    """Refuse numbers in columns that the first row does not have: in JSON Lines, each row names its own."""
    for column in sorted(batch.columns.keys() - layout.known):
        row = next(number for number, value in zip(batch.rows, batch.values(column)) if value is not None)
        raise Cell(path, row, column).refuse("the first row has no such column")


def _from_arrow(arrays: list[Any], kind: str) -> Array | None:
    """The matrix in Arrow arrays; None if they hold anything but numbers, or lists of one length."""
    import pyarrow as pa

    try:
        if kind == "list":
            return _from_lists(arrays[0])
        X = np.empty((len(arrays[0]), len(arrays)), dtype=np.float32)
        with np.errstate(over="ignore"):
            for j, array in enumerate(arrays):
                X[:, j] = _floats(array)
    except (pa.ArrowException, TypeError):
        return None
    return X


def _from_lists(array: Any) -> Array | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    is_list = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if array.null_count or not any(matches(array.type) for matches in is_list):
        return None
    widths = pc.unique(pc.list_value_length(array)).to_pylist()
    if len(widths) != 1 or not widths[0]:
        return None
    with np.errstate(over="ignore"):
        return _floats(array.flatten()).astype(np.float32).reshape(len(array), widths[0])


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
