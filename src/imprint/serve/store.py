"""The files of a classroom beside its journal: pictures as they came, embeddings, and pictures to be shown."""

import hashlib
import io
import os
import zlib
from contextlib import suppress
from pathlib import Path
from threading import Lock

import numpy as np

from imprint.core.errors import FileError
from imprint.core.files.atomic import atomic_write, make_folder
from imprint.core.types import Array
from imprint.modalities.image import read_picture

SIDES = {"thumbnail": 224, "picture": 1280}
"""The longest side of pictures that are shown."""
QUALITY = 85


def digest_of(raw: bytes) -> str:
    """What a picture or text is known by."""
    return hashlib.sha256(raw).hexdigest()


class Pictures:
    """Files by the digest of their content: written once, never changed, read back only if the digest still fits."""

    def __init__(self, folder: Path):
        self.folder = folder

    def keep(self, raw: bytes) -> str:
        """Write a file; when this returns it is on the disk."""
        digest = digest_of(raw)
        place = self._place(digest)
        if not place.exists():
            _write(place, raw)
        return digest

    def read(self, digest: str) -> bytes:
        """A file as it came."""
        try:
            raw = self._place(digest).read_bytes()
        except OSError as e:
            raise FileError(f"Cannot read {self._place(digest)}: {e.strerror}.") from None
        if digest_of(raw) != digest:
            raise FileError(f"{self._place(digest)}: the file is damaged; its digest does not match.")
        return raw

    def shown(self, digest: str, kind: str) -> bytes:
        """A picture for the page: decoded and encoded anew as JPEG, so that nothing else of the file gets there."""
        place = self.folder.parent / "shown" / kind / digest[:2] / digest
        with suppress(OSError):
            check, _, made = place.read_bytes().partition(b"\n")
            if check == digest_of(made).encode():
                return made
        made = encoded(read_picture(self.read(digest), SIDES[kind]), SIDES[kind])
        with suppress(FileError):  # where there is no room it is made every time
            _write(place, digest_of(made).encode() + b"\n" + made)
        return made

    def _place(self, digest: str) -> Path:
        return self.folder / digest[:2] / digest


def _write(place: Path, raw: bytes) -> None:
    make_folder(place.parent)
    with atomic_write(place) as f:
        f.write(raw)


def encoded(picture: Array, side: int) -> bytes:
    """Pixels as a JPEG that is no longer and no wider than `side`."""
    from PIL import Image

    image: Image.Image = Image.fromarray(picture)
    image.thumbnail((side, side))
    out = io.BytesIO()
    image.save(out, "JPEG", quality=QUALITY)
    return out.getvalue()


class Rows:
    """Embeddings by digest, in memory and in a file. What the file lacks or has wrong is computed again, so it is
    never waited for."""

    def __init__(self, path: Path, width: int):
        self._record = np.dtype([("digest", "V32"), ("check", "<u4"), ("row", "<f4", (width,))])
        self._rows: dict[str, Array] = {}
        self._lock = Lock()
        try:
            path.touch()
            raw = path.read_bytes()
            whole = len(raw) // self._record.itemsize
            for record in np.frombuffer(raw, self._record, whole):
                if _check(record["digest"].tobytes(), record["row"]) == record["check"]:
                    self._rows[record["digest"].tobytes().hex()] = np.array(record["row"], np.float32)
            self._file = open(path, "r+b", buffering=0)  # noqa: SIM115 - held until `close`
            self._file.truncate(whole * self._record.itemsize)
            self._file.seek(0, os.SEEK_END)
        except OSError as e:
            raise FileError(f"Cannot write {path}: {e.strerror or e}.") from None

    def __contains__(self, digest: str) -> bool:
        return digest in self._rows

    def __getitem__(self, digest: str) -> Array:
        return self._rows[digest]

    def keep(self, digest: str, row: Array) -> None:
        """Remember an embedding."""
        record = np.zeros((), self._record)
        name = bytes.fromhex(digest)
        record["digest"], record["check"], record["row"] = np.void(name), _check(name, row), row
        with self._lock:
            if digest not in self._rows:
                self._rows[digest] = np.array(row, np.float32)
                self._append(record.tobytes())

    def _append(self, raw: bytes) -> None:
        """Write a record whole; where there is no room, not at all."""
        end = self._file.tell()
        with suppress(OSError):
            if self._file.write(raw) == len(raw):
                return
        self._file.truncate(end)
        self._file.seek(end)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def _check(name: bytes, row: Array) -> int:
    return zlib.crc32(np.ascontiguousarray(row, "<f4").tobytes(), zlib.crc32(name))
