"""From inputs to stored embeddings: batched, overlapped, resumable."""

import os
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from imprint.core.errors import ImprintError, ParameterError, UnreadableInput
from imprint.core.locks import exclusive
from imprint.core.types import Array
from imprint.embeddings.journal import Journal, writing
from imprint.embeddings.seal import complete, is_complete, publish
from imprint.embeddings.store import Embeddings, Names, embeddings_key, open_embeddings, store_folder
from imprint.embeddings.types import Backbone, EmbeddingProgress, Skipped, Split, Unlabelled

AHEAD = 2  # batches prepared before they are needed: enough to overlap, few enough to bound memory
Report = Callable[[EmbeddingProgress], object]
Prepared = tuple[list[int], list[Any], list[Skipped]]


def extract(
    backbone: Backbone,
    split: Split,
    *,
    batch_size: int = 64,
    folder: str | Path | None = None,
    progress: Report | None = None,
    workers: int | None = None,
) -> Embeddings:
    """The embeddings of `split` by `backbone`: opened where they are stored, else computed and stored.

    `batch_size` inputs go through the backbone at a time, while `workers` threads (one per core unless told)
    decode and prepare the next. `folder` holds all stores (default: `embeddings` in the library's home);
    `progress` is called after every batch. Killed, interrupted or out of disk, the same call goes on after
    the last finished batch, and the finished store is the same to the byte. A second process that asks for
    the same embeddings waits for them. An input that raises `UnreadableInput` is skipped and recorded; rows
    that are not finite are refused.
    """
    threads = (os.cpu_count() or 1) if workers is None else workers
    check_counts("extract", batch_size=batch_size, workers=threads)
    _check(split)
    report = progress or (lambda _: None)
    root, key = store_folder(folder), embeddings_key(backbone.fingerprint, split.fingerprint)
    target, partial = root / key, root / f"{key}.partial"
    if target.exists():
        return _named(open_embeddings(target), split)
    _make(root)
    with exclusive(root / f"{key}.lock", lambda: report(EmbeddingProgress(0, len(split.inputs), waiting=True))):
        if fresh := not target.exists():
            if not is_complete(partial):
                facts = _identity(backbone, split, key)
                with Journal(partial, facts) as journal:
                    _run(backbone, split, journal, batch_size, threads, report)
                complete(partial, facts, journal, split)
            publish(partial, target)
    return _named(open_embeddings(target, verify=not fresh), split)


def check_counts(call: str, **counts: int) -> None:
    """Refuse what is no whole number above 0."""
    for name, value in counts.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ParameterError(f"{call}({name}={value!r}): {name} must be int >= 1.")


def _check(split: Split) -> None:
    n, labels, names = len(split.inputs), len(split.labels), len(split.names)
    if not n or labels != n or names != n:
        raise ParameterError(
            f"extract(split with {n} inputs, {labels} labels, {names} names): there must be at least one "
            "input, and one label and one name for each."
        )


def _named(stored: Embeddings, split: Split) -> Embeddings:
    """The same data may lie elsewhere under other names: those of `split` are the ones the caller knows."""
    known = split.names
    names = Names(lambda: [known[i] for i in stored.index.tolist()], len(stored.X))
    skipped = tuple(replace(s, name=known[s.index]) for s in stored.skipped)
    return replace(stored, names=names, skipped=skipped)


def _make(root: Path) -> None:
    with writing(root):
        root.mkdir(parents=True, exist_ok=True)


def _identity(backbone: Backbone, split: Split, key: str) -> dict[str, Any]:
    return {
        "key": key,
        "backbone": {"name": backbone.record.name, "fingerprint": backbone.fingerprint},
        "data": {"fingerprint": split.fingerprint},
        "inputs": len(split.inputs),
        "width": backbone.width,
    }


def _run(backbone: Backbone, split: Split, journal: Journal, batch_size: int, threads: int, report: Report) -> None:
    """Embed what the journal does not have yet."""
    total, before, start = len(split.inputs), journal.done, time.monotonic()
    report(EmbeddingProgress(before, total, len(journal.skipped)))
    pool = ThreadPoolExecutor(threads, thread_name_prefix="imprint-prepare")
    try:
        for span, (kept, items, skipped) in prepared_batches(pool, threads, backbone, split, before, batch_size):
            rows = embed_batch(backbone, split, kept, items)
            journal.commit(len(span), rows, skipped)
            rate = (journal.done - before) / max(time.monotonic() - start, 1e-9)
            report(EmbeddingProgress(journal.done, total, len(journal.skipped), rate, (total - journal.done) / rate))
    finally:
        pool.shutdown(cancel_futures=True)
    if not journal.rows:
        journal.close()
        shutil.rmtree(journal.folder)
        first = journal.skipped[0]
        raise ImprintError(f"None of the {total:,} inputs can be read; the first, {first.name}: {first.reason}.")


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
