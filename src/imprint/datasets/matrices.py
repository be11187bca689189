"""Embeddings in a `.npy` file, and labels in a separate file: `.npy`, `.txt` or a table."""

import tokenize
import zipfile
import zlib
from pathlib import Path

import numpy as np

from imprint.core.errors import FileError, ParameterError
from imprint.core.types import Array
from imprint.datasets.split import NO_LABELS, RowNames, Split, classes_of, plain_labels
from imprint.datasets.tables.layout import LABEL_COLUMNS
from imprint.datasets.tables.reading import first_row, read_batches, table_suffix
from imprint.datasets.tables.values import LabelColumn, some

DAMAGE = (
    ValueError,
    EOFError,
    LookupError,
    TypeError,
    SyntaxError,
    ArithmeticError,
    MemoryError,
    RuntimeError,  # of zipfile, for encrypted archives
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What NumPy raises on damaged `.npy` and `.npz` files."""
BLOCK = 1 << 22  # numbers that are checked at once


def load_matrix(path: Path, labels: Path | None, *, labelled: bool = True, label_column: str | None = None) -> Split:
    """The rows of a `.npy` file: float32 is memory-mapped, other types are converted to float32."""
    if labelled and labels is None:
        raise ParameterError(f"load({str(path)!r}): a .npy file has no labels; give a file with one per row as labels.")
    X = float_rows(read_npy(path, mapped=True), str(path))
    y = read_labels(labels, len(X), label_column) if labels is not None and labelled else NO_LABELS
    names = RowNames(f"{path.name}, row ", range(1, len(X) + 1))
    return Split(X, y, names, classes_of(y), "embedding", origin=path.name)


def read_npy(path: Path, *, mapped: bool = False) -> Array:
    """The array in a `.npy` file; no pickle is read."""
    try:
        array = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except OSError as e:
        raise FileError(f"Cannot read {path}: {e.strerror or e}.") from None
    except DAMAGE:
        raise FileError(f"Cannot read {path}: it is damaged or not a .npy file of plain numbers or texts.") from None
    if not isinstance(array, np.ndarray):
        raise FileError(f"Cannot read {path}: it is not a .npy file.")
    return array


def float_rows(rows: Array, what: str) -> Array:
    """Embeddings as float32; raises if they are not rows of finite numbers."""
    if rows.ndim != 2 or rows.dtype.kind not in "iuf" or not rows.size:
        raise FileError(f"{what}: embeddings must be rows of numbers, not {rows.dtype} of shape {rows.shape}.")
    with np.errstate(over="ignore"):
        X = rows if rows.dtype == np.float32 else rows.astype(np.float32)
    step = max(1, BLOCK // X.shape[1])
    for first in range(0, len(X), step):
        finite = np.isfinite(X[first : first + step])
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            value = rows[first + row, column]
            cell = f"{what}, row {first + row + 1}, column {column + 1}"
            raise FileError(f"{cell}: {value} is not a finite float32 number.")
    return X


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
    labels = LabelColumn(path, "label")
    labels.extend(lines, range(1, len(lines) + 1))
    return labels.array()


def _from_table(path: Path, column: str | None) -> Array:
    name = _label_column(path, list(first_row(path)[1]), column)
    labels = LabelColumn(path, name)
    for batch in read_batches(path, [name]):
        labels.extend(batch.values(name), batch.rows)
    return labels.array()


def _label_column(path: Path, columns: list[str], column: str | None) -> str:
    known = [column] if column else [c for c in LABEL_COLUMNS if c in columns] or columns[: len(columns) == 1]
    if not known or known[0] not in columns:
        raise FileError(f"{path} has no column {column or 'label'!r}; it has: {some(columns)}.")
    return known[0]
