"""Embeddings of single inputs, remembered by content: what was embedded once is found again, wherever it lies.

One folder per backbone holds `rows`, one embedding after another, and `keys`, one entry of 40 bytes for each: the
digest of the input, a checksum of digest and embedding, a checksum of the entry. Rows are written before their entries,
so that an entry without its row does not occur; what fails a checksum is as good as never written, and is computed
again. Writers take turns by a lock; readers need none.
"""

import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from imprint.core.digest import digest
from imprint.core.files.locks import exclusive
from imprint.core.types import Array
from imprint.embeddings.store import store_folder

LAYOUT = "items 1"  # part of every folder's name; counts on when decoding changes, too
KEY, ENTRY = 32, 40  # bytes
KEYS, ROWS, LOCK = "keys", "rows", "lock"


def item_key(item: bytes | str | Array) -> bytes:
    """The address of an input: the digest of a file's bytes, of a text, or of an array."""
    return bytes.fromhex(digest([item]))


class ItemStore:
    """The remembered embeddings of one backbone."""

    def __init__(self, backbone: str, width: int, folder: str | Path | None = None):
        """`backbone` is a fingerprint; `folder` is the one that holds all embeddings."""
        self.width = width
        self.folder = store_folder(folder) / "items" / digest([LAYOUT, backbone, str(width)])[:32]

    def is_used(self) -> bool:
        """Whether anything has been remembered."""
        return (self.folder / KEYS).is_file()

    def find(self, keys: Sequence[bytes]) -> tuple[Array, Array]:
        """Embeddings (n, width) and which of them are known (n,); the others are zero."""
        X, known = np.zeros((len(keys), self.width), np.float32), np.zeros(len(keys), bool)
        entries = self._entries()
        wanted = set(keys)
        places = {key: at for at in range(0, len(entries), ENTRY) if (key := entries[at : at + KEY]) in wanted}
        with suppress(OSError), open(self.folder / ROWS, "rb") as rows:
            for i, key in enumerate(keys):
                if key in places:
                    raw = self._row(rows, entries[places[key] : places[key] + ENTRY], places[key] // ENTRY)
                    known[i] = raw is not None
                    X[i] = np.frombuffer(raw, "<f4") if raw is not None else 0
        return X, known

    def add(self, keys: Sequence[bytes], X: Array) -> None:
        """Remember embeddings; raises `OSError` where the disk does not take them, which does no harm."""
        rows = np.ascontiguousarray(X, dtype="<f4")
        entries = b"".join(map(_entry, keys, rows))
        self.folder.mkdir(parents=True, exist_ok=True)
        with exclusive(self.folder / LOCK):
            with open(self.folder / KEYS, "ab") as known, open(self.folder / ROWS, "ab"):
                end = known.tell() // ENTRY
                known.truncate(end * ENTRY)  # the half of an entry that a kill may leave
            with open(self.folder / ROWS, "r+b") as f:
                f.seek(end * self._size)
                f.write(rows.data)
                f.truncate()
            with open(self.folder / KEYS, "ab") as f:
                f.write(entries)

    @property
    def _size(self) -> int:
        return 4 * self.width

    def _entries(self) -> bytes:
        try:
            found = (self.folder / KEYS).read_bytes()
        except OSError:
            return b""
        return found[: len(found) // ENTRY * ENTRY]

    def _row(self, rows: Any, entry: bytes, place: int) -> bytes | None:
        """The bytes of a row, unless they or the entry are not what was written."""
        rows.seek(place * self._size)
        raw: bytes = rows.read(self._size)
        whole = len(raw) == self._size and entry == _entry(entry[:KEY], raw)
        return raw if whole else None


def _entry(key: bytes, row: Any) -> bytes:
    start = key + zlib.crc32(row, zlib.crc32(key)).to_bytes(4, "little")
    return start + zlib.crc32(start).to_bytes(4, "little")
