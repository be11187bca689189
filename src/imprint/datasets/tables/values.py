"""Single values of tables: numbers, labels and missing cells, and the errors that name
a row and a column.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from imprint.core.arrays import Array
from imprint.core.errors import FileError, first_names
from imprint.datasets.split import MAX_LABEL_LENGTH, Label

MAX_FLOAT = float(np.finfo(np.float32).max)
# 007 is a text, and so is a number beyond int64
INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")


def quote(value: object) -> str:
    """A value as errors show it: quoted, at most 40 characters."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def quote_names(names: Sequence[str]) -> str:
    """The first six names, quoted."""
    return first_names([quote(name) for name in names], 6)


def check_distinct(path: Path, columns: Sequence[str]) -> None:
    """Refuse two columns of one name."""
    if repeated := [name for name, times in Counter(columns).items() if times > 1]:
        raise FileError(
            f"{path} has more than one column called {quote_names(repeated)}."
        )


def cell_error(path: Path, row: int, column: str, problem: object) -> FileError:
    """The error for a cell of a table."""
    return FileError(f"{path}, row {row}, column {quote(column)}: {problem}.")


def is_missing(value: Any) -> bool:
    """Whether a cell is empty."""
    return (
        value is None
        or (isinstance(value, str) and not value.strip())
        or value != value
    )


def is_number(value: Any) -> bool:
    """Whether a value is a number, or a text that reads as one."""
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return False
    return isinstance(value, int | float | Decimal | str) and not isinstance(
        value, bool
    )


def to_number(value: Any) -> float:
    """A finite number that float32 can hold; other values raise ValueError."""
    if value is None or value == "":
        raise ValueError("there is no number")
    if isinstance(value, dict):
        raise ValueError(
            "it is nested; a column must hold numbers, lists of numbers, or texts"
        )
    if not is_number(value):
        raise ValueError(f"{quote(value)} is not a number")
    number = (
        float(value) if not isinstance(value, int) or abs(value) < 1e300 else math.inf
    )
    if not abs(number) <= MAX_FLOAT:
        raise ValueError(
            f"{quote(value)} is"
            f" {'not finite' if not math.isfinite(number) else 'too large'}"
        )
    return number


def to_numbers(value: Any, width: int | None) -> list[float]:
    """A list of `width` finite numbers, perhaps as JSON in a text; other values raise
    ValueError.
    """
    items = value
    if isinstance(value, str):
        try:
            items = json.loads(value)
        except (ValueError, RecursionError):
            raise ValueError(
                f"{quote(value)} is not a list of numbers, such as [0.5, 1]"
            ) from None
    if not isinstance(items, list) or not items:
        raise ValueError(f"{quote(items)} is not a list of numbers")
    if width is not None and len(items) != width:
        raise ValueError(
            f"a list of {len(items)} numbers, but the rows before have {width}"
        )
    return list(map(to_number, items))


def to_label_array(
    path: Path, column: str, cells: Iterable[Any], rows: Iterable[int]
) -> Array:
    """The labels in a column: all texts, or all integers (int64); the error of an
    invalid one names its row.

    Delimited files hold texts only. Spaces around their labels are stripped, and labels
    that are all integers become integers.
    """
    typed = not {".csv", ".tsv", ".txt"} & {
        suffix.lower() for suffix in path.suffixes[-2:]
    }
    labels: list[Label] = []
    first_rows: dict[Label, int] = {}  # the first row of each distinct label
    for cell, row in zip(cells, rows):
        label = cell.strip() if isinstance(cell, str) and not typed else cell
        if type(label) not in (str, int) or label not in first_rows:
            try:
                label = _checked_label(label, first_rows)
            except ValueError as e:
                raise cell_error(path, row, column, e) from None
            first_rows.setdefault(label, row)
        labels.append(label)
    if not typed and all(INTEGER.fullmatch(str(label)) for label in first_rows):
        return np.array(labels, dtype=np.int64)
    if not typed and all(map(is_number, first_rows)):
        for label, row in first_rows.items():
            if not float(label).is_integer():
                raise cell_error(path, row, column, _not_a_label(label))
    return np.array(labels, dtype=np.int64 if isinstance(labels[0], int) else np.str_)


def _checked_label(value: Any, first_rows: Mapping[Label, int]) -> Label:
    """A text or an integer, of the same type as the labels before, whose first rows are
    given.
    """
    label = int(value) if isinstance(value, float) and value.is_integer() else value
    if label is None or label == "":
        raise ValueError("there is no label")
    if type(label) is not str and (type(label) is not int or abs(label) >= 1 << 63):
        raise ValueError(_not_a_label(value))
    if len(str(label)) > MAX_LABEL_LENGTH:
        raise ValueError(
            f"the label has {len(str(label)):,} characters; the limit is"
            f" {MAX_LABEL_LENGTH:,}"
        )
    for first, row in first_rows.items():
        if type(label) is not type(first):
            rule = "labels must be all texts or all whole numbers"
            raise ValueError(f"{quote(label)} and {quote(first)} in row {row}: {rule}")
        break
    return label


def _not_a_label(value: Any) -> str:
    return f"{quote(value)} is neither text nor a whole number"
