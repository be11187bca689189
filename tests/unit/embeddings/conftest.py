"""A tiny backbone and tiny data: real arithmetic, no files, all calls recorded."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from imprint.core.arrays import digest
from imprint.core.errors import UnreadableInput


class Backbone:
    """A fixed random projection of the pixels, which records the sizes of its batches."""

    def __init__(self, width: int = 8, pixels: int = 16):
        self.record, self.width = SimpleNamespace(name="projection"), width
        self.matrix = (
            np.random.default_rng(0).normal(size=(pixels, width)).astype(np.float32)
        )
        self.fingerprint = digest(["projection", self.matrix])
        self.batches: list[int] = []

    def prepare(self, item: Any) -> Any:
        return np.asarray(item, np.float32).ravel() / 255

    def embed(self, batch: Any) -> Any:
        self.batches.append(len(batch))
        return np.tanh(batch @ self.matrix)


class Images:
    def __init__(self, pixels: Any, unreadable: Sequence[int]):
        self.pixels, self.unreadable = pixels, set(unreadable)

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, i: int) -> Any:
        if i in self.unreadable:
            raise UnreadableInput(f"/far/away/{i}.png", "the file is truncated")
        return self.pixels[i]


def split(
    n: int = 50,
    unreadable: Sequence[int] = (),
    labels: Any = None,
    prefix: str = "train",
) -> Any:
    pixels = np.random.default_rng(1).integers(0, 256, (n, 4, 4), np.uint8)
    labels = np.arange(n) % 3 if labels is None else np.asarray(labels)
    return SimpleNamespace(
        inputs=Images(pixels, unreadable),
        labels=labels,
        names=[f"{prefix}/{i}" for i in range(n)],
        fingerprint=digest(
            [pixels, "".join(map(str, labels)), repr(sorted(unreadable))]
        ),
    )


@pytest.fixture
def make_backbone() -> Any:
    return Backbone


@pytest.fixture
def make_split() -> Any:
    return split


@pytest.fixture
def contents() -> Any:
    """The bytes of every file in a folder, by relative path."""

    def read(folder: Path) -> dict[str, bytes]:
        return {
            str(p.relative_to(folder)): p.read_bytes()
            for p in sorted(folder.rglob("*"))
            if p.is_file()
        }

    return read
