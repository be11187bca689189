"""IDX, the format of MNIST: a magic number, the sizes, then the bytes."""

import gzip
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from imprint.core.errors import FileError
from imprint.core.types import Array


def read_idx(path: Path) -> Array:
    """The uint8 array in a gzipped IDX file."""
    with gzip.open(path) as f:
        raw = f.read()
    head = np.frombuffer(raw, ">u4", count=1 + raw[3] if len(raw) > 3 else 0)
    if len(raw) < 8 or raw[:3] != b"\0\0\x08" or len(raw) != head.nbytes + np.prod(head[1:], dtype=np.int64):
        raise FileError(f"{path} is not a whole IDX file of bytes.")
    return np.frombuffer(raw, np.uint8, offset=head.nbytes).reshape(head[1:].tolist())


def read_idx_pairs(files: Mapping[str, Path]) -> dict[str, tuple[Array, Array]]:
    """Images and labels of both splits from the four files that MNIST and its followers publish."""
    return {
        split: (read_idx(files[f"{p}-images-idx3-ubyte.gz"]), read_idx(files[f"{p}-labels-idx1-ubyte.gz"]))
        for split, p in (("train", "train"), ("test", "t10k"))
    }
