"""Packs: one `.npz` file with the embeddings of a training and a test split, as float32
or as bytes.

A pack holds `train`, `train_labels`, `test`, `test_labels`. If the rows are unsigned
bytes, it also holds `scale`, and perhaps `offset`, each one number or one per column:
the embedding is `rows * scale + offset`. `blocks` holds the widths of the blocks of the
embeddings, if there are several, and `block_names` what they are called.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from imprint.core.arrays import Array, digest
from imprint.core.errors import FileError, ParameterError, reporting
from imprint.core.files.atomic import atomic_write, read_checked, write_checked
from imprint.datasets import SPLITS
from imprint.datasets.numpy_files import (
    BLOCK_NAMES,
    BLOCKS,
    FACTORS,
    open_pack,
    to_blocks,
    to_embeddings,
    to_labels,
)
from imprint.embeddings.store import write_array

ARRAYS = ("train", "train_labels", "test", "test_labels")
# the files of an unpacked pack
UNPACKED = ("X.npy", "y.npy", "X_test.npy", "y_test.npy")
NOTE = "unpacked.json"


class Pack(NamedTuple):
    """Float32 embeddings of two splits with their labels; `fingerprint` is a digest of
    the stored arrays.
    """

    X: Array  # (n, d)
    y: Array  # (n,)
    X_test: Array  # (m, d)
    y_test: Array  # (m,)
    fingerprint: str
    blocks: tuple[int, ...] = ()  # the widths of blocks; () for a single one
    block_names: tuple[str, ...] = ()  # () if the pack does not state them


def read_pack(path: str | os.PathLike[str]) -> Pack:
    """Read a pack; rows of bytes are converted to float32, in float32 arithmetic."""
    with open_pack(Path(path)) as pack:
        stored = {
            name: np.asarray(pack[name])
            for name in (*ARRAYS, *FACTORS, BLOCKS, BLOCK_NAMES)
            if name in pack.files
        }
    return _to_pack(Path(path), stored)


def _to_pack(path: Path, stored: dict[str, Array]) -> Pack:
    """The pack in stored arrays, refused if they do not follow the rules of a pack."""
    if missing := [name for name in ARRAYS if name not in stored]:
        raise FileError(
            f"{path} is not a pack of embeddings: it has no {', '.join(missing)}."
        )
    X, X_test = (
        to_embeddings(f"{path}: {name}", stored[name], stored) for name in SPLITS
    )
    if X.shape[1] != X_test.shape[1]:
        raise FileError(
            f"{path}: train and test must have the same width, not {X.shape[1]} and"
            f" {X_test.shape[1]}."
        )
    for name in SPLITS:
        to_labels(path, f"{name}_labels", stored, name, len(stored[name]))
    # names do not change the embeddings
    counted = sorted(stored.keys() - {BLOCK_NAMES})
    fingerprint = digest(part for name in counted for part in (name, stored[name]))
    blocks = to_blocks(path, stored, X.shape[1])
    names = _block_names(path, stored, len(blocks))
    labels = stored["train_labels"], stored["test_labels"]
    return Pack(X, labels[0], X_test, labels[1], fingerprint, blocks, names)


def _block_names(path: Path, stored: dict[str, Array], count: int) -> tuple[str, ...]:
    """What the blocks are called; empty if the pack does not say."""
    if BLOCK_NAMES not in stored or not count:
        return ()
    names = tuple(map(str, np.atleast_1d(stored[BLOCK_NAMES]).tolist()))
    if len(set(names)) != count:
        raise FileError(
            f"{path}: {BLOCK_NAMES} must be {count} different texts, one for each"
            " block."
        )
    return names


def write_pack(
    path: str | os.PathLike[str],
    X: Array,
    y: Array,
    X_test: Array,
    y_test: Array,
    *,
    as_bytes: bool = False,
    blocks: Mapping[str, int] | None = None,
) -> None:
    """Write a pack as float32, or `as_bytes`: smaller, with a maximum error of half of
    a column's `scale`.

    `blocks` are the widths of the blocks of the embeddings, by name.
    """
    rows = {
        "train": np.asarray(X).astype("<f4"),
        "test": np.asarray(X_test).astype("<f4"),
    }
    stored = rows | {"train_labels": np.asarray(y), "test_labels": np.asarray(y_test)}
    stored |= block_arrays(blocks or {})
    try:
        _to_pack(Path(path), stored)
    except FileError as e:
        raise ParameterError(f"write_pack: {e}") from None
    if as_bytes:
        stored |= _as_bytes(stored["train"], stored["test"])
    with atomic_write(path) as f:
        np.savez_compressed(f, allow_pickle=False, **stored)


def block_arrays(blocks: Mapping[str, int]) -> dict[str, Array]:
    """The arrays of a pack that state blocks; none if there are none."""
    if not blocks:
        return {}
    return {
        BLOCKS: np.array(list(blocks.values()), np.int64),
        BLOCK_NAMES: np.array(list(blocks)),
    }


def _as_bytes(train: Array, test: Array) -> dict[str, Array]:
    low = np.minimum(train.min(axis=0), test.min(axis=0))
    high = np.maximum(train.max(axis=0), test.max(axis=0))
    scale = ((high - low) / 255).astype(np.float32)
    scale[scale == 0] = 1
    rows = {
        name: np.rint((x - low) / scale).astype(np.uint8)
        for name, x in (("train", train), ("test", test))
    }
    return rows | {"scale": scale, "offset": low}


def open_unpacked(path: Path, cache: Path) -> Pack:
    """The pack with its arrays memory-mapped from a folder in `cache`, which is created
    if needed.

    The folder is named by a digest of the pack's bytes, and its files are verified byte
    by byte: a pack that has changed, or a damaged cache, is unpacked again.
    """
    folder = cache / _digest(path)[:32]
    if (fingerprint := _verified(folder)) is None:
        _unpack(path, folder)
        if (fingerprint := _verified(folder)) is None:
            raise FileError(
                f"{folder}: what was written there cannot be read back; is the disk"
                " full or damaged?"
            )
    X, y, X_test, y_test = (np.load(folder / name, mmap_mode="r") for name in UNPACKED)
    return Pack(X, y, X_test, y_test, fingerprint, *_stated_blocks(folder))


def _digest(path: Path) -> str:
    """The digest of a file's bytes; this process reads them again only when the file
    was written to.
    """
    status = path.stat()
    return _digest_of_state(
        path, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    )


@lru_cache(1024)
def _digest_of_state(path: Path, *state: int) -> str:
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def _verified(folder: Path) -> str | None:
    """The fingerprint of the pack that was unpacked there, if every byte is as it was
    written.
    """
    try:
        note = read_checked(folder / NOTE, {"fingerprint": str, "files": dict})
        intact = {name: _digest(folder / name) for name in UNPACKED} == note["files"]
    except OSError:
        return None
    return str(note["fingerprint"]) if intact else None


def _stated_blocks(folder: Path) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The widths and the names of the blocks."""
    note = read_checked(folder / NOTE, {"fingerprint": str, "files": dict})
    return tuple(note.get(BLOCKS, [])), tuple(note.get(BLOCK_NAMES, []))


def _unpack(path: Path, folder: Path) -> None:
    """Create the folder of plain arrays in one step; if two processes try, either
    result is correct.
    """
    pack = read_pack(path)
    with reporting("write", folder.parent):
        folder.parent.mkdir(parents=True, exist_ok=True)
        options: Any = {
            "dir": folder.parent,
            "prefix": f".{folder.name}.",
            "ignore_cleanup_errors": True,
        }
        with tempfile.TemporaryDirectory(**options) as temporary:
            for name, array in zip(UNPACKED, pack[:4]):
                write_array(Path(temporary, name), array)
            files = {name: _digest(Path(temporary, name)) for name in UNPACKED}
            write_checked(
                Path(temporary, NOTE),
                {
                    "fingerprint": pack.fingerprint,
                    "files": files,
                    BLOCKS: list(pack.blocks),
                    BLOCK_NAMES: list(pack.block_names),
                },
            )
            shutil.rmtree(folder, ignore_errors=True)  # it is damaged
            with suppress(OSError):  # another process was first
                os.rename(temporary, folder)
