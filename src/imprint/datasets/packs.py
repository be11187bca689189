"""Packs: one `.npz` file with the arrays of a training and a test split, or of one of them.

Pictures are `train_images` and `train_labels`. Embeddings are `train`, `train_labels` and perhaps `train_names`, as
`imprint embed` writes them, or `X` (`embeddings`, `features`, `X_train`) and `y` (`labels`, `y_train`). Rows of
unsigned bytes come with a `scale` and perhaps an `offset`.
"""

import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from imprint.core.errors import FileError, ParameterError
from imprint.core.types import Array
from imprint.datasets.matrices import DAMAGE, float_rows
from imprint.datasets.split import NO_LABELS, SPLITS, RowNames, Split, classes_of, plain_labels

INPUTS = ("{}", "{}_images", "X_{}", "x_{}", "X", "embeddings", "features", "images")
LABELS = ("{}_labels", "y_{}", "y", "labels")
"""Possible names of the arrays of a split."""
LAST = 65_557  # bytes at the end of a .zip file that include the number of its entries


def load_pack(path: Path, split: str, name: str | None = None, *, labelled: bool = True) -> Split:
    """One split of a pack of pictures or of embeddings; labels are integers or strings."""
    stored = _stored(path)
    parts = tuple(s for s in SPLITS if _key(stored, INPUTS, s))
    key, label_key = _key(stored, INPUTS, split), _key(stored, LABELS, split)
    if key is None or (labelled and label_key is None):
        legal = _names_of(INPUTS if key is None else LABELS, split)
        raise FileError(f"{path} has no {' or '.join(legal)}; it holds: {', '.join(stored[:6]) or 'nothing'}.")
    inputs = _read(path, key)
    images = inputs.dtype == np.uint8 and inputs.ndim > 2
    if images or key.endswith("_images"):
        _check_pictures(path, key, inputs)
    else:
        inputs = _embeddings(path, key, inputs, stored)
    labels = _labels(path, str(label_key), len(inputs), key) if labelled else NO_LABELS
    for array in (inputs, labels):
        array.flags.writeable = False
    names: Sequence[str] = RowNames(f"{name}/{split}/", range(len(inputs)))
    if name is None:
        part = f" ({split})" if len(parts) > 1 else ""
        names = RowNames(f"{path.name}{part}, row ", range(1, len(inputs) + 1))
    if f"{split}_names" in stored and not images:
        names = _names(path, f"{split}_names", len(inputs))
    modality = "image" if images else "embedding"
    return Split(inputs, labels, names, classes_of(labels), modality, origin=name or path.name, parts=parts)


def _key(stored: Sequence[str], forms: Sequence[str], split: str) -> str | None:
    """The array of a pack with one of these names; a name without a split means `train`."""
    return next((name for name in _names_of(forms, split) if name in stored), None)


def _names_of(forms: Sequence[str], split: str) -> list[str]:
    return [form.format(split) for form in forms if "{}" in form or split == "train"]


def to_float(rows: Array, factors: Mapping[str, Array]) -> Array:
    """Rows as float32, in float32 arithmetic: those stored as bytes are `rows * scale + offset`."""
    X = rows.astype(np.float32)
    if "scale" in factors:
        X *= factors["scale"].astype(np.float32)
    if "offset" in factors:
        X += factors["offset"].astype(np.float32)
    return X


def check_entries(pack: Any) -> None:
    """Refuse a pack whose two lists of arrays differ, in number or in names.

    Otherwise one flipped bit could hide an optional array such as `offset`.
    """
    entries, file = pack.zip.infolist(), pack.zip.fp
    for entry in entries:
        pack.zip.open(entry).close()  # compares the name with that in the central directory
    file.seek(-min(LAST, file.seek(0, os.SEEK_END)), os.SEEK_END)
    end = file.read().rpartition(b"PK\5\6")[2]
    if len(entries) != int.from_bytes(end[6:8], "little"):
        raise zipfile.BadZipFile("it has lost an array")


def _check_pictures(path: Path, key: str, images: Array) -> None:
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or (images.ndim == 4 and images.shape[3] != 3):
        raise FileError(
            f"{path}: {key} must be uint8 of shape (n, h, w) or (n, h, w, 3), not {images.dtype} {images.shape}."
        )


def _embeddings(path: Path, key: str, rows: Array, stored: Sequence[str]) -> Array:
    factors = {name: _read(path, name) for name in ("scale", "offset") if name in stored}
    if (rows.dtype == np.uint8) != ("scale" in factors):
        raise FileError(f"{path}: {key} must be floating point, or unsigned bytes with a scale.")
    if any(f.shape not in ((), rows.shape[1:]) or f.dtype.kind != "f" for f in factors.values()):
        raise FileError(f"{path}: scale and offset must be one number or one per column.")
    return float_rows(to_float(rows, factors) if factors else rows, f"{path}: {key}")


def _labels(path: Path, key: str, rows: int, inputs_key: str) -> Array:
    labels = _read(path, key)
    count = len(np.atleast_1d(labels))
    if count != rows or not rows:
        counts = f"{inputs_key} has {rows:,} rows and {key} has {count:,} labels"
        raise FileError(f"{path}: {counts}; the numbers must be equal and above 0.")
    try:
        return plain_labels(labels)
    except ParameterError as e:
        raise FileError(f"{path}: {key}: {e}") from None


def _names(path: Path, key: str, rows: int) -> tuple[str, ...]:
    names = _read(path, key)
    if names.shape != (rows,) or names.dtype.kind != "U":
        raise FileError(f"{path}: {key} must be one text per row.")
    return tuple(names.tolist())


def _stored(path: Path) -> list[str]:
    with open_pack(path) as pack:
        return list(pack.files)


def _read(path: Path, key: str) -> Array:
    with open_pack(path) as pack:
        return np.asarray(pack[key])


@contextmanager
def open_pack(path: Path) -> Iterator[Any]:
    """The arrays of a `.npz` file, by name; raises `FileError` if it is missing or damaged."""
    try:
        with open(path, "rb") as f:
            pack = np.load(f, allow_pickle=False)
            if not isinstance(pack, np.lib.npyio.NpzFile):
                raise FileError(f"{path} is not a pack: it holds one array.")
            check_entries(pack)
            yield pack
    except FileError:
        raise
    except (OSError, *DAMAGE) as e:
        if isinstance(e, OSError) and e.errno:
            raise FileError(f"Cannot read {path}: {e.strerror}.") from None
        reason = (str(e).splitlines() or ["it is damaged"])[0][:100].rstrip(".")
        raise FileError(f"{path} is not a readable pack: {reason}.") from None
