"""Embeddings of a data set in a memory-mapped store: computed once, resumed after an interruption."""

import os
import shutil
from contextlib import closing
from dataclasses import astuple, replace
from pathlib import Path

import numpy as np

from imprint.backbones import Backbone
from imprint.core.errors import ImprintError, ParameterError
from imprint.core.family import unknown
from imprint.core.files.atomic import exclusive
from imprint.core.files.database import remove_database
from imprint.datasets import Split
from imprint.embeddings.journal import JOURNAL, ExtractionJournal, writing
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
from imprint.embeddings.store import Embeddings, complete, embeddings_key, is_complete, open_embeddings, store_folder

ENGINES = ("local", "ray")
OLD_JOURNAL = "journal"  # of earlier versions; such an extraction starts again


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
    n, labels, names = len(split.inputs), len(split.labels), len(split.names)
    if not n or labels != n or names != n:
        raise ParameterError(
            f"extract(split with {n} inputs, {labels} labels, {names} names): there must be at least one "
            "input, and one label and one name for each."
        )
    root, key = store_folder(folder), embeddings_key(backbone.fingerprint, split.fingerprint)
    target, partial = root / key, root / f"{key}.partial"
    if target.exists():
        return _renamed(open_embeddings(target), split)
    with writing(root):
        root.mkdir(parents=True, exist_ok=True)
    waiting = EmbeddingProgress(0, n, waiting=True)
    with exclusive(root / f"{key}.lock", lambda: progress(waiting) if progress else None):
        if fresh := not target.exists():
            if not is_complete(partial):
                _extract(job, split, engine, progress, partial, key)
            with writing(partial):
                remove_database(partial / JOURNAL)
                (partial / OLD_JOURNAL).unlink(missing_ok=True)
                os.rename(partial, target)
    return _renamed(open_embeddings(target, verify=not fresh), split)


def _extract(job: EmbeddingJob, split: Split, engine: str, progress: Report | None, folder: Path, key: str) -> None:
    """Embed the inputs that are not in the journal of `folder` yet, and complete the store there."""
    name, total = job.backbone.record.name, len(split.inputs)
    identity = {
        "key": key,
        "backbone": {"name": name, "fingerprint": job.backbone.fingerprint},
        "data": {"fingerprint": split.fingerprint},
        "inputs": total,
        "width": job.backbone.width,
    }
    batches: Engine = local_batches
    if engine == "ray":
        from imprint.embeddings.ray_engine import ray_batches as batches  # here: it is slow to import
    with closing(ExtractionJournal(folder, identity)) as journal:
        meter = ProgressMeter(progress, total, journal.done, len(journal.skipped))
        run(replace(job, start=journal.done), batches, journal.commit, meter)
    if not journal.rows:
        shutil.rmtree(folder)
        first = journal.skipped[0]
        raise ImprintError(f"None of the {total:,} inputs can be read; the first, {first.name}: {first.reason}.")
    readable = np.delete(np.arange(total), [s.index for s in journal.skipped])
    facts = identity | {"rows": journal.rows, "skipped": [astuple(s) for s in journal.skipped]}
    with writing(folder):
        complete(folder, np.asarray(split.labels)[readable], (split.names[i] for i in readable.tolist()), facts)


def check_engine(engine: str) -> None:
    """Refuse an unknown engine."""
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)


def _renamed(stored: Embeddings, split: Split) -> Embeddings:
    """The stored embeddings under the names of `split`: the same data may be stored under other names."""
    names = split.names
    skipped = tuple(replace(s, name=names[s.index]) for s in stored.skipped)
    return replace(stored, read_names=lambda: [names[i] for i in stored.index.tolist()], skipped=skipped)
