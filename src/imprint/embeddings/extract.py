"""Embeddings of a data set in a memory-mapped store: computed once, resumed after an interruption."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from imprint.backbones import Backbone
from imprint.core.errors import ImprintError, ParameterError
from imprint.core.family import unknown
from imprint.core.files.atomic import exclusive
from imprint.datasets import Split
from imprint.embeddings.journal import ExtractionJournal, complete, is_complete, publish, writing
from imprint.embeddings.pipeline import (
    BATCH_SIZE,
    EmbeddingJob,
    EmbeddingProgress,
    Engine,
    ProgressMeter,
    Report,
    local_batches,
    run,
)
from imprint.embeddings.store import Embeddings, Names, embeddings_key, open_embeddings, store_folder

ENGINES = ("local", "ray")


def extract(
    backbone: Backbone,
    split: Split,
    *,
    batch_size: int = BATCH_SIZE,
    folder: str | Path | None = None,
    progress: Report | None = None,
    workers: int | None = None,
    engine: str = "local",
) -> Embeddings:
    """The embeddings of `split` by `backbone`: opened where they are stored, otherwise computed and stored.

    The backbone embeds `batch_size` inputs at a time, while `workers` threads (default: one per core) decode and
    prepare the next ones. `folder` holds all stores (default: `embeddings` in the library's home); `progress` is
    called after every batch, and more often where the network is slow. After a kill, an interruption or a full disk,
    the same call resumes after the last finished batch, and the finished store is the same to the byte. A second
    process that asks for the same embeddings waits for them. An input that raises `UnreadableInput` is skipped and
    recorded; rows that are not finite are refused.

    With the engine `ray` the nodes of a cluster compute the batches, on `workers` cores each (default: one); only this
    process writes. The store is the same, and either engine resumes where the other stopped.
    """
    check_engine(engine)
    job = EmbeddingJob(backbone, split, batch_size, workers).check("extract")
    _check(split)
    root, key = store_folder(folder), embeddings_key(backbone.fingerprint, split.fingerprint)
    target, partial = root / key, root / f"{key}.partial"
    if target.exists():
        return _renamed(open_embeddings(target), split)
    with writing(root):
        root.mkdir(parents=True, exist_ok=True)
    waiting = EmbeddingProgress(0, len(split.inputs), waiting=True)
    with exclusive(root / f"{key}.lock", lambda: progress(waiting) if progress else None):
        if fresh := not target.exists():
            if not is_complete(partial):
                identity = _identity(job, split.fingerprint, key)
                with ExtractionJournal(partial, identity) as journal:
                    _run(replace(job, start=journal.done), _engine(engine), journal, progress)
                complete(partial, identity, journal, split)
            publish(partial, target)
    return _renamed(open_embeddings(target, verify=not fresh), split)


def check_engine(engine: str) -> None:
    """Refuse an unknown engine."""
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)


def _engine(name: str) -> Engine:
    if name == "local":
        return local_batches
    from imprint.embeddings.ray_engine import ray_batches  # here: a cold start without Ray does not pay for it

    return ray_batches


def _check(split: Split) -> None:
    n, labels, names = len(split.inputs), len(split.labels), len(split.names)
    if not n or labels != n or names != n:
        raise ParameterError(
            f"extract(split with {n} inputs, {labels} labels, {names} names): there must be at least one "
            "input, and one label and one name for each."
        )


def _renamed(stored: Embeddings, split: Split) -> Embeddings:
    """The stored embeddings under the names of `split`: the same data may be stored under other names."""
    current = split.names
    names = Names(lambda: [current[i] for i in stored.index.tolist()], len(stored.X))
    skipped = tuple(replace(s, name=current[s.index]) for s in stored.skipped)
    return replace(stored, names=names, skipped=skipped)


def _identity(job: EmbeddingJob, data: str, key: str) -> dict[str, Any]:
    return {
        "key": key,
        "backbone": {"name": job.backbone.record.name, "fingerprint": job.backbone.fingerprint},
        "data": {"fingerprint": data},
        "inputs": len(job.data.inputs),
        "width": job.backbone.width,
    }


def _run(job: EmbeddingJob, engine: Engine, journal: ExtractionJournal, progress: Report | None) -> None:
    """Embed the inputs that are not in the journal yet."""
    total = len(job.data.inputs)
    run(job, engine, journal.commit, ProgressMeter(progress, total, journal.done, len(journal.skipped)))
    if not journal.rows:
        journal.close()
        shutil.rmtree(journal.folder)
        first = journal.skipped[0]
        raise ImprintError(f"None of the {total:,} inputs can be read; the first, {first.name}: {first.reason}.")
