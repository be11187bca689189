"""Single values of tables as numbers, texts and labels; what is none is refused by row and column."""

import json
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from imprint.core.errors import FileError
from imprint.core.types import Array
from imprint.datasets.split import Label
from imprint.datasets.tables.layout import Layout, is_number
from imprint.datasets.tables.rows import Row, short

LARGEST = float(np.finfo(np.float32).max)
WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")  # 007 is a text, and so is what no int64 holds


class Place(NamedTuple):
    """A cell of a table, for errors."""

    path: Path
    row: int
    column: str

    def refuse(self, what: str) -> FileError:
        """The error for this cell."""
        return FileError(f"{self.path}, row {self.row}, column {short(self.column)}: {what}.")


def number_of(value: Any, place: Place) -> float:
    """A finite number that float32 can hold."""
    if value is None or value == "":
        raise place.refuse("there is no number")
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal) or not is_number(value):
        raise place.refuse(f"{short(value)} is no number")
    found = float(value) if not isinstance(value, int) or abs(value) < 1e300 else math.inf
    if not abs(found) <= LARGEST:
        raise place.refuse(f"{short(value)} is {'not finite' if not math.isfinite(found) else 'too large'}")
    return found


def numbers_of(path: Path, row: Row, layout: Layout, width: int | None) -> list[float]:
    """The embedding in one row, from its columns of numbers or from its list."""
    number, values = row
    if layout.kind == "numbers":
        if more := values.keys() - layout.known:
            raise Place(path, number, min(more)).refuse("the first row has no such column")
        return [number_of(values.get(c), Place(path, number, c)) for c in layout.inputs]
    place = Place(path, number, layout.inputs[0])
    found = _listed(values.get(layout.inputs[0]), place)
    if width is not None and len(found) != width:
        raise place.refuse(f"a list of {len(found)} numbers, but the rows before have {width}")
    return [number_of(v, place) for v in found]


def _listed(value: Any, place: Place) -> list[Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise place.refuse(f"{short(value)} is no list of numbers, such as [0.5, 1]") from None
    if not isinstance(value, list) or not value:
        raise place.refuse(f"{short(value)} is no list of numbers")
    return value


def text_of(value: Any, place: Place) -> str:
    """A text; numbers and nothing are refused."""
    if not isinstance(value, str):
        raise place.refuse("there is no text" if value is None else f"{short(value)} is no text")
    return value


class LabelColumn:
    """Labels as they are read: all text, or all whole numbers.

    Files that are not `typed` hold texts only: blanks around a label do not count, and labels that are all whole
    numbers become numbers.
    """

    def __init__(self, path: Path, column: str):
        self.path, self.column = path, column
        self.typed = path.suffix.lower() in (".jsonl", ".parquet")
        self.values: list[Label] = []
        self._first: dict[Label, int] = {}  # the row where each label comes first
        self._known: dict[Any, Label] = {}  # what each value means as a label

    def extend(self, values: Sequence[Any], rows: Sequence[int]) -> None:
        """More labels; the error of a wrong one names its row."""
        if set(map(type, values)) not in ({str}, {int}) or not self._known.keys() >= set(values):
            for value, row in zip(values, rows):
                label = self._label(value, Place(self.path, row, self.column))
                if label not in self._first:
                    self._check_kind(label, row)
                    self._first[label] = row
                self._known[value] = label
        self.values += map(self._known.__getitem__, values)

    def array(self) -> Array:
        """The labels, int64 or text."""
        if not self.typed and all(WHOLE.fullmatch(str(label)) for label in self._first):
            return np.array(self.values).astype(np.int64)
        if not self.typed and all(map(is_number, self._first)):
            for label, row in self._first.items():
                if not float(label).is_integer():
                    raise Place(self.path, row, self.column).refuse(_no_label(label))
        return np.array(self.values, dtype=np.int64 if isinstance(self.values[0], int) else np.str_)

    def _label(self, value: Any, place: Place) -> Label:
        value = value.strip() if isinstance(value, str) and not self.typed else value
        if value is None or value == "":
            raise place.refuse("there is no label")
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63):
            return value
        raise place.refuse(_no_label(value))

    def _check_kind(self, label: Label, row: int) -> None:
        for other, where in self._first.items():
            if isinstance(other, str) is not isinstance(label, str):
                kinds = ("a text", "a whole number")[:: 1 if isinstance(label, str) else -1]
                what = f"{short(label)} is {kinds[0]}, but row {where} has {kinds[1]}, {short(other)}"
                raise Place(self.path, row, self.column).refuse(what)
            return


def _no_label(value: Any) -> str:
    return f"{short(value)} is neither text nor a whole number"
