"""Finished embeddings on disk: one folder each, named by content, memory-mapped,
verified when they are opened.

The manifest describes the store. It has the size and the checksum of every file, and a
checksum of itself.
"""

import hashlib
import io
import json
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from imprint.core import __version__
from imprint.core.arrays import Array, digest
from imprint.core.errors import FileError, ParameterError, require
from imprint.core.files.atomic import home, read_checked, write_checked
from imprint.embeddings.pipeline import Skipped

FORMAT = 1
KEY_LENGTH = 32  # hexadecimal digits
# part of every key: a store of another layout has another key
LAYOUT = f"embeddings {FORMAT}"
HEADER_BYTES = 128  # before the first row: the header of a .npy file, written last
ROWS, MANIFEST, LABELS, NAMES = "rows.npy", "manifest.json", "labels.npy", "names.json"
FILES = (ROWS, LABELS, NAMES)
MANIFEST_TYPES = dict(
    key=str, backbone=dict, rows=int, width=int, inputs=int, skipped=list, files=dict
)
CHECKSUM = "digest"  # the key of the checksum of the manifest


@dataclass(frozen=True, eq=False)
class Embeddings:
    """The embeddings of one data set by one backbone: row `i` of `X` belongs to `y[i]`
    and `names[i]`.
    """

    folder: Path
    X: Array = field(repr=False)  # (n, d) float32, memory-mapped, read-only
    y: Array = field(repr=False)  # (n,)
    skipped: tuple[Skipped, ...]  # the inputs that could not be read; they have no row
    manifest: dict[str, Any] = field(repr=False)
    # of all inputs; None: the stored names apply
    input_names: Sequence[str] | None = field(default=None, repr=False)

    @cached_property
    def names(self) -> Sequence[str]:
        """The name of each row, read when it is first needed: a store may have
        millions.
        """
        if self.input_names is None:
            return list(json.loads((self.folder / NAMES).read_bytes()))
        return [self.input_names[i] for i in self.index.tolist()]

    @property
    def key(self) -> str:
        """The address by content: the same backbone and data give the same key
        everywhere.
        """
        return str(self.manifest["key"])

    @property
    def fingerprint(self) -> str:
        """A digest of rows, labels and names as they are stored."""
        return digest(
            [
                f"{name} {entry['sha256']}"
                for name, entry in sorted(self.manifest["files"].items())
            ]
        )

    @property
    def index(self) -> Array:
        # (n,)
        """The index of each row in the data: `0, 1, ...` without the skipped inputs."""
        return np.delete(
            np.arange(self.manifest["inputs"]), [s.index for s in self.skipped]
        )


@dataclass(frozen=True)
class Stored:
    """One entry of `list_embeddings`; `problem` says why a store cannot be opened, and
    is None if it can.
    """

    key: str
    folder: Path
    backbone: str = ""
    rows: int = 0
    width: int = 0
    skipped: int = 0
    bytes: int = 0
    problem: str | None = None


def embeddings_key(backbone: str, data: str) -> str:
    """The key of the embeddings of some data by some backbone, each given by its
    fingerprint.
    """
    return digest([LAYOUT, backbone, data])[:KEY_LENGTH]


def store_folder(folder: str | Path | None = None) -> Path:
    """The folder that holds all embeddings: `folder`, or `embeddings` in the library's
    home.
    """
    return Path(folder) if folder is not None else home() / "embeddings"


def open_embeddings(
    which: str | Path, *, folder: str | Path | None = None, verify: bool = True
) -> Embeddings:
    """Open finished embeddings, given by key or by path, and check that they are what
    was written.

    Sizes, headers, labels and names are always checked. The checksum of the rows reads
    them all; `verify=False` omits it, for processes that share a store which one of
    them has verified.
    """
    path = (
        Path(which)
        if (Path(which) / MANIFEST).is_file()
        else store_folder(folder) / which
    )
    if not path.is_dir():
        call = f"open_embeddings({str(which)!r})"
        raise ParameterError(
            f"{call}: no embeddings have this path, or this key in {path.parent}."
        )
    manifest = _verified_manifest(path, rows=verify)
    shape = (manifest["rows"], manifest["width"])
    X = np.memmap(path / ROWS, dtype="<f4", mode="r", offset=HEADER_BYTES, shape=shape)
    y = np.load(path / LABELS, allow_pickle=False)
    return Embeddings(
        path, X, y, tuple(Skipped(*s) for s in manifest["skipped"]), manifest
    )


