"""Packs as plain arrays in a cache, memory-mapped: unpacked once, verified before they are used."""

import hashlib
import os
import shutil
import tempfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import numpy as np

from imprint.core.errors import FileError
from imprint.core.files.notes import read_note, write_note
from imprint.core.types import Array
from imprint.embeddings.pack import Pack, read_pack

ARRAYS = ("X", "y", "X_test", "y_test")
NOTE = "unpacked.json"


def open_unpacked(path: Path, cache: Path) -> Pack:
    """A pack whose arrays are memory-mapped from a folder in `cache`.

    The folder is called after a digest of the pack's bytes, and what lies there is verified byte by byte: a pack that
    has changed, or a cache that is damaged, leads to unpacking it anew.
    """
    place = cache / _digest(path, *_state(path))[:32]
    fingerprint = _verified(place)
    if fingerprint is None:
        _unpack(path, place)
        fingerprint = _verified(place)
    if fingerprint is None:
        raise FileError(f"{place}: what was written there cannot be read back; is the disk full or damaged?")
    X, y, X_test, y_test = (np.load(file, mmap_mode="r") for file in _files(place))
    return Pack(X, y, X_test, y_test, fingerprint)


def _files(place: Path) -> list[Path]:
    return [place / f"{name}.npy" for name in ARRAYS]


def _state(path: Path) -> tuple[int, ...]:
    """What changes when a file is written to."""
    s = path.stat()
    return s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns


@lru_cache(1024)
def _digest(path: Path, *state: int) -> str:
    """The digest of a file's bytes; read again by this process only when the file was written to."""
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def _verified(place: Path) -> str | None:
    """The fingerprint of the pack that was unpacked there, if every byte is as it was written."""
    try:
        note = read_note(place / NOTE, {"fingerprint": str, "files": dict})
        whole = all(_digest(file, *_state(file)) == note["files"][file.name] for file in _files(place))
    except (OSError, KeyError):
        return None
    return str(note["fingerprint"]) if whole else None


def _save(path: Path, array: Array) -> None:
    """As `np.save`, which on a full disk says only how many values it wrote."""
    with open(path, "wb") as f:
        np.lib.format.write_array_header_1_0(f, np.lib.format.header_data_from_array_1_0(array))
        f.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def _unpack(path: Path, place: Path) -> None:
    """Make the folder of plain arrays, whole or not at all; of two that try, one wins and both are right."""
    pack = read_pack(path)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=place.parent, prefix=f".{place.name}."))
        try:
            for file, array in zip(_files(made), pack[:4]):
                _save(file, array)
            files = {file.name: _digest(file, *_state(file)) for file in _files(made)}
            write_note(made / NOTE, {"fingerprint": pack.fingerprint, "files": files})
            shutil.rmtree(place, ignore_errors=True)  # what is there is damaged
            with suppress(OSError):  # another process was first
                os.rename(made, place)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    except FileError:
        raise
    except OSError as e:
        raise FileError(f"Cannot write {place.parent}: {e.strerror or e}.") from None
