"""NumPy files: embeddings in a `.npy` file with labels in a separate file, and packs in
a `.npz` file.

A pack has the arrays of a training and a test split, or of one of them. Images are
`train_images` and `train_labels`. Embeddings are `train`, `train_labels` and perhaps
`train_names`, as `imprint embed` writes them, or `X` (`embeddings`, `features`,
`X_train`) and `y` (`labels`, `y_train`). Rows of unsigned bytes have a `scale` and
perhaps an `offset`. If embeddings consist of several blocks, `blocks` holds the
widths of these and `block_names` what they are called. Tags are an indicator matrix of
labels, (rows, labels), with the names of its columns in `label_names`.
"""

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np

from imprint.core.arrays import Array
from imprint.core.blocks import read_blocks
from imprint.core.errors import FileError, ParameterError, reporting_damage
from imprint.core.files.unpacking import check_unpacked, unpacked_limit
from imprint.core.label_sets import read_tags
from imprint.datasets.columns import find_label_column
from imprint.datasets.split import (
    NO_LABELS,
    SPLITS,
    Label,
    Split,
    classes_of,
    plain_labels,
)
from imprint.datasets.tables import first_row, read_batches, table_suffix
from imprint.datasets.tables.values import quote_names, to_label_array
from imprint.modalities import Modality, builtin
from imprint.modalities.embedding import matrix

# arrays of inputs that are named after their modality, such as `series`
NAMED_ARRAYS = {kind.array_name: kind for kind in builtin() if kind.array_name}
INPUT_ARRAYS = (
    "{}",
    "{}_images",
    "X_{}",
    "x_{}",
    "X",
    "embeddings",
    "features",
    "images",
    *(pattern.format(name) for name in NAMED_ARRAYS for pattern in ("{{}}_{}", "{}")),
)
LABEL_ARRAYS = ("{}_labels", "y_{}", "y", "labels")
"""Possible names of the arrays of a split; a name without a split means `train`."""
LABEL_NAMES = "label_names"
FACTORS = ("scale", "offset")
BLOCKS, BLOCK_NAMES = "blocks", "block_names"
LENGTHS = ("{}_lengths", "lengths")  # of inputs of unequal lengths in one array
MAGIC_PREFIX = b"\x93NUMPY"  # of an array in a `.npy` file
# bytes at the end of a .zip file that include the number of its entries
END_RECORD_BYTES = 65_557


def load_matrix(
    path: Path,
    labels: Path | None,
    *,
    labelled: bool = True,
    label_column: str | None = None,
) -> Split:
    """The rows of a `.npy` file: float32 is memory-mapped, other types are converted to
    float32.
    """
    if labelled and labels is None:
        raise ParameterError(
            f"load({str(path)!r}): a .npy file has no labels; give a file with one per"
            " row as labels."
        )
    X = _checked(str(path), matrix, _read_npy(path, mapped=True), np.float32)
    y = (
        _read_labels(labels, len(X), label_column)
        if labels is not None and labelled
        else NO_LABELS
    )
    names = [f"{path.name}, row {i}" for i in range(1, len(X) + 1)]
    return Split(X, y, names, classes_of(y), "embedding", origin=path.name)


def _read_npy(path: Path, *, mapped: bool = False) -> Array:
    with reporting_damage(path, ".npy file of numbers or texts"):
        # also if it is copied, because this checks the size that the header states
        # before memory is allocated
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise ValueError("it holds several arrays")
    return array if mapped else np.array(array)


def _checked(where: str, convert: Callable[..., Any], *values: Any) -> Any:
    """The converted embeddings or labels; an error begins with `where`, the file and
    perhaps the array in it.
    """
    try:
        return convert(*values)
    except ParameterError as e:
        sentence = str(e)
        raise FileError(f"{where}: {sentence[0].lower()}{sentence[1:]}") from None


def _read_labels(path: Path, rows: int, column: str | None) -> Array:
    """`rows` labels, from a `.npy` file, from the lines of a `.txt` file, or from a
    table.

    The column of a table is `column`, one called `label`, or the only one.
    """
    if path.suffix.lower() == ".npy":
        labels = _checked(str(path), plain_labels, _read_npy(path))
    elif path.suffix.lower() == ".txt" or table_suffix(path):
        columns = list(first_row(path)[1])
        names = (
            [column]
            if column
            else [c for c in [find_label_column(columns)] if c is not None]
            or columns[: len(columns) == 1]
        )
        if not names or names[0] not in columns:
            raise FileError(
                f"{path} has no column {column or 'label'!r}; it has:"
                f" {quote_names(columns)}."
            )
        batches = list(read_batches(path, names[:1]))
        cells = chain.from_iterable(batch.values(names[0]) for batch in batches)
        labels = to_label_array(
            path, names[0], cells, chain.from_iterable(batch.rows for batch in batches)
        )
    else:
        raise FileError(
            f"Cannot read labels from {path}: give a .npy, .txt or .csv file with one"
            " per row."
        )
    if len(labels) != rows:
        raise FileError(
            f"{path} has {len(labels):,} labels for {rows:,} rows; there must be one"
            " per row."
        )
    return labels


