"""The model file: a safetensors file whose header holds a JSON document and a digest of
all content.
"""

import json
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from imprint.core import __version__
from imprint.core.arrays import Array, digest
from imprint.core.errors import FileError, ParameterError, reporting, require
from imprint.core.files.atomic import atomic_write
from imprint.core.files.mapped import map_file, release

FORMAT = "imprint-model"
VERSION = 2
# the limit of safetensors; enough for about 300,000 classes
MAX_HEADER_BYTES = 100_000_000
MAX_FILE_BYTES = 8 * 2**30

# the names of NumPy's types in safetensors; the bytes are little-endian
DTYPES = {
    "BOOL": "?",
    "U8": "u1",
    "I8": "i1",
    "U16": "<u2",
    "I16": "<i2",
    "F16": "<f2",
    "U32": "<u4",
    "I32": "<i4",
    "F32": "<f4",
    "U64": "<u8",
    "I64": "<i8",
    "F64": "<f8",
}

Content = tuple[dict[str, Any], dict[str, Array]]
"""A JSON document and named arrays."""


def write(
    path: str | os.PathLike[str],
    document: dict[str, Any],
    arrays: dict[str, Array],
    check: Callable[
        [dict[str, Any], dict[str, Array]], object
    ] = lambda document, arrays: None,
) -> None:
    """Write a document and its arrays, complete or not at all.

    The file is read back before it replaces an older one, and passed to `check`, which
    raises `FileError` if it is not valid.
    """
    text = json.dumps({**document, "written_by": __version__}, sort_keys=True)
    head = {
        "format": FORMAT,
        "version": VERSION,
        "document": text,
        "sha256": _checksum(text, arrays),
    }
    # safetensors requires it
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    raw = save(contiguous, {FORMAT: json.dumps(head)})
    if (
        int.from_bytes(raw[:8], "little") > MAX_HEADER_BYTES
        or len(raw) > MAX_FILE_BYTES
    ):
        raise FileError(f"Cannot write {path}: the model is larger than a file may be.")
    with atomic_write(path) as f:
        f.write(raw)
        del raw  # its memory is needed to read the file
        f.seek(0)
        try:
            check(*parse(f.read(), path))
        except FileError as e:
            raise FileError(
                f"Cannot write {path}: it could not be read again ({e}) Nothing was"
                " replaced."
            ) from None


def read(path: str | os.PathLike[str], *, mapped: bool = False) -> Content:
    """Read a file that `write` wrote; refuse anything else in one sentence.

    The arrays of a `mapped` file take memory only while they are used. The file must
    not be changed in place before they are gone.
    """
    path = Path(path)
    with reporting("read", path):
        if path.is_dir():
            raise FileError(f"{path}: this is a folder, not a model file.")
        if (size := path.stat().st_size) > MAX_FILE_BYTES:
            raise FileError(
                f"{path}: {size:,} bytes is more than a model may have"
                f" ({MAX_FILE_BYTES:,})."
            )
        if not path.is_file():
            raise FileError(f"{path}: this is not an ordinary file.")
        if not mapped or not size:
            return parse(path.read_bytes(), path)
        raw = map_file(path)
        document, arrays = parse(raw, path)
        for array in arrays.values():
            release(array)  # the checksum has read them
        return document, arrays


def parse(raw: bytes | memoryview, path: str | os.PathLike[str]) -> Content:
    """The document and the arrays in the bytes of a file; `path` names it in errors."""
    damaged = FileError(
        f"{path}: the model is damaged or was altered; its checksum does not match."
    )
    length = int.from_bytes(raw[:8], "little")
    if len(raw) < 8 + length <= 8 + MAX_HEADER_BYTES and raw[8:9] == b"{":
        raise damaged
    # our part of the header, before any memory is allocated for the arrays that it
    # claims to have
    try:
        head = json.loads(
            json.loads(bytes(raw[8 : 8 + min(length, MAX_HEADER_BYTES)]))[
                "__metadata__"
            ][FORMAT]
        )
        require(head["format"] == FORMAT)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise not_a_model(path) from None
    if head.get("version") != VERSION:
        raise FileError(
            f"{path}: this model has format version {head.get('version')!r} and this"
            f" imprint reads version {VERSION}; install the imprint that wrote it or a"
            " newer one."
        )
    try:
        document = json.loads(head["document"])
        arrays = _arrays(raw, length)
        require(head.get("sha256") == _checksum(head["document"], arrays))
    except (KeyError, ValueError, TypeError, RecursionError):
        raise damaged from None
    if not isinstance(document, dict):
        raise not_a_model(path)
    return document, arrays


def _arrays(raw: bytes | memoryview, length: int) -> dict[str, Array]:
    """The arrays of a file in the format of safetensors, as views of its bytes: a large
    model is in memory once. `length` is that of its header.

    Raises KeyError, TypeError or ValueError if the header does not describe the bytes.
    """
    header = json.loads(bytes(raw[8 : 8 + length]))
    header.pop("__metadata__")
    body = memoryview(raw)[8 + length :]
    arrays: dict[str, Array] = {}
    position = 0
    for name, entry in sorted(header.items(), key=_offsets):
        begin, end = entry["data_offsets"]
        shape = entry["shape"]
        dtype = np.dtype(DTYPES[entry["dtype"]])
        # every byte belongs to exactly one array
        require(begin == position and end <= len(body))
        require(all(type(side) is int and side >= 0 for side in shape))
        require(end - begin == math.prod(shape) * dtype.itemsize)
        arrays[name] = np.frombuffer(body[begin:end], dtype).reshape(shape)
        position = end
    require(position == len(body))
    return arrays


def _offsets(item: tuple[str, dict[str, list[int]]]) -> list[int]:
    """Where an array begins and ends, from its entry in the header."""
    return item[1]["data_offsets"]


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Report an exception that invalid content raises as one sentence about the
    file.
    """
    try:
        yield
    except ParameterError as e:
        raise FileError(f"{path}: {e}") from None
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError):
        raise not_a_model(path) from None


def not_a_model(path: str | os.PathLike[str]) -> FileError:
    """The error for a file that another program wrote."""
    return FileError(f"{path}: this is not an imprint model.")


def _checksum(text: str, arrays: dict[str, Array]) -> str:
    return digest(
        part for name in sorted(arrays) for part in (name, arrays[name])
    ) + digest([text])
