"""A matrix that grows block by block, of which never much more than one copy is in memory."""

import numpy as np

from imprint.core.types import Array

CHUNK = 1 << 26  # bytes; the system takes memory of this size back as soon as it is let go


class GrowingRows:
    """Float32 rows of one width, kept in chunks until all are there.

    >>> rows = GrowingRows()
    >>> rows.add(np.ones((2, 3))), rows.add(np.zeros((1, 3)))
    (None, None)
    >>> rows.array().shape
    (3, 3)
    """

    def __init__(self) -> None:
        self._chunks: list[Array] = []
        self._free = self._total = 0  # rows: unused in the last chunk, used in all

    def add(self, block: Array) -> None:
        """Append a block of rows."""
        while len(block):
            if not self._free:
                self._free = max(1, CHUNK // (4 * block.shape[1]))
                self._chunks.append(np.empty((self._free, block.shape[1]), dtype=np.float32))
            start, part = len(self._chunks[-1]) - self._free, block[: self._free]
            self._chunks[-1][start : start + len(part)] = part
            self._free -= len(part)
            self._total += len(part)
            block = block[len(part) :]

    def array(self) -> Array:
        """The rows, read-only; nothing is left to add to."""
        rows = np.empty((self._total, self._chunks[0].shape[1] if self._chunks else 0), dtype=np.float32)
        start = 0
        while self._chunks:
            chunk = self._chunks.pop(0)[: self._total - start]
            rows[start : start + len(chunk)] = chunk
            start += len(chunk)
            del chunk
        rows.flags.writeable = False
        return rows
