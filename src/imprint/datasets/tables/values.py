"""Single values of tables as numbers, texts and labels; an error names row and column."""

import json
import math
import re
from array import array
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from imprint.core.errors import FileError
from imprint.core.types import Array
from imprint.datasets.split import LONGEST_LABEL, Label

LARGEST = float(np.finfo(np.float32).max)
INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")  # 007 is a text, and so is a number beyond int64


def quote(value: object) -> str:
    """A value as errors show it: quoted, at most 40 characters."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def quote_names(names: Sequence[str]) -> str:
    """At most six names, and how many more there are.

    >>> quote_names([f"x{i}" for i in range(100)])
    "'x0', 'x1', 'x2', 'x3', 'x4', 'x5' ... and 94 more"
    """
    more = f" ... and {len(names) - 6} more" if len(names) > 6 else ""
    return ", ".join(map(quote, names[:6])) + more


def check_distinct(path: Path, columns: Sequence[str]) -> None:
    """Refuse two columns of one name."""
    repeated = [name for name, times in Counter(columns).items() if times > 1]
    if repeated:
        raise FileError(f"{path} has more than one column called {quote_names(repeated)}.")


def is_number(value: Any) -> bool:
    """Whether a value is a number, or a text that reads as one."""
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return False
        return True
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def is_missing(value: Any) -> bool:
    """Whether a cell is empty.

    >>> is_missing(None), is_missing(" "), is_missing(float("nan")), is_missing(0)
    (True, True, True, False)
    """
    return value is None or (isinstance(value, str) and not value.strip()) or value != value


class Cell(NamedTuple):
    """A cell of a table, for errors."""

    path: Path
    row: int
    column: str

    def error(self, problem: str) -> FileError:
        """The error for this cell."""
        return FileError(f"{self.path}, row {self.row}, column {quote(self.column)}: {problem}.")


def number_of(value: Any, cell: Cell) -> float:
    """A finite number that float32 can hold."""
    if value is None or value == "":
        raise cell.error("there is no number")
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal) or not is_number(value):
        raise cell.error(f"{quote(value)} is not a number")
    number = float(value) if not isinstance(value, int) or abs(value) < 1e300 else math.inf
    if not abs(number) <= LARGEST:
        raise cell.error(f"{quote(value)} is {'not finite' if not math.isfinite(number) else 'too large'}")
    return number


def numbers_of(value: Any, cell: Cell, width: int | None) -> list[float]:
    """A list of `width` finite numbers; a text may hold it as JSON."""
    items = value
    if isinstance(value, str):
        try:
            items = json.loads(value)
        except (ValueError, RecursionError):
            raise cell.error(f"{quote(value)} is not a list of numbers, such as [0.5, 1]") from None
    if not isinstance(items, list) or not items:
        raise cell.error(f"{quote(items)} is not a list of numbers")
    if width is not None and len(items) != width:
        raise cell.error(f"a list of {len(items)} numbers, but the rows before have {width}")
    return [number_of(item, cell) for item in items]


class LabelColumn:
    """Labels as they are read: all text, or all integers.

    Files that are not `typed` hold texts only: spaces around a label are stripped, and labels that are all integers
    become integers.
    """

    def __init__(self, path: Path, column: str):
        self.path, self.column = path, column
        self.typed = not {".csv", ".tsv", ".txt"} & {suffix.lower() for suffix in path.suffixes[-2:]}
        self._index: dict[Label, int] = {}  # of each distinct label, in order of appearance
        self._first_rows: list[int] = []  # the first row of each distinct label
        self._labels = array("q")  # of all rows, by index

    def extend(self, values: Sequence[Any], rows: Sequence[int]) -> None:
        """Append labels; the error of an invalid one names its row."""
        for value, row in zip(values, rows):
            label = value.strip() if isinstance(value, str) and not self.typed else value
            index = self._index.get(label) if type(label) in (str, int) else None
            self._labels.append(self._add(label, row) if index is None else index)

    def array(self) -> Array:
        """The labels, int64 or text."""
        labels = list(self._index)
        if not self.typed and all(INTEGER.fullmatch(str(label)) for label in labels):
            labels = list(map(int, labels))
        elif not self.typed and all(map(is_number, labels)):
            for label, row in zip(labels, self._first_rows):
                if not float(label).is_integer():
                    raise Cell(self.path, row, self.column).error(_not_a_label(label))
        distinct: Array = np.array(labels, dtype=np.int64 if isinstance(labels[0], int) else np.str_)
        return distinct[np.frombuffer(self._labels, dtype=np.int64)]

    def _add(self, value: Any, row: int) -> int:
        """The index of a label that is new, or a float."""
        cell = Cell(self.path, row, self.column)
        if value is None or value == "":
            raise cell.error("there is no label")
        if isinstance(value, str) and len(value) > LONGEST_LABEL:
            raise cell.error(f"the label has {len(value):,} characters; the limit is {LONGEST_LABEL:,}")
        label = int(value) if isinstance(value, float) and value.is_integer() else value
        whole = isinstance(label, int) and not isinstance(label, bool) and abs(label) < 1 << 63
        if not whole and not isinstance(label, str):
            raise cell.error(_not_a_label(value))
        first = next(iter(self._index), label)
        if isinstance(first, str) is not isinstance(label, str):
            kinds = ("a text", "a whole number")[:: 1 if isinstance(label, str) else -1]
            before = f"row {self._first_rows[0]} has {kinds[1]}, {quote(first)}"
            raise cell.error(f"{quote(label)} is {kinds[0]}, but {before}")
        if label not in self._index:
            self._index[label] = len(self._index)
            self._first_rows.append(row)
        return self._index[label]


def _not_a_label(value: Any) -> str:
    return f"{quote(value)} is neither text nor a whole number"
