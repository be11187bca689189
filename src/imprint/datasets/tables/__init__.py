"""Tables of texts or of embeddings, and folders that hold `train` and `test` as tables.
Tags: several labels per input.

Rows are numbered as a spreadsheet shows them: in `.csv`, `.tsv` and `.xlsx` the header
is row 1; in `.jsonl` a row is a line; in other tables the first row is 1.
"""

import json
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from imprint.core.blocks import read_blocks
from imprint.core.errors import FileError, first_names, reporting_damage
from imprint.core.label_sets import SEPARATOR, from_lists
from imprint.datasets.files import UNREADABLE, FileInputs
from imprint.datasets.split import NO_LABELS, SPLITS, Split, classes_of
from imprint.datasets.tables.composed import kind_of_columns, load_composed
from imprint.datasets.tables.formats import (
    NumberedRow,
    TableBatch,
    batches_of,
    check_encoding,
    not_decodable,
)
from imprint.datasets.tables.layout import TableLayout, choose_layout, to_blocks
from imprint.datasets.tables.values import (
    INTEGER,
    cell_error,
    is_missing,
    quote,
    to_label_array,
)

SUFFIXES = (
    ".csv",
    ".tsv",
    ".jsonl",
    ".parquet",
    ".csv.gz",
    ".tsv.gz",
    ".jsonl.gz",
    ".feather",
    ".json",
    ".xlsx",
)
MAX_ROWS = 10  # that one message names
# cells of a column that is a label
FLAGS = {"": False, "0": False, "1": True, "false": False, "true": True}


def table_suffix(path: str | Path) -> str | None:
    """The suffix in `SUFFIXES` that a path ends in."""
    name = Path(path).name.lower()
    return max((s for s in SUFFIXES if name.endswith(s)), key=len, default=None)


def table_in(folder: Path, split: str) -> Path | None:
    """The table in a folder that is called `train` or `test`."""
    return next(
        (
            path
            for suffix in SUFFIXES
            if (path := folder / f"{split}{suffix}").is_file()
        ),
        None,
    )


def load_table_folder(folder: Path, split: str, **options: Any) -> Split:
    """One split of a folder that holds `train.csv` and `test.csv`, or tables in other
    formats.
    """
    path = table_in(folder, split)
    if path is None:
        raise FileError(
            f"{folder} has no test split; put it there as test.csv or test.jsonl."
        )
    parts = tuple(part for part in SPLITS if table_in(folder, part) is not None)
    return replace(
        load_table(path, None, **options), origin=folder.resolve().name, parts=parts
    )


def load_table(
    path: Path,
    split: str | None,
    *,
    labelled: bool = True,
    label_column: str | None = None,
    text_column: str | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    modality: str | None = None,
) -> Split:
    """One split of a table, or with `split=None` all rows.

    A column `split` assigns rows to splits; without one, all rows are `train`. With a
    `separator`, a cell holds several labels; lists of labels and several columns of
    labels need none.
    """
    if encoding is not None:
        check_encoding(path, table_suffix(path) or "", encoding)
    header = first_row(path, encoding)
    kind = None
    if text_column is None:
        kind = kind_of_columns(header[1], label_column, modality)
    if kind is not None:
        composed = load_composed(
            path,
            list(read_batches(path, None, encoding)),
            kind,
            split,
            requested=modality is not None,
            labelled=labelled,
            label_column=label_column,
        )
        return composed if separator is None else with_tags(composed, separator)
    layout = choose_layout(path, header, label_column, text_column, labelled=labelled)
    parts: set[str] = set()
    rows, unlabelled = array("q"), array("q")  # by number
    names: list[str] = []
    label_cells: list[Any] = []
    texts: list[str] = []
    # Arrow converts a text that is stored once to a new object in every batch
    equal_texts: dict[str, str] = {}
    numbers = array("f")  # grows in place, so that there is one copy of the embeddings
    widths: list[int | None] = [None] * len(layout.inputs)
    for batch in read_batches(path, layout.columns, encoding):
        part_of_row = (
            ["train"] * len(batch.rows)
            if layout.split is None
            else [*map(str, batch.values(layout.split))]
        )
        parts.update(part_of_row)
        batch = batch.select([split in (None, part) for part in part_of_row])
        if layout.label is not None:
            cells = _label_cells(batch, layout)
            has_label = [not is_missing(cell) for cell in cells]
            unlabelled.extend(row for row, has in zip(batch.rows, has_label) if not has)
            label_cells += compress(cells, has_label)
            batch = batch.select(has_label)
        if not batch.rows:
            continue
        rows.extend(batch.rows)
        if layout.name is not None:
            names += map(str, batch.values(layout.name))
        if layout.kind == "text":
            for text in _texts(path, batch, layout.inputs[0]):
                texts.append(equal_texts.setdefault(text, text))
        else:
            blocks = to_blocks(path, batch, layout, widths)
            widths = [block.shape[1] for block in blocks]
            X = np.concatenate(blocks, axis=1) if len(blocks) > 1 else blocks[0]
            numbers.frombytes(np.ascontiguousarray(X).data.cast("B"))
    if not rows and unlabelled:
        raise FileError(f"{path}: no row has a label in the column {layout.label!r}.")
    if not rows:
        raise FileError(
            f"{path} has no {split} split; its rows are {' and '.join(sorted(parts))}."
        )
    inputs: Any = tuple(texts)
    if layout.kind != "text":
        inputs = np.frombuffer(numbers, dtype=np.float32).reshape(len(rows), -1)
        inputs.flags.writeable = False
    y = (
        to_label_array(path, layout.label, label_cells, rows)
        if layout.label is not None
        else NO_LABELS
    )
    left_out = f"({len(unlabelled):,}): {first_names(unlabelled, MAX_ROWS)}"
    table = Split(
        inputs,
        y,
        tuple(names) or [f"{path.name}, row {row}" for row in rows],
        classes_of(y),
        "text" if layout.kind == "text" else "embedding",
        origin=path.name,
        parts=tuple(part for part in SPLITS if part in parts),
        omissions=(
            (f"Left out rows of {path.name} without a label {left_out}.",)
            if unlabelled
            else ()
        ),
        blocks=read_blocks(widths) if layout.kind == "list" else (),
    )
    # such as ["joy", "love"]
    has_lists = len(y) > 0 and all(
        str(label).startswith("[") for label in table.classes
    )
    return (
        with_tags(table, separator or SEPARATOR)
        if separator or layout.tags or has_lists
        else table
    )


