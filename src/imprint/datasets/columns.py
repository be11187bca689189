"""Columns that are recognised by their names, in files and in tables of Python."""

from collections.abc import Iterable, Sequence
from typing import Any

LABEL_COLUMNS = ("label", "labels", "category", "target", "y")
# a table with both is one of coordinates, unless its rows are known to have labels
COORDINATES = frozenset({"x", "y"})
TEXT_COLUMN = "text"
SPLIT_COLUMN = "split"
# of tables in Python: each cell is the path of one input
PATH_COLUMNS = ("path", "file", "filename", "file_name")
NAME_COLUMNS = (
    "name",
    *PATH_COLUMNS,
    "id",
    "index",
    "",
    "unnamed: 0",
    "__index_level_0__",
)
"""Columns that name a row, in lower case; pandas writes its index as one of the last
three.
"""


def normalised(column: object) -> str:
    """The name of a column without its case and the spaces around it."""
    return str(column).strip().lower()


def find_column(candidates: Sequence[str], columns: Iterable[Any]) -> Any:
    """The column that has the first possible of some names; None if there is none.

    Names are compared exactly first, then without their case.
    """
    names = list(columns)
    by_name = {normalised(name): name for name in reversed(names)}
    exact = next((name for name in candidates if name in names), None)
    if exact is not None:
        return exact
    return next((by_name[name] for name in candidates if name in by_name), None)


def find_label_column(columns: Iterable[Any], *, labelled: bool = True) -> Any:
    """The column of labels. In unlabelled rows, `y` next to `x` is no label."""
    names = list(columns)
    found = find_column(LABEL_COLUMNS, names)
    are_coordinates = {normalised(name) for name in names} >= COORDINATES
    if not labelled and are_coordinates and normalised(found) == "y":
        return None
    return found
