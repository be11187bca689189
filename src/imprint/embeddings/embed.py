"""Embeddings in memory; those of inputs that were embedded before come from a cache."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from imprint.backbones import Backbone
from imprint.backbones.backbone import thread_count
from imprint.core.errors import UnreadableInput
from imprint.core.types import Array
from imprint.embeddings.cache import EmbeddingCache, content_key
from imprint.embeddings.pipeline import (
    BATCH_SIZE,
    EmbeddedBatch,
    EmbeddingJob,
    NamedInputs,
    ProgressMeter,
    Report,
    Skipped,
    local_batches,
    run,
)


@dataclass(frozen=True, eq=False)
class EmbeddedInputs:
    """The embeddings of some inputs: row `i` of `X` is that of the input at `index[i]`."""

    X: Array = field(repr=False)  # (n, d) float32
    index: Array = field(repr=False)  # (n,) ascending; without the skipped inputs
    skipped: tuple[Skipped, ...]
    """The inputs that could not be read; they have no row."""
    known: int
    """The number of rows that came from the cache."""
    problem: str | None = None
    """Why the new rows could not be written to the cache, if so; they are correct nevertheless."""


def embed(
    backbone: Backbone,
    data: NamedInputs,
    *,
    batch_size: int = BATCH_SIZE,
    folder: str | Path | None = None,
    progress: Report | None = None,
    workers: int | None = None,
    remember: bool = True,
) -> EmbeddedInputs:
    """The embeddings of the inputs of `data`, in memory.

    The cache is addressed by content (the bytes of a file, a text, pixels), so it finds files that were moved or
    renamed. New inputs are embedded in batches and added to it. `remember=False` neither reads nor writes the cache.
    For more inputs than fit into memory, see `extract`.
    """
    EmbeddingJob(backbone, data, batch_size, workers).check("embed")
    total = len(data.inputs)
    cache = EmbeddingCache(backbone.fingerprint, backbone.width, folder) if remember else None
    X, known = np.zeros((total, backbone.width), np.float32), np.zeros(total, bool)
    if cache is not None and cache.exists():
        with ThreadPoolExecutor(thread_count(workers), thread_name_prefix="imprint-prepare") as pool:
            X, known = cache.find(list(pool.map(lambda i: _key(data.inputs, i), range(total))))
    new, count = _NewInputs(data, np.flatnonzero(~known).tolist(), with_keys=cache is not None), int(known.sum())
    skipped: list[Skipped] = []
    problems: list[str] = []

    def store(batch: EmbeddedBatch) -> None:
        """Fill the rows that were not in the cache, and add them to it until it cannot be written."""
        X[[new.index[i] for i in batch.index]] = batch.rows
        skipped.extend(replace(s, index=new.index[s.index]) for s in batch.skipped)
        if cache is None or problems or not batch.index:
            return
        try:
            cache.add([new.keys.pop(i) for i in batch.index], batch.rows)
        except OSError as e:
            problems.append(f"The new embeddings are not cached: {e}")

    run(EmbeddingJob(backbone, new, batch_size, workers), local_batches, store, ProgressMeter(progress, total, count))
    index = np.delete(np.arange(total), [s.index for s in skipped])
    return EmbeddedInputs(X[index] if skipped else X, index, tuple(skipped), count, next(iter(problems), None))


class _NewInputs:
    """The inputs that are not in the cache; notes the key of each input that is read."""

    def __init__(self, data: NamedInputs, index: list[int], with_keys: bool):
        self.inputs, self.names = self, [data.names[i] for i in index]
        self.index, self.keys = index, dict[int, bytes]()
        self._inputs, self._with_keys = data.inputs, with_keys

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, i: int) -> Any:
        """The input; its key is computed from the bytes that are decoded, even if the file changes meanwhile."""
        inputs, at = self._inputs, self.index[i]
        if not self._with_keys:
            return inputs[at]
        content = _content(inputs, at)
        self.keys[i] = content_key(content)
        return inputs.decode(at, content) if hasattr(inputs, "raw") else content


def _content(inputs: Any, i: int) -> Any:
    """The content that determines the key of an input: the bytes of a file, otherwise the input."""
    return inputs.raw(i) if hasattr(inputs, "raw") else inputs[i]


def _key(inputs: Any, i: int) -> bytes:
    """The key of an input; empty for an unreadable one, which is recorded when it is embedded."""
    try:
        return content_key(_content(inputs, i))
    except UnreadableInput:
        return b""
