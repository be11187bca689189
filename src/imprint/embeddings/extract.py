"""From inputs to stored embeddings: batched, overlapped, resumable."""

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from imprint.core.errors import ImprintError, ParameterError
from imprint.core.family import unknown
from imprint.core.files.locks import exclusive
from imprint.embeddings.batches import local_batches
from imprint.embeddings.journal import Journal, writing
from imprint.embeddings.nodes import ray_batches
from imprint.embeddings.seal import complete, is_complete, publish
from imprint.embeddings.store import Embeddings, Names, embeddings_key, open_embeddings, store_folder
from imprint.embeddings.types import Backbone, EmbeddingProgress, Split

ENGINES = {"local": local_batches, "ray": ray_batches}
Report = Callable[[EmbeddingProgress], object]


def extract(
    backbone: Backbone,
    split: Split,
    *,
    batch_size: int = 64,
    folder: str | Path | None = None,
    progress: Report | None = None,
    workers: int | None = None,
    engine: str = "local",
) -> Embeddings:
    """The embeddings of `split` by `backbone`: opened where they are stored, else computed and stored.

    `batch_size` inputs go through the backbone at a time, while `workers` threads (one per core unless told)
    decode and prepare the next. `folder` holds all stores (default: `embeddings` in the library's home);
    `progress` is called after every batch. Killed, interrupted or out of disk, the same call goes on after
    the last finished batch, and the finished store is the same to the byte. A second process that asks for
    the same embeddings waits for them. An input that raises `UnreadableInput` is skipped and recorded; rows
    that are not finite are refused.

    With the engine `ray` the batches are computed by the nodes of a cluster, on `workers` cores each (one unless told);
    this process plans and alone writes. The store is the same, and either engine goes on where the other stopped.
    """
    check_counts("extract", batch_size=batch_size, workers=1 if workers is None else workers)
    check_engine(engine)
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
                    _run(ENGINES[engine], backbone, split, journal, batch_size, workers, report)
                complete(partial, facts, journal, split)
            publish(partial, target)
    return _named(open_embeddings(target, verify=not fresh), split)


def check_counts(call: str, **counts: int) -> None:
    """Refuse what is no whole number above 0."""
    for name, value in counts.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ParameterError(f"{call}({name}={value!r}): {name} must be int >= 1.")


def check_engine(engine: str) -> None:
    """Refuse what is no engine."""
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)


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


def _run(
    engine: Any,
    backbone: Backbone,
    split: Split,
    journal: Journal,
    batch_size: int,
    workers: int | None,
    report: Report,
) -> None:
    """Embed what the journal does not have yet."""
    total, before, start = len(split.inputs), journal.done, time.monotonic()
    report(EmbeddingProgress(before, total, len(journal.skipped)))
    if before < total:
        with engine(backbone, split, before, batch_size, workers) as batches:
            for batch in batches:
                journal.commit(*batch)
                rate = (journal.done - before) / max(time.monotonic() - start, 1e-9)
                report(
                    EmbeddingProgress(journal.done, total, len(journal.skipped), rate, (total - journal.done) / rate)
                )
    if not journal.rows:
        journal.close()
        shutil.rmtree(journal.folder)
        first = journal.skipped[0]
        raise ImprintError(f"None of the {total:,} inputs can be read; the first, {first.name}: {first.reason}.")
