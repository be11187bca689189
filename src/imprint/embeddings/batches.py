"""Batches of inputs as rows of embeddings, in order, while the inputs of the next ones are prepared in threads."""

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from imprint.core.errors import ImprintError, UnreadableInput
from imprint.core.types import Array
from imprint.embeddings.types import Backbone, Skipped, Unlabelled

AHEAD = 2  # batches prepared before they are needed: enough to overlap, few enough to bound memory
Prepared = tuple[list[int], list[Any], list[Skipped]]


class Computed(NamedTuple):
    """What became of one batch: how many inputs it has, the rows of those that can be read, and the others."""

    inputs: int
    rows: Array
    skipped: list[Skipped]


@contextmanager
def local_batches(
    backbone: Backbone, split: Unlabelled, start: int, batch_size: int, workers: int | None
) -> Iterator[Iterator[Computed]]:
    """The batches from the input `start` on, prepared by `workers` threads (one per core unless told)."""
    threads = (os.cpu_count() or 1) if workers is None else workers
    pool = ThreadPoolExecutor(threads, thread_name_prefix="imprint-prepare")
    try:
        yield computed_batches(pool, threads, backbone, split, start, batch_size)
    finally:
        pool.shutdown(cancel_futures=True)


def computed_batches(
    pool: ThreadPoolExecutor, threads: int, backbone: Backbone, split: Unlabelled, start: int, batch_size: int
) -> Iterator[Computed]:
    """The batches from the input `start` on, each computed when it is asked for."""
    for span, (kept, items, skipped) in prepared_batches(pool, threads, backbone, split, start, batch_size):
        yield Computed(len(span), embed_batch(backbone, split, kept, items), skipped)


def prepared_batches(
    pool: ThreadPoolExecutor, threads: int, backbone: Backbone, split: Unlabelled, start: int, batch_size: int
) -> Iterator[tuple[range, Prepared]]:
    """Batches in order, prepared in threads, never more than `AHEAD` of them before they are asked for."""
    waiting: deque[tuple[range, list[Future[Prepared]]]] = deque()
    for first in range(start, len(split.inputs), batch_size):
        span = range(first, min(first + batch_size, len(split.inputs)))
        part = -(-len(span) // threads)
        parts = [span[i : i + part] for i in range(0, len(span), part)]
        waiting.append((span, [pool.submit(_prepare, backbone, split, p) for p in parts]))
        if len(waiting) > AHEAD:
            yield _joined(*waiting.popleft())
    while waiting:
        yield _joined(*waiting.popleft())


def _joined(span: range, parts: list[Future[Prepared]]) -> tuple[range, Prepared]:
    kept, items, skipped = zip(*(p.result() for p in parts))
    return span, (list(chain(*kept)), list(chain(*items)), list(chain(*skipped)))


def _prepare(backbone: Backbone, split: Unlabelled, span: range) -> Prepared:
    kept: list[int] = []
    items: list[Any] = []
    skipped: list[Skipped] = []
    for i in span:
        try:
            items.append(backbone.prepare(split.inputs[i]))
            kept.append(i)
        except UnreadableInput as e:
            skipped.append(Skipped(i, split.names[i], e.reason))
    return kept, items, skipped


def embed_batch(backbone: Backbone, split: Unlabelled, kept: list[int], items: list[Any]) -> Array:
    """The embeddings of prepared inputs, refused where they are not finite rows of the backbone's width."""
    if not kept:
        return np.empty((0, backbone.width), np.float32)
    rows = backbone.embed(np.stack(items) if isinstance(items[0], np.ndarray) else items)
    if rows.dtype != np.float32 or rows.shape != (len(kept), backbone.width):
        raise ImprintError(
            f"{backbone.record.name} gave {rows.dtype} rows of shape {rows.shape}; "
            f"they must be float32 of shape {(len(kept), backbone.width)}."
        )
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        name = split.names[kept[int(np.argmin(finite))]]
        raise ImprintError(f"The embedding of {name} by {backbone.record.name} is not finite.")
    return rows
