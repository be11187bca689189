"""The role of each column of a table, and its embeddings as a float32 matrix.

Arrow converts columns fast, but its errors do not name a cell. Columns that it cannot
convert are therefore converted cell by cell.
"""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from imprint.core.arrays import Array
from imprint.core.errors import FileError
from imprint.datasets.columns import (
    LABEL_COLUMNS,
    NAME_COLUMNS,
    SPLIT_COLUMN,
    TEXT_COLUMN,
    find_column,
    find_label_column,
    normalised,
)
from imprint.datasets.tables.formats import NumberedRow, TableBatch
from imprint.datasets.tables.values import (
    cell_error,
    quote_names,
    to_number,
    to_numbers,
)

InputKind: TypeAlias = Literal["text", "numbers", "list"]


@dataclass(frozen=True)
class TableLayout:
    """Which columns hold what. `inputs` is one column of texts, columns of lists, which
    are blocks of embeddings, or the columns of numbers in order.
    """

    kind: InputKind
    inputs: tuple[str, ...]
    all_columns: frozenset[str]  # of the first row, read or not
    label: str | None
    split: str | None
    name: str | None
    # the columns of labels, if there are several; `label` then lists them
    tags: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that is read."""
        optional = (*(self.tags or (self.label,)), self.split, self.name)
        return self.inputs + tuple(column for column in optional if column is not None)


def choose_layout(
    path: Path,
    first_row: NumberedRow,
    label_column: str | None,
    text_column: str | None,
    *,
    labelled: bool,
) -> TableLayout:
    """The layout of a table, by its column names and its first row."""
    number, values = first_row
    default = LABEL_COLUMNS[0] if labelled else None
    label = label_column or find_label_column(values, labelled=labelled) or default
    has_tags = label is not None and label not in values and "," in label
    tags = tuple(column.strip() for column in str(label).split(",")) if has_tags else ()
    for column, option in (
        *((column, "label_column") for column in tags or (label,)),
        (text_column, "text_column"),
    ):
        if column is not None and column not in values:
            raise _no_column(path, column, list(values), option)
    text = text_column or find_column([TEXT_COLUMN], values)
    without_role = [column for column in values if column not in (label, text)]
    split = find_column([SPLIT_COLUMN], without_role)
    names = [column for column in without_role if normalised(column) in NAME_COLUMNS]
    kind: InputKind = "text"
    inputs: tuple[str, ...] = (text or "",)
    if text is None:
        roles = (label, split, *names, *tags)
        candidates = {
            column: value for column, value in values.items() if column not in roles
        }
        kind, inputs = _number_columns(path, number, candidates)
    name = names[0] if names else None
    if not labelled:
        label, tags = None, ()
    return TableLayout(kind, inputs, frozenset(values), label, split, name, tags)


def _number_columns(
    path: Path, number: int, values: Mapping[str, Any]
) -> tuple[InputKind, tuple[str, ...]]:
    """The columns of the embeddings, by their values in the first row."""
    lists = [
        column
        for column, value in values.items()
        if isinstance(value, list) or str(value).lstrip()[:1] == "["
    ]
    if len(lists) > 1 and len(lists) < len(values):
        others = [column for column in values if column not in lists]
        raise FileError(
            f"{path} has several columns of lists, {quote_names(lists)}, and"
            f" {quote_names(others)}; keep those with the embeddings."
        )
    if lists:
        return "list", tuple(lists)
    if not values:
        raise FileError(f"{path} has neither a column 'text' nor columns of numbers.")
    for column, value in values.items():
        try:
            to_number(value)
        except ValueError as e:
            hint = (
                "; if it holds the texts, name it as text_column"
                if isinstance(value, str) and value
                else ""
            )
            raise cell_error(path, number, column, f"{e}{hint}") from None
    return "numbers", tuple(values)


def _no_column(
    path: Path, column: str, columns: Sequence[str], option: str
) -> FileError:
    by_lower = {name.lower(): name for name in columns}
    similar = difflib.get_close_matches(column.lower(), by_lower, 1, cutoff=0.5)
    advice = (
        f"Did you mean {by_lower[similar[0]]!r}?"
        if similar
        else f"Name another as {option}."
    )
    return FileError(
        f"{path} has no column {column!r}. {advice} It has: {quote_names(columns)}."
    )


def to_blocks(
    path: Path, batch: TableBatch, layout: TableLayout, widths: Sequence[int | None]
) -> list[Array]:
    """The embeddings of a batch, (rows, width) for each block; `widths` are those of
    the batches before.

    Columns of numbers are one block, and each column of lists is one.
    """
    if layout.kind == "numbers":
        return [_to_matrix(path, batch, layout, widths[0])]
    blocks = []
    for column, width in zip(layout.inputs, widths):
        single = replace(layout, inputs=(column,))
        blocks.append(_to_matrix(path, batch, single, width))
    return blocks


def _to_matrix(
    path: Path, batch: TableBatch, layout: TableLayout, width: int | None
) -> Array:
    if layout.kind == "numbers":
        # in JSON Lines, each row names its columns
        for column in sorted(batch.columns.keys() - layout.all_columns):
            for number, value in zip(batch.rows, batch.values(column)):
                if value is not None:
                    raise cell_error(
                        path, number, column, "the first row has no such column"
                    )
    arrays = [batch.column(name) for name in layout.inputs]
    X = (
        None
        if any(isinstance(array, list) for array in arrays)
        else _from_arrow(arrays, layout.kind)
    )
    if X is not None and width in (None, X.shape[1]) and np.isfinite(X).all():
        return X
    rows: list[list[float]] = []
    for number, *values in zip(
        batch.rows, *(batch.values(column) for column in layout.inputs)
    ):
        row: list[float] = []
        for column, value in zip(layout.inputs, values):
            try:
                row += (
                    to_numbers(value, width)
                    if layout.kind == "list"
                    else [to_number(value)]
                )
            except ValueError as e:
                raise cell_error(path, number, column, e) from None
        rows.append(row)
        width = len(row)
    return np.array(rows, dtype=np.float32)


def _from_arrow(arrays: list[Any], kind: InputKind) -> Array | None:
    """The matrix in Arrow arrays; None if they hold anything but numbers, or lists of
    one length.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        with np.errstate(over="ignore"):
            if kind == "numbers":
                return np.stack(
                    [_floats(array) for array in arrays], axis=1, dtype=np.float32
                )
            widths = pc.unique(pc.list_value_length(arrays[0])).to_pylist()
            if len(widths) != 1 or not widths[0]:
                return None
            return (
                _floats(arrays[0].flatten()).astype(np.float32).reshape(-1, widths[0])
            )
    except (pa.ArrowException, TypeError):
        return None


def _floats(array: Any) -> Array:
    """The numbers in an Arrow array; anything else, or a missing value, raises an error
    of Arrow or TypeError.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if array.null_count or pa.types.is_boolean(array.type):
        raise TypeError
    if pa.types.is_string(array.type):
        array = pc.utf8_trim_whitespace(array)
    if array.type != pa.float32():
        array = array.cast(pa.float64(), safe=False)
    numbers: Array = array.to_numpy(zero_copy_only=False)
    return numbers
