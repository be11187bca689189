"""The model file: a safetensors file whose header holds a JSON document and a digest of all content."""

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as read_tensors

from imprint.core import __version__
from imprint.core.digest import digest
from imprint.core.errors import FileError
from imprint.core.files.atomic import atomic_write
from imprint.core.types import Array

FORMAT = "imprint-model"
VERSION = 2
TYPES = {f"{kind}{bits}": f"{kind[0].upper()}{bits}" for kind in ("int", "uint", "float") for bits in (8, 16, 32, 64)}
TYPES["bool"] = "BOOL"
"""The safetensors name of each NumPy type."""
LARGEST_HEADER = 100_000_000  # as safetensors has it: some 300,000 classes
LARGEST_FILE = 8 * 2**30


Check = Callable[[dict[str, Any], dict[str, Array]], object]
"""A function that reads a document and its arrays, and raises `FileError` if they are not valid."""


def write(
    path: str | os.PathLike[str], document: dict[str, Any], arrays: dict[str, Array], check: Check | None = None
) -> None:
    """Write a document and its arrays, complete or not at all.

    The file is read back and passed to `check` before it replaces an older one.
    """
    text = json.dumps({**document, "written_by": __version__}, sort_keys=True)
    whole = {name: np.ascontiguousarray(a) for name, a in arrays.items()}
    head = {"format": FORMAT, "version": VERSION, "document": text, "sha256": _checksum(text, whole)}
    header = _header(whole, {FORMAT: json.dumps(head)})
    if len(header) > LARGEST_HEADER or len(header) + sum(a.nbytes for a in whole.values()) > LARGEST_FILE:
        raise FileError(f"Cannot write {path}: the model is larger than a file may be.")
    with atomic_write(path) as f:
        f.write(struct.pack("<Q", len(header)) + header)
        for array in whole.values():
            f.write(array.reshape(-1).view(np.uint8).data)  # straight from memory: no second copy of a large model
        f.flush()
        try:
            os.lseek(f.fileno(), 0, os.SEEK_SET)
            with os.fdopen(os.dup(f.fileno()), "rb") as written:
                content = parse(written.read(), path)
            if check is not None:
                check(*content)
        except FileError as e:
            raise FileError(f"Cannot write {path}: it could not be read again ({e}) Nothing was replaced.") from None


def _header(arrays: dict[str, Array], metadata: dict[str, str]) -> bytes:
    """The JSON with which a safetensors file begins."""
    entries: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name, array in arrays.items():
        start, end = end, end + array.nbytes
        entries[name] = {"dtype": TYPES[array.dtype.name], "shape": array.shape, "data_offsets": [start, end]}
    text = json.dumps(entries).encode()
    return text + b" " * (-len(text) % 8)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read what `write` wrote; refuse anything else in one sentence."""
    return parse(_bytes_of(Path(path)), path)


def parse(raw: bytes, path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Array]]:
    """The document and the arrays in the bytes of a file; `path` names it in errors."""
    head = _head(raw, path)
    if head.get("version") != VERSION:
        raise FileError(
            f"{path}: this model has format version {head.get('version')!r} and this imprint reads version {VERSION}; "
            f"install the imprint that wrote it or a newer one."
        )
    try:
        arrays = read_tensors(raw)
        document = json.loads(head["document"])
    except (SafetensorError, KeyError, ValueError, TypeError, RecursionError):
        raise _damaged(path) from None
    if head.get("sha256") != _checksum(head["document"], arrays):
        raise _damaged(path)
    if not isinstance(document, dict):
        raise foreign(path)
    return document, arrays


def require(sound: bool) -> None:
    """Raise ValueError where something that was read is not as it must be."""
    if not sound:
        raise ValueError


def foreign(path: str | os.PathLike[str]) -> FileError:
    """The sentence for a file that some other program wrote."""
    return FileError(f"{path}: this is not an imprint model.")


def _damaged(path: str | os.PathLike[str]) -> FileError:
    return FileError(f"{path}: the model is damaged or was altered; its checksum does not match.")


def _checksum(text: str, arrays: dict[str, Array]) -> str:
    return digest(part for name in sorted(arrays) for part in (name, arrays[name])) + digest([text])


def _bytes_of(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if path.is_dir():
            raise FileError(f"{path}: this is a folder, not a model file.")
        if not path.is_file():
            raise FileError(f"{path}: this is not an ordinary file.")
        if size > LARGEST_FILE:
            raise FileError(f"{path}: {size:,} bytes is more than a model may have ({LARGEST_FILE:,}).")
        return path.read_bytes()
    except FileError:
        raise
    except OSError as e:
        problem = "there is no such file" if isinstance(e, FileNotFoundError) else f"cannot be read: {e.strerror}"
        raise FileError(f"{path}: {problem}.") from None


def _head(raw: bytes, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Our part of the header, read before any memory is allocated for the arrays that it claims to have."""
    if len(raw) < 8:
        raise foreign(path)
    (length,) = struct.unpack_from("<Q", raw)
    if length > LARGEST_HEADER:
        raise foreign(path)
    if 8 + length > len(raw):
        raise _damaged(path) if raw[8:9] == b"{" else foreign(path)
    try:
        head = json.loads(json.loads(raw[8 : 8 + length])["__metadata__"][FORMAT])
        if head["format"] != FORMAT:
            raise KeyError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise foreign(path) from None
    return dict(head)
