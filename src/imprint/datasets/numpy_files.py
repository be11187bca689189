"""NumPy files: embeddings in a `.npy` file with labels in a separate file, and packs in a `.npz` file.

A pack has the arrays of a training and a test split, or of one of them. Pictures are `train_images` and
`train_labels`. Embeddings are `train`, `train_labels` and perhaps `train_names`, as `imprint embed` writes them, or `X`
(`embeddings`, `features`, `X_train`) and `y` (`labels`, `y_train`). Rows of unsigned bytes have a `scale` and perhaps
an `offset`. Tags are an indicator matrix of labels, (rows, labels), with the names of its columns in `label_names`.
"""

import os
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from imprint.core.errors import FileError, ParameterError, reporting
from imprint.core.label_sets import read_tags
from imprint.core.types import Array
from imprint.datasets.split import NO_LABELS, SPLITS, RowNames, Split, classes_of, plain_labels
from imprint.datasets.tables import first_row, read_batches, table_suffix
from imprint.datasets.tables.layout import LABEL_COLUMNS
from imprint.datasets.tables.values import LabelColumn, quote_names

DAMAGE: tuple[type[Exception], ...] = (OSError, ValueError, EOFError, LookupError, TypeError, SyntaxError)
DAMAGE += (ArithmeticError, MemoryError, RuntimeError, tokenize.TokenError, zipfile.BadZipFile, zlib.error)
"""What NumPy raises on damaged `.npy` and `.npz` files; RuntimeError is that of zipfile for encrypted archives."""
BLOCK = 1 << 22  # numbers that are checked at once
INPUTS = ("{}", "{}_images", "X_{}", "x_{}", "X", "embeddings", "features", "images")
LABELS = ("{}_labels", "y_{}", "y", "labels")
"""Possible names of the arrays of a split; a name without a split means `train`."""
LABEL_NAMES = "label_names"
FACTORS = ("scale", "offset")
END_RECORD = 65_557  # bytes at the end of a .zip file that include the number of its entries


def load_matrix(path: Path, labels: Path | None, *, labelled: bool = True, label_column: str | None = None) -> Split:
    """The rows of a `.npy` file: float32 is memory-mapped, other types are converted to float32."""
    if labelled and labels is None:
        raise ParameterError(f"load({str(path)!r}): a .npy file has no labels; give a file with one per row as labels.")
    X = float_rows(_read_npy(path, mapped=True), str(path))
    y = _read_labels(labels, len(X), label_column) if labels is not None and labelled else NO_LABELS
    names = RowNames(f"{path.name}, row ", range(1, len(X) + 1))
    return Split(X, y, names, classes_of(y), "embedding", origin=path.name)


def _read_npy(path: Path, *, mapped: bool = False) -> Array:
    try:
        with reporting("read", path):
            array = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except FileError:
        raise
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


def _read_labels(path: Path, rows: int, column: str | None) -> Array:
    """`rows` labels, whole numbers or texts.

    A `.txt` file has one per line. A table has a column `label` (or `column`), or only one column.
    """
    if path.suffix.lower() == ".npy":
        labels = _checked_labels(_read_npy(path), str(path))
    elif path.suffix.lower() == ".txt":
        labels = _labels_in_lines(path)
    elif table_suffix(path):
        labels = _labels_in_table(path, column)
    else:
        raise FileError(f"Cannot read labels from {path}: give a .npy, .txt or .csv file with one per row.")
    if len(labels) != rows:
        raise FileError(f"{path} has {len(labels):,} labels for {rows:,} rows; there must be one per row.")
    return labels


def _checked_labels(labels: Array, what: str) -> Array:
    try:
        return plain_labels(labels)
    except ParameterError as e:
        raise FileError(f"{what}: {e}") from None


def _labels_in_lines(path: Path) -> Array:
    try:
        with reporting("read", path):
            lines = path.read_text("utf-8-sig").removesuffix("\n").split("\n")
    except UnicodeDecodeError as e:
        raise FileError(f"{path} is not UTF-8: {e.reason} at byte {e.start}.") from None
    labels = LabelColumn(path, "label")
    labels.extend(lines, range(1, len(lines) + 1))
    return labels.array()


def _labels_in_table(path: Path, column: str | None) -> Array:
    columns = list(first_row(path)[1])
    names = [column] if column else [c for c in LABEL_COLUMNS if c in columns] or columns[: len(columns) == 1]
    if not names or names[0] not in columns:
        raise FileError(f"{path} has no column {column or 'label'!r}; it has: {quote_names(columns)}.")
    labels = LabelColumn(path, names[0])
    for batch in read_batches(path, names[:1]):
        labels.extend(batch.values(names[0]), batch.rows)
    return labels.array()


