"""The role of each column of a table: texts or numbers, labels, names, splits."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from imprint.core.errors import FileError
from imprint.datasets.tables.reading import NumberedRow
from imprint.datasets.tables.values import is_number, short, some

TEXT_COLUMN, SPLIT_COLUMN = "text", "split"
LABEL_COLUMNS = ("label", "category")
NAME_COLUMNS = ("name", "path", "file", "filename", "id", "index", "", "unnamed: 0", "__index_level_0__")
"""Columns that name a row, in any case of letters; the last three are how pandas writes its index."""


@dataclass(frozen=True)
class TableLayout:
    """Which columns hold what. `inputs` is one column of texts or of lists, or the columns of numbers in order."""

    kind: Literal["text", "numbers", "list"]
    inputs: tuple[str, ...]
    known: frozenset[str]  # every column of the first row, read or not
    label: str | None
    split: str | None
    name: str | None

    @property
    def others(self) -> tuple[str, ...]:
        """The columns that are read in addition to the inputs."""
        return tuple(c for c in (self.label, self.split, self.name) if c is not None)

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
    if label_column is not None or (labelled and label is None):
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
    }
    if text is not None:
        return TableLayout("text", (text,), **roles)
    rest = {c: v for c, v in values.items() if c not in (label, split, *names)}
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
    return f"{short(value)} is no number{hint}"


def _check_column(path: Path, column: str, columns: Sequence[str], option: str) -> None:
    if column in columns:
        return
    by_lower = {c.lower(): c for c in columns}
    near = difflib.get_close_matches(column.lower(), by_lower, 1, cutoff=0.5)
    hint = f" Did you mean {by_lower[near[0]]!r}?" if near else ""
    advice = "" if near else f" Name another as {option}."
    raise FileError(f"{path} has no column {column!r}.{hint}{advice} It has: {some(columns)}.")
