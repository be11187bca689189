"""Tables of texts or of embeddings, and folders that hold `train` and `test` as tables."""

import json
from array import array
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from imprint.core.errors import FileError
from imprint.core.label_sets import SEPARATOR
from imprint.datasets.split import NO_LABELS, SPLITS, RowNames, Split, classes_of
from imprint.datasets.tables.layout import TableLayout, choose_layout, matrix_of
from imprint.datasets.tables.reading import SUFFIXES, TableBatch, first_row, read_batches, table_suffix
from imprint.datasets.tables.values import Cell, LabelColumn, is_missing, quote
from imprint.datasets.tags import holds_lists, list_cell, with_tags

NAMED = 10  # rows in one message

__all__ = ["SUFFIXES", "has_tables", "load_table", "load_table_folder", "table_suffix"]


def load_table(
    path: Path,
    split: str | None,
    *,
    labelled: bool = True,
    label_column: str | None = None,
    text_column: str | None = None,
    separator: str | None = None,
) -> Split:
    """One split of a table, or with `split=None` all rows.

    A column `split` assigns rows to splits; without one, all rows are `train`. With a `separator`, a cell holds several
    labels; lists of labels and several columns of labels need none.
    """
    first = first_row(path)
    layout = choose_layout(path, first, labelled=labelled, label_column=label_column, text_column=text_column)
    table = _TableRows(path, layout)
    for batch in read_batches(path, layout.columns):
        table.add(batch, split)
    if not table.rows and table.unlabelled:
        raise FileError(f"{path}: no row has a label in the column {layout.label!r}.")
    if not table.rows:
        raise FileError(f"{path} has no {split} split; its rows are {' and '.join(sorted(table.parts))}.")
    rows = table.as_split()
    return with_tags(rows, separator or SEPARATOR) if separator or layout.tags or holds_lists(rows) else rows


class _TableRows:
    """The rows of one split, collected from batches."""

    def __init__(self, path: Path, layout: TableLayout):
        self.path, self.layout = path, layout
        self.labels = LabelColumn(path, layout.label) if layout.label is not None else None
        self.names: list[str] = []
        self.rows = array("q")
        self.unlabelled: list[int] = []
        self.parts: set[str] = set()
        self.texts: list[str] = []
        self.embeddings = array("f")  # grows in place, so that there is one copy of the rows
        self.width: int | None = None

    def add(self, batch: TableBatch, split: str | None) -> None:
        """Append the rows of a batch that belong to a split and have a label."""
        parts = ["train"] * len(batch.rows)
        if self.layout.split is not None:
            parts = [str(part) for part in batch.values(self.layout.split)]
        self.parts.update(parts)
        selected = [split in (None, part) for part in parts]
        if self.labels is not None:
            cells = self._label_cells(batch)
            labelled = [not is_missing(value) for value in cells]
            self.unlabelled += compress(batch.rows, (s and not has for s, has in zip(selected, labelled)))
            selected = [s and has for s, has in zip(selected, labelled)]
        rows = list(compress(batch.rows, selected))
        if self.layout.kind == "text":
            self._add_texts(rows, list(compress(batch.values(self.layout.inputs[0]), selected)))
        else:
            X = matrix_of(self.path, batch, self.layout, self.width)
            self.width = X.shape[1] if len(X) else self.width
            if rows:
                X = np.ascontiguousarray(X if len(rows) == len(X) else X[selected])
                self.embeddings.frombytes(X.data.cast("B"))
        self.rows.extend(rows)
        if self.labels is not None:
            self.labels.extend(list(compress(cells, selected)), rows)
        if self.layout.name is not None:
            self.names += map(str, compress(batch.values(self.layout.name), selected))

    def _add_texts(self, rows: list[int], values: list[Any]) -> None:
        for row, value in zip(rows, values):
            if not isinstance(value, str):
                problem = "there is no text" if value is None else f"{quote(value)} is not a text"
                raise Cell(self.path, row, self.layout.inputs[0]).error(problem)
        self.texts += values

    def _label_cells(self, batch: TableBatch) -> list[Any]:
        """The cells of the labels; a list of labels as JSON."""
        if self.layout.tags:
            columns = [batch.values(column) for column in self.layout.tags]
            return [list_cell(self.layout.tags, row) for row in zip(*columns)]
        values = batch.values(str(self.layout.label))
        return [json.dumps(value) if isinstance(value, list) else value for value in values]

    def as_split(self) -> Split:
        """The collected rows."""
        inputs: Any = tuple(self.texts)
        if self.layout.kind != "text":
            inputs = np.frombuffer(self.embeddings, dtype=np.float32).reshape(len(self.rows), -1)
            inputs.flags.writeable = False
        labels = self.labels.array() if self.labels is not None else NO_LABELS
        more = f" and {len(self.unlabelled) - NAMED:,} more" if len(self.unlabelled) > NAMED else ""
        rows = f"({len(self.unlabelled):,}): {', '.join(map(str, self.unlabelled[:NAMED]))}{more}"
        return Split(
            inputs,
            labels,
            tuple(self.names) or RowNames(f"{self.path.name}, row ", self.rows),
            classes_of(labels),
            "text" if self.layout.kind == "text" else "embedding",
            origin=self.path.name,
            parts=tuple(part for part in SPLITS if part in self.parts),
            omissions=(f"Left out rows of {self.path.name} without a label {rows}.",) if self.unlabelled else (),
        )


def has_tables(folder: Path) -> bool:
    """Whether a folder holds a table called `train`."""
    return _table(folder, "train") is not None


def load_table_folder(folder: Path, split: str, **options: Any) -> Split:
    """One split of a folder that holds `train.csv` and `test.csv`, or the same as another kind of table."""
    path = _table(folder, split)
    if path is None:
        raise FileError(f"{folder} has no test split; put it there as test.csv or test.jsonl.")
    parts = tuple(part for part in SPLITS if _table(folder, part) is not None)
    return replace(load_table(path, None, **options), origin=folder.resolve().name, parts=parts)


def _table(folder: Path, split: str) -> Path | None:
    return next((p for s in SUFFIXES if (p := folder / f"{split}{s}").is_file()), None)