def _label_cells(batch: TableBatch, layout: TableLayout) -> list[Any]:
    """The cells of the labels; a list of labels as JSON."""
    if layout.tags:
        return [
            json.dumps(_row_tags(layout.tags, row))
            for row in zip(*map(batch.values, layout.tags))
        ]
    return [
        json.dumps(cell) if isinstance(cell, list) else cell
        for cell in batch.values(str(layout.label))
    ]


def _row_tags(names: Sequence[str], values: Sequence[Any]) -> list[str]:
    """The labels in several columns of a row. A column of 0 and 1 is a label; other
    cells are labels.
    """
    texts = ["" if is_missing(value) else str(value).strip() for value in values]
    flags = [FLAGS.get(text.lower().removesuffix(".0")) for text in texts]
    return [
        name if flag else text
        for name, text, flag in zip(names, texts, flags)
        if flag is not False
    ]


def _texts(path: Path, batch: TableBatch, column: str) -> list[str]:
    values = batch.values(column)
    for row, value in zip(batch.rows, values):
        if not isinstance(value, str):
            problem = (
                "there is no text" if value is None else f"{quote(value)} is not a text"
            )
            raise cell_error(path, row, column, problem)
    return values


def read_batches(
    path: Path, columns: Sequence[str] | None = None, encoding: str | None = None
) -> Iterator[TableBatch]:
    """The batches of a table; of a Parquet file, only the given `columns`. The
    `encoding` of a text file is UTF-8 by default.
    """
    suffix = table_suffix(path) or path.suffix.lower()
    with reporting_damage(path, "table"):
        try:
            yield from batches_of(path, suffix, columns, encoding)
        except ValueError as e:  # of Python or of Arrow
            if isinstance(e, UnicodeDecodeError) or "UTF8" in str(e):
                raise not_decodable(path, encoding) from None
            raise


def read_rows(path: Path, encoding: str | None = None) -> Iterator[NumberedRow]:
    """The rows of a table one by one: their numbers, and their values by column."""
    for batch in read_batches(path, encoding=encoding):
        values = {name: batch.values(name) for name in batch.columns}
        for i, number in enumerate(batch.rows):
            yield number, {name: column[i] for name, column in values.items()}


def first_row(path: Path, encoding: str | None = None) -> NumberedRow:
    """The first row, with exactly the columns that it has."""
    row = next(read_rows(path, encoding), None)
    if row is None:
        raise FileError(f"{path} has no rows.")
    return row


def with_tags(split: Split, separator: str) -> Split:
    """The inputs with tags: labels are split at the separator, and equal files in
    several folders are one input.
    """
    by_cell = {
        label: _split_cell(str(label), separator, split.origin)
        for label in split.classes
    }
    cells = [by_cell[label] for label in split.labels.tolist()]
    if isinstance(split.inputs, FileInputs):
        groups: dict[str, list[int]] = {}
        # an unreadable file equals no other
        for i, digest in enumerate(split.inputs.digests()):
            groups.setdefault(
                f"{digest} {i}" if digest == UNREADABLE else digest, []
            ).append(i)
        cells = [
            sorted({label for i in group for label in cells[i]})
            for group in groups.values()
        ]
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
    if not isinstance(items, list) or not all(
        isinstance(item, str | int) and str(item).strip() for item in items
    ):
        raise FileError(
            f'{origin}: {quote(cell)} is not a list of labels, such as ["joy", "love"].'
        )
    return [str(item).strip() for item in items]
