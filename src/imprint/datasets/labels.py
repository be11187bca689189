"""Labels in a file of their own: one per row, as `.npy`, `.txt` or a table."""

from pathlib import Path

from imprint.core.errors import FileError, ParameterError
from imprint.core.types import Array
from imprint.datasets.split import plain_labels
from imprint.datasets.tables.layout import LABEL_COLUMNS
from imprint.datasets.tables.reading import read_rows, table_suffix
from imprint.datasets.tables.values import LabelColumn, some


def read_labels(path: Path, rows: int, column: str | None = None) -> Array:
    """`rows` labels, whole numbers or texts.

    A `.txt` file has one per line. A table has a column `label` (or `column`), or only one column.
    """
    suffix = path.suffix.lower()
    if suffix == ".npy":
        labels = _from_npy(path)
    elif suffix == ".txt":
        labels = _from_lines(path)
    elif table_suffix(path):
        labels = _from_table(path, column)
    else:
        raise FileError(f"Cannot read labels from {path}: give a .npy, .txt or .csv file with one per row.")
    if len(labels) != rows:
        raise FileError(f"{path} has {len(labels):,} labels for {rows:,} rows; there must be one per row.")
    return labels


def _from_npy(path: Path) -> Array:
    from imprint.datasets.matrices import read_npy

    try:
        return plain_labels(read_npy(path))
    except ParameterError as e:
        raise FileError(f"{path}: {e}") from None


def _from_lines(path: Path) -> Array:
    try:
        lines = path.read_text("utf-8-sig").removesuffix("\n").split("\n")
    except UnicodeDecodeError as e:
        raise FileError(f"{path} is not UTF-8: {e.reason} at byte {e.start}.") from None
    except OSError as e:
        raise FileError(f"Cannot read {path}: {e.strerror}.") from None
    found = LabelColumn(path, "label")
    found.extend(lines, range(1, len(lines) + 1))
    return found.array()


def _from_table(path: Path, column: str | None) -> Array:
    found: LabelColumn | None = None
    for number, row in read_rows(path):
        if found is None:
            found = LabelColumn(path, _label_column(path, list(row), column))
        found.extend([row.get(found.column)], [number])
    if found is None:
        raise FileError(f"{path} has no rows.")
    return found.array()


def _label_column(path: Path, columns: list[str], column: str | None) -> str:
    known = [column] if column else [c for c in LABEL_COLUMNS if c in columns] or columns[: len(columns) == 1]
    if not known or known[0] not in columns:
        raise FileError(f"{path} has no column {column or 'label'!r}; it has: {some(columns)}.")
    return known[0]
