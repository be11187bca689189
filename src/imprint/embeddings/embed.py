"""Embeddings in memory, of which those of inputs seen before are not computed again."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from imprint.core.errors import UnreadableInput
from imprint.core.types import Array
from imprint.embeddings.batches import embed_batch, prepared_batches
from imprint.embeddings.extract import Report, check_counts
from imprint.embeddings.items import ItemStore, item_key
from imprint.embeddings.types import Backbone, EmbeddingProgress, Skipped, Unlabelled


@dataclass(frozen=True, eq=False)
class EmbeddedInputs:
    """The embeddings of some inputs: row `i` of `X` is that of the input at `index[i]`."""

    X: Array = field(repr=False)  # (n, d) float32
    index: Array = field(repr=False)  # (n,) ascending; without what was skipped
    skipped: tuple[Skipped, ...]
    """The inputs that could not be read; they have no row."""
    known: int
    """How many rows were remembered and not computed."""
    problem: str | None = None
    """Why the new rows could not be remembered, if so; they are right nevertheless."""


def embed(
    backbone: Backbone,
    data: Unlabelled,
    *,
    batch_size: int = 64,
    folder: str | Path | None = None,
    progress: Report | None = None,
    workers: int | None = None,
    remember: bool = True,
) -> EmbeddedInputs:
    """The embeddings of the inputs of `data`, held in memory.

    Every input is looked up by its content (the bytes of its file, its text, its pixels), so that files which were
    moved, renamed or joined by others are found again; what is new is computed in batches and remembered. With
    `remember=False` nothing is looked up or kept. For more inputs than memory holds, see `extract`.
    """
    threads = (os.cpu_count() or 1) if workers is None else workers
    check_counts("embed", batch_size=batch_size, workers=threads)
    report = progress or (lambda _: None)
    total = len(data.inputs)
    store = ItemStore(backbone.fingerprint, backbone.width, folder) if remember else None
    X, known = np.zeros((total, backbone.width), np.float32), np.zeros(total, bool)
    with ThreadPoolExecutor(threads, thread_name_prefix="imprint-prepare") as pool:
        if store is not None and store.is_used():
            X, known = store.find(list(pool.map(lambda i: _key(data.inputs, i), range(total))))
        report(EmbeddingProgress(int(known.sum()), total))
        missing = _Missing(data, np.flatnonzero(~known).tolist())
        problem = _compute(pool, threads, backbone, missing, batch_size, store, X, report)
    skipped = tuple(missing.skipped)
    index = np.delete(np.arange(total), [s.index for s in skipped])
    return EmbeddedInputs(X[index] if skipped else X, index, skipped, int(known.sum()), problem)


class _Missing:
    """The inputs that are not known yet, as data of their own; the keys of those that were read are noted."""

    def __init__(self, data: Unlabelled, places: list[int]):
        self.data, self.places = data, places
        self.keys: dict[int, bytes] = {}
        self.skipped: list[Skipped] = []

    @property
    def inputs(self) -> "_Missing":
        return self

    @property
    def names(self) -> Any:
        return _Picked(self.data.names, self.places)

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, i: int) -> Any:
        """The input; its key is made of the very bytes that are decoded, whatever happens to the file meanwhile."""
        inputs: Any = self.data.inputs
        place = self.places[i]
        if hasattr(inputs, "raw"):
            raw = inputs.raw(place)
            self.keys[i] = item_key(raw)
            return inputs.decode(place, raw)
        item = inputs[place]
        self.keys[i] = item_key(item)
        return item


class _Picked:
    def __init__(self, names: Any, places: list[int]):
        self._names, self._places = names, places

    def __getitem__(self, i: int) -> str:
        return str(self._names[self._places[i]])


def _key(inputs: Any, i: int) -> bytes:
    """The key of an input; one that cannot be read has none, and says so when it is embedded."""
    try:
        return item_key(inputs.raw(i) if hasattr(inputs, "raw") else inputs[i])
    except UnreadableInput:
        return b""


def _compute(
    pool: ThreadPoolExecutor,
    threads: int,
    backbone: Backbone,
    missing: _Missing,
    batch_size: int,
    store: ItemStore | None,
    X: Array,
    report: Report,
) -> str | None:
    """Fill the rows of `X` that are missing and remember them batch by batch; the problem with that, if any."""
    problem, start, total = None, time.monotonic(), len(X)
    for span, (kept, items, skipped) in prepared_batches(pool, threads, backbone, missing, 0, batch_size):
        rows = embed_batch(backbone, missing, kept, items)
        X[[missing.places[i] for i in kept]] = rows
        missing.skipped += [replace(s, index=missing.places[s.index]) for s in skipped]
        keys = [missing.keys.pop(i) for i in kept]
        if store is not None and problem is None and kept:
            try:
                store.add(keys, rows)
            except OSError as e:
                problem = f"Cannot remember embeddings in {store.folder}: {str(e.strerror or e).rstrip('.')}."
        done = total - len(missing) + span.stop
        rate = span.stop / max(time.monotonic() - start, 1e-9)
        report(EmbeddingProgress(done, total, len(missing.skipped), rate, (total - done) / rate))
    return problem