def list_embeddings(*, folder: str | Path | None = None) -> list[Stored]:
    """All stores, by backbone and key; rows are not read."""
    folders = store_folder(folder).glob("[0-9a-f]" * KEY_LENGTH)
    return sorted(map(_describe, folders), key=lambda s: (s.backbone, s.key))


def _describe(path: Path) -> Stored:
    try:
        manifest = _verified_manifest(path, rows=False)
    except FileError as e:
        return Stored(path.name, path, problem=str(e))
    size = sum(entry["bytes"] for entry in manifest["files"].values())
    name, skipped = manifest["backbone"]["name"], len(manifest["skipped"])
    return Stored(
        path.name, path, name, manifest["rows"], manifest["width"], skipped, size
    )


def complete(
    folder: Path, labels: Array, names: Iterable[str], facts: dict[str, Any]
) -> None:
    """Add header, labels and names to the rows in a folder and, once these are on the
    disk, the manifest.

    Names are written as a JSON list, one per line, without holding them all in memory.
    """
    with open(folder / ROWS, "r+b") as f:
        f.write(_npy_header(facts["rows"], facts["width"]))
    write_array(folder / LABELS, labels)
    with open(folder / NAMES, "wb") as f:
        f.writelines(
            b"%b\n%b" % (b"," if i else b"[", json.dumps(name).encode())
            for i, name in enumerate(names)
        )
        f.write(b"\n]\n")
    files = {}
    for name in FILES:
        with open(folder / name, "r+b") as f:
            os.fsync(f.fileno())
            files[name] = {"bytes": os.fstat(f.fileno()).st_size, "sha256": _sha256(f)}
    facts = facts | {
        "dtype": "<f4",
        "format": FORMAT,
        "imprint": __version__,
        "files": files,
    }
    write_checked(folder / MANIFEST, facts, CHECKSUM)


def write_array(path: Path, array: Array) -> None:
    """Write a `.npy` file; unlike `np.save`, the error of a full disk says so."""
    with open(path, "wb") as f:
        np.lib.format.write_array_header_1_0(
            f, np.lib.format.header_data_from_array_1_0(array)
        )
        f.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def _npy_header(rows: int, width: int) -> bytes:
    """The header of a float32 `.npy` file; NumPy pads it to `HEADER_BYTES` bytes, so it
    can be written last.
    """
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": "<f4", "fortran_order": False, "shape": (rows, width)}
    )
    return buffer.getvalue()


def _verified_manifest(folder: Path, *, rows: bool) -> dict[str, Any]:
    """The manifest of a store, after every file was compared with it; `rows` includes
    the checksum of the rows.
    """
    try:
        manifest = read_checked(folder / MANIFEST, MANIFEST_TYPES, CHECKSUM)
        shape, skipped = (
            (manifest["rows"], manifest["width"]),
            [Skipped(*s) for s in manifest["skipped"]],
        )
        stated = {
            name: (manifest["files"][name]["bytes"], manifest["files"][name]["sha256"])
            for name in FILES
        }
        require(
            min(shape) > 0 and stated[ROWS][0] == HEADER_BYTES + 4 * math.prod(shape)
        )
        require(len(skipped) == manifest["inputs"] - manifest["rows"])
    except (OSError, KeyError, TypeError, ValueError):
        raise _damaged(folder, f"{MANIFEST} is missing or damaged") from None
    for name, (size, sha256) in stated.items():
        path = folder / name
        if not path.is_file():
            raise _damaged(folder, f"{name} is missing")
        if path.stat().st_size != size:
            raise _damaged(
                folder, f"{name} has {path.stat().st_size:,} bytes instead of {size:,}"
            )
        with open(path, "rb") as f:
            if name == ROWS and f.read(HEADER_BYTES) != _npy_header(*shape):
                raise _damaged(folder, f"{name} does not have its header")
            f.seek(0)
            if (rows or name != ROWS) and _sha256(f) != sha256:
                raise _damaged(folder, f"{name} does not have its checksum")
    return manifest


def _sha256(file: Any) -> str:
    return hashlib.file_digest(file, "sha256").hexdigest()


def _damaged(folder: Path, what: str) -> FileError:
    return FileError(
        f"The embeddings in {folder} are damaged ({what}): delete that folder and"
        " extract again."
    )
