"""Packs: one `.npz` with `train_images`, `train_labels`, `test_images`, `test_labels`."""

import zipfile
import zlib
from pathlib import Path

import numpy as np

from imprint.core.errors import FileError, ParameterError
from imprint.core.types import Array
from imprint.datasets.split import Numbered, Split, classes_of, plain_labels


def load_pack(path: Path, split: str, name: str | None = None) -> Split:
    """One split of a pack. Images are uint8, (n, h, w) or (n, h, w, 3); labels are integers or strings."""
    images, labels = _read(path, f"{split}_images"), _read(path, f"{split}_labels")
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or (images.ndim == 4 and images.shape[3] != 3):
        raise FileError(
            f"{path}: {split}_images must be uint8 of shape (n, h, w) or (n, h, w, 3), "
            f"not {images.dtype} {images.shape}."
        )
    if len(images) != len(labels) or not len(images):
        raise FileError(
            f"{path}: {split}_images and {split}_labels must be of one length above 0, "
            f"not {len(images)} and {len(labels)}."
        )
    try:
        labels = plain_labels(labels)
    except ParameterError as e:
        raise FileError(f"{path}: {split}_labels: {e}") from None
    for array in (images, labels):
        array.flags.writeable = False
    names = Numbered(f"{name or path.stem}/{split}", len(labels))
    return Split(images, labels, names, classes_of(labels), "image")


def _read(path: Path, key: str) -> Array:
    try:
        with open(path, "rb") as f:
            pack = np.load(f, allow_pickle=False)
            names = pack.files if isinstance(pack, np.lib.npyio.NpzFile) else []
            if key not in names:
                raise FileError(f"{path} has no {key}; it holds: {', '.join(names) or 'nothing'}.")
            return np.asarray(pack[key])
    except FileError:
        raise
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError) as e:
        raise FileError(f"{path} is not a readable pack: {e}.") from None
