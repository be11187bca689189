"""Files in the address space, of which only the parts that are used take memory."""

import mmap
import os
from pathlib import Path

import numpy as np

from imprint.core.arrays import Array


def map_file(path: str | os.PathLike[str]) -> memoryview:
    """The bytes of a file that is not empty, for reading."""
    with Path(path).open("rb") as f:
        mapping = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
    return memoryview(mapping)


def release(array: Array) -> None:
    """Let the system take back the memory of a mapped file, which it reads again when
    it is needed; other arrays stay as they are.
    """
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)
