"""How much a compressed file may unpack to, so that memory is in proportion to the
file.
"""

import gzip
import io
from pathlib import Path
from typing import Any

from imprint.core.errors import FileError

# Every file may unpack to this many bytes: less than a Python process with NumPy, and
# the pixels of the largest image.
MIN_UNPACKED_BYTES = 1 << 26
# Larger ones may unpack to this many times their size. Text and tables are compressed
# to a twentieth at best, sparse embeddings to a fiftieth; Deflate can reach 1:1,032.
MAX_UNPACKED_RATIO = 100


def unpacked_limit(packed: int) -> int:
    """The number of bytes that a file of `packed` bytes may unpack to."""
    return max(MIN_UNPACKED_BYTES, MAX_UNPACKED_RATIO * packed)


def excess(limit: int) -> str:
    """What is wrong with a file that unpacks to more than the limit."""
    ratio = (
        f"{MAX_UNPACKED_RATIO} times its size"
        if limit > MIN_UNPACKED_BYTES
        else "the limit for a small file"
    )
    return f"unpacks to over {limit / 1e6:,.0f} MB, {ratio}"


def check_unpacked(path: Path, size: int, limit: int) -> None:
    """Refuse a file that unpacks to `size` bytes if that is more than the limit."""
    if size > limit:
        raise FileError(f"{path} {excess(limit)}; save it without compression.")


class LimitedGzip(io.RawIOBase):
    """The content of a `.gz` file; reading more than the limit raises `FileError`."""

    def __init__(self, path: Path):
        self._path = path
        self._file = gzip.open(path)  # noqa: SIM115 - `close` closes it
        self._size = 0
        self._limit = unpacked_limit(path.stat().st_size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        content = self._file.read(len(buffer))
        buffer[: len(content)] = content
        self._size += len(content)
        check_unpacked(self._path, self._size, self._limit)
        return len(content)

    def close(self) -> None:
        self._file.close()
        super().close()


def open_binary(path: Path) -> io.BufferedIOBase:
    """A file for reading, decompressed if its name ends in `.gz`."""
    if path.suffix.lower() == ".gz":
        return io.BufferedReader(LimitedGzip(path))
    return open(path, "rb")
