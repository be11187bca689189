"""Embeddings in tables, read by Arrow in blocks: fast, and silent about what it does not like.

Whatever is unusual raises `Doubt`; the rows are then read one by one, which finds the mistake or reads them after all.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from imprint.core.types import Array
from imprint.datasets.tables.layout import Layout
from imprint.datasets.tables.rows import Row, delimiter_of, parquet_batches, read_rows
from imprint.datasets.tables.values import Place, numbers_of, text_of

CELLS = 1 << 21  # numbers in a block of Parquet
BYTES = 1 << 23  # of text in a block of CSV; a row must fit
ROWS = 1024  # in a block that is read row by row


class Doubt(Exception):  # noqa: N818 - it never leaves the package
    """This block is not as simple as it must be."""


class Block(NamedTuple):
    """Rows that follow one another: their numbers in the file, their inputs, and the columns beside them."""

    rows: Sequence[int]
    inputs: Any  # float32 (n, d), or a list of texts
    beside: dict[str, list[Any]]

    def only(self, kept: list[bool]) -> "Block":
        """The block without the rows that are not kept."""
        if all(kept):
            return self
        inputs = self.inputs[kept] if isinstance(self.inputs, np.ndarray) else list(compress(self.inputs, kept))
        beside = {name: list(compress(column, kept)) for name, column in self.beside.items()}
        return Block(list(compress(self.rows, kept)), inputs, beside)


def fast_blocks(path: Path, layout: Layout) -> Iterator[Block]:
    """The blocks of a table of embeddings; raises `Doubt` where there is no fast way."""
    suffix = path.suffix.lower()
    if suffix == ".parquet" and layout.kind != "text":
        return _parquet_blocks(path, layout)
    if suffix in (".csv", ".tsv") and layout.kind == "numbers":
        return _csv_blocks(path, layout)
    raise Doubt


def careful_blocks(path: Path, layout: Layout) -> Iterator[Block]:
    """The blocks of any table, with errors that name row and column."""
    gathered: list[Row] = []
    inputs: list[Any] = []
    width: int | None = None
    for row in read_rows(path, layout.columns):
        if layout.kind == "text":
            column = layout.inputs[0]
            inputs.append(text_of(row[1].get(column), Place(path, row[0], column)))
        else:
            inputs.append(np.array(numbers_of(path, row, layout, width), dtype=np.float32))
            width = len(inputs[-1])
        gathered.append(row)
        if len(inputs) == ROWS:
            yield _block(gathered, inputs, layout)
            gathered, inputs = [], []
    if inputs:
        yield _block(gathered, inputs, layout)


def _block(rows: list[Row], inputs: list[Any], layout: Layout) -> Block:
    beside = {c: [values.get(c) for _, values in rows] for c in layout.beside}
    return Block([number for number, _ in rows], inputs if layout.kind == "text" else np.stack(inputs), beside)


def _parquet_blocks(path: Path, layout: Layout) -> Iterator[Block]:
    start, widths = 1, set[int]()
    for batch in parquet_batches(path, max(64, CELLS // max(len(layout.inputs), 512)), layout.columns):
        block = _arrow_block(batch, layout, start)
        widths.add(block.inputs.shape[1])
        if len(widths) > 1:
            raise Doubt
        yield block
        start += len(batch)


def _csv_blocks(path: Path, layout: Layout) -> Iterator[Block]:
    import pyarrow as pa
    from pyarrow import csv

    with open(path, encoding="utf-8-sig", newline="") as f:
        delimiter = delimiter_of(path, f.readline())
    kinds = {c: pa.float32() if c in layout.inputs else pa.string() for c in layout.known}
    try:
        with csv.open_csv(
            path,
            csv.ReadOptions(block_size=BYTES),
            csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=False),
            csv.ConvertOptions(column_types=kinds, include_columns=layout.columns, null_values=[]),
        ) as reader:
            start = 2
            for batch in reader:
                yield _arrow_block(batch, layout, start)
                start += len(batch)
    except (pa.ArrowException, UnicodeDecodeError) as e:
        raise Doubt from e


def _arrow_block(batch: Any, layout: Layout, start: int) -> Block:
    import pyarrow as pa

    try:
        columns = [batch.column(batch.schema.get_field_index(c)) for c in layout.inputs]
        X = _lists(columns[0]) if layout.kind == "list" else _numbers(columns)
    except pa.ArrowException as e:
        raise Doubt from e
    if not math.isfinite(float(np.abs(X).max(initial=0))):
        raise Doubt
    lists = {c: batch.column(batch.schema.get_field_index(c)).to_pylist() for c in layout.beside}
    return Block(range(start, start + len(X)), X, lists)


def _numbers(columns: list[Any]) -> Array:
    X = np.empty((len(columns[0]), len(columns)), dtype=np.float32)
    for j, column in enumerate(columns):
        X[:, j] = _floats(column)
    return X


def _lists(column: Any) -> Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if column.null_count or not (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    ):
        raise Doubt
    values = _floats(column.flatten())
    widths = pc.unique(pc.list_value_length(column)).to_pylist()
    if len(widths) > 1 or not widths or not widths[0]:
        raise Doubt
    return values.reshape(len(column), widths[0])


def _floats(column: Any) -> Array:
    import pyarrow as pa

    kind = column.type
    plain = pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)
    if column.null_count or not plain:
        raise Doubt
    floats = column if kind == pa.float32() else column.cast(pa.float32(), safe=False)
    found: Array = floats.to_numpy(zero_copy_only=False)
    return found