def load_pack(path: Path, split: str, *, labelled: bool = True) -> Split:
    """One split of a pack of images or of embeddings; labels are integers, texts, or
    an indicator matrix.
    """
    with open_pack(path) as pack:
        key = _array_name(pack.files, INPUT_ARRAYS, split)
        label_key = _array_name(pack.files, LABEL_ARRAYS, split)
        if not key or (labelled and not label_key):
            expected = " or ".join(
                _possible_names(LABEL_ARRAYS if key else INPUT_ARRAYS, split)
            )
            raise FileError(
                f"{path} has no {expected}; it holds:"
                f" {', '.join(pack.files[:6]) or 'nothing'}."
            )
        parts = tuple(s for s in SPLITS if _array_name(pack.files, INPUT_ARRAYS, s))
        names_key = f"{split}_names"
        optional = (
            names_key,
            *FACTORS,
            BLOCKS,
            *_possible_names(LENGTHS, split),
            *((label_key, LABEL_NAMES) if labelled else ()),
        )
        arrays = {
            name: np.asarray(pack[name])
            for name in (key, *optional)
            if name in pack.files
        }
    inputs, where = arrays[key], f"{path}: {key}"
    count = len(np.atleast_1d(inputs))
    kind = NAMED_ARRAYS.get(key.removeprefix(f"{split}_"))
    is_image = (inputs.dtype == np.uint8 and inputs.ndim > 2) or key.endswith("_images")
    blocks: tuple[int, ...] = ()
    if kind is not None:
        inputs = _stacked(path, kind, key, arrays, split)
    elif not is_image:
        inputs = to_embeddings(where, inputs, arrays)
        blocks = to_blocks(path, arrays, inputs.shape[1])
    elif (
        inputs.dtype != np.uint8
        or inputs.ndim not in (3, 4)
        or inputs.shape[3:] not in ((), (3,))
    ):
        raise FileError(
            f"{where} must be uint8 of shape (n, h, w) or (n, h, w, 3), not"
            f" {inputs.dtype} {inputs.shape}."
        )
    labels, classes = (
        to_labels(path, label_key, arrays, key, count) if labelled else (NO_LABELS, ())
    )
    for array in (arrays[key], inputs, labels):
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    part = f" ({split})" if len(parts) > 1 else ""
    names = [f"{path.name}{part}, row {i}" for i in range(1, count + 1)]
    if names_key in arrays and not is_image:
        if arrays[names_key].shape != (count,) or arrays[names_key].dtype.kind != "U":
            raise FileError(f"{path}: {names_key} must be one text per row.")
        names = arrays[names_key].tolist()
    modality = "image" if is_image else "embedding"
    if kind is not None:
        modality = kind.name
    tags = labelled and arrays[label_key].ndim == 2
    return Split(
        inputs,
        labels,
        names,
        classes,
        modality,
        origin=path.name,
        parts=parts,
        tags=tags,
        blocks=blocks,
    )


def to_blocks(path: Path, arrays: Mapping[str, Array], width: int) -> tuple[int, ...]:
    """The widths of the blocks that a pack states; empty if it states none."""
    if BLOCKS not in arrays:
        return ()
    stated = arrays[BLOCKS]
    is_list = stated.ndim == 1 and stated.dtype.kind in "iu"
    widths = _checked(
        f"{path}: {BLOCKS}", read_blocks, stated.tolist() if is_list else 0
    )
    total = int(stated.sum())
    if total != width:
        raise FileError(
            f"{path}: the blocks have {total:,} columns together, and the rows"
            f" have {width:,}."
        )
    return widths


def _stacked(
    path: Path, kind: Modality, key: str, arrays: Mapping[str, Array], split: str
) -> Any:
    """The inputs of a modality in one array of a pack."""
    lengths_key = _array_name(list(arrays), LENGTHS, split)
    lengths = arrays[lengths_key] if lengths_key else None
    n = len(np.atleast_1d(arrays[key]))
    if lengths is not None and (
        lengths.shape != (n,) or lengths.dtype.kind not in "iu"
    ):
        raise FileError(f"{path}: {lengths_key} must be one integer per row of {key}.")
    try:
        return kind.stacked(arrays[key], lengths)
    except ParameterError as e:
        raise FileError(f"{path}: {key}: {e}") from None


