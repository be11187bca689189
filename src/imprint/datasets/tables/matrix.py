"""The embeddings in a batch of rows as a float32 matrix: fast through Arrow, otherwise cell by cell.

Arrow does not tell which cell is wrong. Whatever it cannot convert is converted cell by cell, which names the cell or
succeeds.
"""

from pathlib import Path
from typing import Any

import numpy as np

from imprint.core.types import Array
from imprint.datasets.tables.layout import TableLayout
from imprint.datasets.tables.reading import TableBatch
from imprint.datasets.tables.values import Cell, number_of, numbers_of


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
    """The numbers in an Arrow array; raises TypeError where it holds anything else, or nothing."""
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
