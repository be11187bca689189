"""Finished embeddings on disk: one folder each, named by content, memory-mapped, verified on open."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, overload

import numpy as np

from imprint.core.digest import digest
from imprint.core.errors import FileError, ParameterError
from imprint.core.types import Array
from imprint.embeddings.manifest import (
    HEADER,
    LABELS,
    MANIFEST,
    NAMES,
    ROWS,
    read_manifest,
    read_names,
    verify_files,
)
from imprint.embeddings.types import Skipped

LAYOUT = "embeddings 1"  # part of every key: another layout never meets this one's folders


@dataclass(frozen=True, eq=False)
class Embeddings:
    """The embeddings of one data set by one backbone: row `i` of `X` belongs to `y[i]` and `names[i]`."""

    folder: Path
    X: Array = field(repr=False)  # (n, d) float32, memory-mapped, read-only
    y: Array = field(repr=False)  # (n,)
    names: Sequence[str] = field(repr=False)
    skipped: tuple[Skipped, ...]
    """The inputs that could not be read; they have no row."""
    manifest: dict[str, Any] = field(repr=False)

    @property
    def key(self) -> str:
        """The address by content: the same backbone and data give the same key everywhere."""
        return str(self.manifest["key"])

    @property
    def fingerprint(self) -> str:
        """A digest of rows, labels and names as they are stored."""
        return digest([f"{name} {entry['sha256']}" for name, entry in sorted(self.manifest["files"].items())])

    @property
    def index(self) -> Array:
        """The place of each row in the data: `0, 1, ...` without what was skipped."""  # (n,)
        return np.delete(np.arange(self.manifest["inputs"]), [s.index for s in self.skipped])


class Names(Sequence[str]):
    """Names that are read when the first one is asked for: a store may have millions."""

    def __init__(self, read: Callable[[], Sequence[str]], size: int):
        self._read, self._size = read, size

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, i: int) -> str: ...
    @overload
    def __getitem__(self, i: slice) -> Sequence[str]: ...
    def __getitem__(self, i: int | slice) -> str | Sequence[str]:
        return self._names[i]

    @cached_property
    def _names(self) -> Sequence[str]:
        return self._read()


@dataclass(frozen=True)
class Stored:
    """A line in the list of what is stored; `problem` says why a folder cannot be opened."""

    key: str
    folder: Path
    backbone: str = ""
    rows: int = 0
    width: int = 0
    skipped: int = 0
    bytes: int = 0
    problem: str | None = None


def embeddings_key(backbone: str, data: str) -> str:
    """The key of the embeddings of some data by some backbone, each given by its fingerprint.

    >>> embeddings_key("b5", "d2")
    'a83ee7da1198feea56eed6e53cdd3573'
    """
    return digest([LAYOUT, backbone, data])[:32]


def store_folder(folder: str | Path | None = None) -> Path:
    """The folder that holds all embeddings: `folder`, or `embeddings` in the library's home."""
    if folder is not None:
        return Path(folder)
    from imprint.core.files.home import home

    return home() / "embeddings"


def open_embeddings(which: str | Path, *, folder: str | Path | None = None, verify: bool = True) -> Embeddings:
    """Open finished embeddings, given by key or by path, and check that they are what was written.

    Sizes, headers, labels and names are always checked. `verify=False` leaves out the checksum of the rows,
    which reads them all: for processes that share a store which one of them has verified.
    """
    place = _place(which, folder)
    manifest = read_manifest(place)
    verify_files(place, manifest, rows=verify)
    shape = (manifest["rows"], manifest["width"])
    X = np.memmap(place / ROWS, dtype="<f4", mode="r", offset=HEADER, shape=shape)
    y = np.load(place / LABELS, allow_pickle=False)
    names = Names(partial(read_names, place / NAMES), len(X))
    return Embeddings(place, X, y, names, tuple(Skipped(*s) for s in manifest["skipped"]), manifest)


def list_embeddings(*, folder: str | Path | None = None) -> list[Stored]:
    """What is stored, by backbone and key; rows are not read."""
    root = store_folder(folder)
    found = [_describe(p) for p in root.iterdir() if re.fullmatch("[0-9a-f]{32}", p.name)] if root.is_dir() else []
    return sorted(found, key=lambda s: (s.backbone, s.key))


def _describe(place: Path) -> Stored:
    try:
        manifest = read_manifest(place)
        verify_files(place, manifest, rows=False)
    except FileError as e:
        return Stored(place.name, place, problem=str(e))
    size = sum(entry["bytes"] for entry in manifest["files"].values())
    name, skipped = manifest["backbone"]["name"], len(manifest["skipped"])
    return Stored(place.name, place, name, manifest["rows"], manifest["width"], skipped, size)


def _place(which: str | Path, folder: str | Path | None) -> Path:
    if (Path(which) / MANIFEST).is_file():
        return Path(which)
    place = store_folder(folder) / which
    if not place.is_dir():
        raise ParameterError(
            f"open_embeddings({str(which)!r}): no embeddings have this path, or this key in {place.parent}."
        )
    return place