def _array_name(names: Sequence[str], patterns: Sequence[str], split: str) -> str:
    """Which of the names is that of the array of a split; empty if none is."""
    return next(
        (name for name in _possible_names(patterns, split) if name in names), ""
    )


def _possible_names(patterns: Sequence[str], split: str) -> list[str]:
    return [
        pattern.format(split)
        for pattern in patterns
        if "{}" in pattern or split == "train"
    ]


def to_embeddings(where: str, rows: Array, arrays: Mapping[str, Array]) -> Array:
    """Embeddings as float32; rows of bytes become `rows * scale + offset`. Errors begin
    with `where`.
    """
    factors = {name: arrays[name] for name in FACTORS if name in arrays}
    if (rows.dtype == np.uint8) != ("scale" in factors):
        raise FileError(
            f"{where} must be floating point, or unsigned bytes with a scale."
        )
    if any(
        f.shape not in ((), rows.shape[1:]) or f.dtype.kind != "f"
        for f in factors.values()
    ):
        raise FileError(
            f"{where}: scale and offset must be one number or one per column."
        )
    X = rows.astype(np.float32) if factors else rows
    if "scale" in factors:
        X *= factors["scale"].astype(np.float32)
    if "offset" in factors:
        X += factors["offset"].astype(np.float32)
    return _checked(where, matrix, X, np.float32)


def to_labels(
    path: Path, key: str, arrays: Mapping[str, Array], rows_key: str, count: int
) -> tuple[Array, tuple[Label, ...]]:
    """The label or label set, in the array `key`, of each of the `count` rows in the
    array `rows_key`; the classes.
    """
    labels = arrays[key]
    if len(np.atleast_1d(labels)) != count or not count:
        counts = (
            f"{rows_key} has {count:,} rows and {key} has"
            f" {len(np.atleast_1d(labels)):,} labels"
        )
        raise FileError(f"{path}: {counts}; the numbers must be equal and above 0.")
    if labels.ndim == 2:
        names = _checked(
            f"{path}: {LABEL_NAMES}", plain_labels, arrays.get(LABEL_NAMES, NO_LABELS)
        ).tolist()
        tagged = (
            read_tags(labels, names) if len(set(names)) == labels.shape[1] else None
        )
        if tagged is None:
            raise FileError(
                f"{path}: {key} of two axes must hold 0 and 1, with a name per column"
                f" in {LABEL_NAMES}."
            )
        return tagged
    plain = _checked(f"{path}: {key}", plain_labels, labels)
    return plain, classes_of(plain)


@contextmanager
def open_pack(path: Path) -> Iterator[Any]:
    """A `.npz` file; raises `FileError` if it is missing or damaged, also while an
    array is read.

    A pack whose two lists of arrays differ, in number or in names, is refused:
    otherwise one flipped bit could hide an optional array such as `offset`.
    """
    with reporting_damage(path, "pack"), open(path, "rb") as f:
        pack = np.load(f, allow_pickle=False)
        if not isinstance(pack, np.lib.npyio.NpzFile):
            raise FileError(f"{path} is not a pack: it holds one array.")
        archive: Any = pack.zip
        entries = archive.infolist()
        limit = unpacked_limit(path.stat().st_size)
        check_unpacked(path, sum(entry.file_size for entry in entries), limit)
        for entry in entries:
            # compares the name with that in the central directory
            with archive.open(entry) as member:
                _check_size(member, entry.file_size)
        f.seek(-min(END_RECORD_BYTES, f.seek(0, os.SEEK_END)), os.SEEK_END)
        if len(entries) != int.from_bytes(
            f.read().rpartition(b"PK\5\6")[2][6:8], "little"
        ):
            # the end record counts more entries than the directory has
            raise ValueError("it has lost an array")
        yield pack


def _check_size(member: IO[bytes], size: int) -> None:
    """Raise ValueError if a header of NumPy states another size than the entry of the
    archive has.

    NumPy allocates what the header states before it reads the array.
    """
    start = member.peek(len(MAGIC_PREFIX))[: len(MAGIC_PREFIX)]  # type: ignore[attr-defined]
    if start != MAGIC_PREFIX:
        return
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    version = np.lib.format.read_magic(member)
    if version not in read_header:
        raise ValueError(f"it has an array in version {version} of the format")
    shape, _, dtype = read_header[version](member)
    if (
        not dtype.hasobject
        and member.tell() + math.prod(shape) * dtype.itemsize != size
    ):
        raise ValueError("the size of an array is not what its header states")
