"""Embeddings in a `.npy` file, with labels in a file of their own."""

import tokenize
import zipfile
import zlib
from pathlib import Path

import numpy as np

from imprint.core.errors import FileError, ParameterError
from imprint.core.types import Array
from imprint.datasets.labels import read_labels
from imprint.datasets.split import NO_LABELS, RowsOf, Split, classes_of

DAMAGE = (
    ValueError,
    EOFError,
    LookupError,
    TypeError,
    SyntaxError,
    ArithmeticError,
    MemoryError,
    RuntimeError,  # among them zipfile's for what claims to be encrypted
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What NumPy raises on damaged `.npy` and `.npz` files."""
BLOCK = 1 << 22  # numbers that are checked at once


def load_matrix(path: Path, labels: Path | None, *, labelled: bool = True, label_column: str | None = None) -> Split:
    """The rows of a `.npy` file; float32 stays on disk and is mapped, other numbers become float32."""
    if labelled and labels is None:
        raise ParameterError(f"load({str(path)!r}): a .npy file has no labels; give a file with one per row as labels.")
    X = float_rows(read_npy(path, mapped=True), str(path))
    y = read_labels(labels, len(X), label_column) if labels is not None and labelled else NO_LABELS
    return Split(X, y, RowsOf(path.name, range(1, len(X) + 1)), classes_of(y), "embedding", origin=path.name)


def read_npy(path: Path, *, mapped: bool = False) -> Array:
    """The array in a `.npy` file; no pickle is read."""
    try:
        found = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except OSError as e:
        raise FileError(f"Cannot read {path}: {e.strerror or e}.") from None
    except DAMAGE:
        raise FileError(f"Cannot read {path}: it is damaged or not a .npy file of plain numbers or texts.") from None
    if not isinstance(found, np.ndarray):
        raise FileError(f"Cannot read {path}: it is not a .npy file.")
    return found


def float_rows(rows: Array, what: str) -> Array:
    """Embeddings as float32, refused where they are not finite numbers in rows."""
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
