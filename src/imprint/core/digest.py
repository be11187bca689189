"""Stable digests: the same value gives the same digest in every process, on every machine."""

import hashlib
from collections.abc import Iterable

import numpy as np

from imprint.core.arrays import Array, plain


def digest(parts: Iterable[bytes | str | Array]) -> str:
    """SHA-256 of a sequence of parts, each prefixed by its type and length."""
    h = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            h.update(f"array {part.dtype.str} {part.shape}:".encode())
            h.update(np.ascontiguousarray(part).data)
        else:
            raw = part.encode(errors="surrogatepass") if isinstance(part, str) else part
            h.update(f"{type(part).__name__} {len(raw)}:".encode())
            h.update(raw)
    return h.hexdigest()


def class_entropy(seed: int, label: object) -> tuple[int, int]:
    """The seed of a class for `numpy.random.default_rng`; it depends only on the seed and on the value of the label."""
    value = plain(label)
    if isinstance(value, bool | float) and float(value).is_integer():
        value = int(value)
    return seed, int(digest([type(value).__name__, repr(value)])[:32], 16)


def class_rng(seed: int, label: object) -> "np.random.Generator":  # quoted: numpy.random is imported on first use
    """The random number generator of a class."""
    return np.random.default_rng(class_entropy(seed, label))
