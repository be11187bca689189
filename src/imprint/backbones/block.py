"""Blocks: the parts of an embedding, each read from one tensor of the network."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from imprint.core.arrays import Array
from imprint.core.errors import ParameterError, check_int, unknown

POOLINGS = {
    "none": "the tensor itself, without the axes of length one",
    "mean": "the mean over the places of a map",
    "std": "the standard deviation over the places of a map",
    "quadrants": "the means of the four quarters of a map; odd sides share the middle",
    "tokens": "the mean over the tokens",
    "class_token": "the first token",
    "patches": "the mean over all tokens but the first",
}
"""How a tensor becomes one row of numbers per input."""

VERSION = "blocks 1"  # part of every fingerprint; increase it when an embedding changes


@dataclass(frozen=True, kw_only=True)
class Block:
    """One part of an embedding: where it is read, and how it becomes a row.

    The first block of a backbone is its last layer, the embedding without blocks.
    """

    name: str
    tensor: str  # of the network, by its name there
    pooling: str = "none"  # one of `POOLINGS`
    width: int  # numbers in the embedding
    projected_from: int | None = None
    """The number of values before a fixed orthogonal projection to `width`; None: they
    are not projected.
    """

    def __post_init__(self) -> None:
        for key in ("name", "tensor"):
            if not isinstance(text := getattr(self, key), str) or not text:
                raise ParameterError(f"Block({key}={text!r}): {key} must be a text.")
        if self.pooling not in POOLINGS:
            raise unknown("pooling", self.pooling, POOLINGS)
        check_int("Block", "width", self.width)
        if self.projected_from is not None:
            minimum = self.width + 1
            check_int("Block", "projected_from", self.projected_from, minimum)

    @property
    def pooled_width(self) -> int:
        """The number of values before the projection."""
        return self.projected_from or self.width

    @classmethod
    def from_json(cls, raw: Any) -> "Block":
        """The block in a JSON object, checked."""
        if not isinstance(raw, Mapping):
            raise ParameterError(f"blocks: {raw!r} must be a JSON object.")
        known = [field.name for field in fields(cls)]
        for key in raw:
            if key not in known:
                raise unknown("key of a block", key, known)
        for key in ("name", "tensor", "width"):
            if key not in raw:
                raise ParameterError(f"blocks: {dict(raw)!r} must have {key!r}.")
        return cls(**raw)

    def as_json(self) -> dict[str, Any]:
        """Plain values that `json.dumps` writes and `from_json` reads."""
        values = dict(vars(self))
        if self.projected_from is None:
            del values["projected_from"]
        return values


def projection(rows: int, columns: int) -> Array:
    """A matrix that keeps angles nearly as they are, with orthonormal columns.

    It is the first columns of a cosine transform with random signs. The signs come from
    a digest, so they are the same with every version of NumPy.
    """
    places = np.arange(rows)[:, None] + 0.5
    frequencies = np.arange(1, columns + 1)
    cosines = np.cos(np.pi / rows * places * frequencies)
    source = hashlib.shake_256(f"{VERSION} {rows}".encode())
    bits = np.unpackbits(np.frombuffer(source.digest(-(-rows // 8)), np.uint8))
    signs = 1.0 - 2.0 * bits[:rows, None]
    matrix = np.sqrt(2 / rows) * signs * cosines  # (rows, columns)
    return np.asarray(matrix, np.float32)