def load_pack(path: Path, split: str, name: str | None = None, *, labelled: bool = True) -> Split:
    """One split of a pack of pictures or of embeddings; labels are integers, strings, or an indicator matrix."""
    with open_pack(path) as pack:
        stored = list(pack.files)
    parts = tuple(s for s in SPLITS if _key(stored, INPUTS, s))
    key, label_key = _key(stored, INPUTS, split), _key(stored, LABELS, split)
    if key is None or (labelled and label_key is None):
        legal = _names_of(INPUTS if key is None else LABELS, split)
        raise FileError(f"{path} has no {' or '.join(legal)}; it holds: {', '.join(stored[:6]) or 'nothing'}.")
    names_key = f"{split}_names"
    optional = {names_key, *FACTORS, *((label_key, LABEL_NAMES) if labelled else ())}
    with open_pack(path) as pack:
        arrays = {name: np.asarray(pack[name]) for name in {key} | (optional & set(stored))}
    inputs, rows = arrays[key], len(np.atleast_1d(arrays[key]))
    images = inputs.dtype == np.uint8 and inputs.ndim > 2
    if images or key.endswith("_images"):
        _check_pictures(f"{path}: {key}", inputs)
    else:
        inputs = _embeddings(f"{path}: {key}", inputs, {f: arrays[f] for f in FACTORS if f in arrays})
    labels, classes = _pack_labels(path, str(label_key), arrays, key, rows) if labelled else (NO_LABELS, ())
    for array in (inputs, labels):
        array.flags.writeable = False
    names: Sequence[str] = RowNames(f"{name}/{split}/", range(rows))
    if name is None:
        part = f" ({split})" if len(parts) > 1 else ""
        names = RowNames(f"{path.name}{part}, row ", range(1, rows + 1))
    if names_key in arrays and not images:
        if arrays[names_key].shape != (rows,) or arrays[names_key].dtype.kind != "U":
            raise FileError(f"{path}: {names_key} must be one text per row.")
        names = tuple(arrays[names_key].tolist())
    tags = labelled and arrays[str(label_key)].ndim == 2
    modality = "image" if images else "embedding"
    return Split(inputs, labels, names, classes, modality, origin=name or path.name, parts=parts, tags=tags)


def _key(stored: Sequence[str], forms: Sequence[str], split: str) -> str | None:
    return next((name for name in _names_of(forms, split) if name in stored), None)


def _names_of(forms: Sequence[str], split: str) -> list[str]:
    return [form.format(split) for form in forms if "{}" in form or split == "train"]


def _check_pictures(what: str, images: Array) -> None:
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or (images.ndim == 4 and images.shape[3] != 3):
        raise FileError(f"{what} must be uint8 of shape (n, h, w) or (n, h, w, 3), not {images.dtype} {images.shape}.")


def _embeddings(what: str, rows: Array, factors: Mapping[str, Array]) -> Array:
    if (rows.dtype == np.uint8) != ("scale" in factors):
        raise FileError(f"{what} must be floating point, or unsigned bytes with a scale.")
    if any(f.shape not in ((), rows.shape[1:]) or f.dtype.kind != "f" for f in factors.values()):
        raise FileError(f"{what}: scale and offset must be one number or one per column.")
    return float_rows(to_float(rows, factors) if factors else rows, what)


def to_float(rows: Array, factors: Mapping[str, Array]) -> Array:
    """Rows as float32, in float32 arithmetic: those stored as bytes are `rows * scale + offset`."""
    X = rows.astype(np.float32)
    if "scale" in factors:
        X *= factors["scale"].astype(np.float32)
    if "offset" in factors:
        X += factors["offset"].astype(np.float32)
    return X


def _pack_labels(path: Path, key: str, arrays: Mapping[str, Array], rows: str, count: int) -> tuple[Array, Any]:
    """The label or label set of each of the `count` rows in the array `rows`, and the classes."""
    labels = arrays[key]
    if len(np.atleast_1d(labels)) != count or not count:
        counts = f"{rows} has {count:,} rows and {key} has {len(np.atleast_1d(labels)):,} labels"
        raise FileError(f"{path}: {counts}; the numbers must be equal and above 0.")
    if labels.ndim == 2:
        names = _checked_labels(arrays.get(LABEL_NAMES, NO_LABELS), f"{path}: {LABEL_NAMES}").tolist()
        tagged = read_tags(labels, names) if len(set(names)) == labels.shape[1] else None
        if tagged is None:
            raise FileError(f"{path}: {key} of two axes must hold 0 and 1, with a name per column in {LABEL_NAMES}.")
        return tagged
    plain = _checked_labels(labels, f"{path}: {key}")
    return plain, classes_of(plain)


@contextmanager
def open_pack(path: Path) -> Iterator[Any]:
    """A `.npz` file; raises `FileError` if it is missing or damaged, also while an array is read."""
    try:
        with open(path, "rb") as f:
            pack = np.load(f, allow_pickle=False)
            if not isinstance(pack, np.lib.npyio.NpzFile):
                raise FileError(f"{path} is not a pack: it holds one array.")
            _check_entries(pack)
            yield pack
    except FileError:
        raise
    except DAMAGE as e:
        if isinstance(e, OSError) and e.errno:
            raise FileError(f"Cannot read {path}: {e.strerror}.") from None
        reason = (str(e).splitlines() or ["it is damaged"])[0][:100].rstrip(".")
        raise FileError(f"{path} is not a readable pack: {reason}.") from None


def _check_entries(pack: Any) -> None:
    """Refuse a pack whose two lists of arrays differ, in number or in names.

    Otherwise one flipped bit could hide an optional array such as `offset`.
    """
    entries, file = pack.zip.infolist(), pack.zip.fp
    for entry in entries:
        pack.zip.open(entry).close()  # compares the name with that in the central directory
    file.seek(-min(END_RECORD, file.seek(0, os.SEEK_END)), os.SEEK_END)
    end = file.read().rpartition(b"PK\5\6")[2]
    if len(entries) != int.from_bytes(end[6:8], "little"):
        raise zipfile.BadZipFile("it has lost an array")
