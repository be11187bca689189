"""Embeddings of a data set in a memory-mapped store: computed once, resumed after an
interruption.

During an extraction, the rows of each batch are appended to one file, and then an entry
in an SQLite database commits them with their checksum. A batch that is not committed
does not count, so a kill is harmless. Rows that a power failure kept from the disk fail
their checksum when the extraction resumes, and are computed again: no batch has to wait
for the disk. A damaged database is discarded, which costs time but never gives a wrong
row.
"""

import json
import shutil
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import astuple, replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from imprint.backbones import Backbone
from imprint.core.errors import (
    FileError,
    ImprintError,
    ParameterError,
    reporting,
    unknown,
)
from imprint.core.files.atomic import exclusive
from imprint.core.files.database import (
    DamagedDatabaseError,
    Database,
    is_intact,
    remove_database,
)
from imprint.datasets import Split
from imprint.embeddings import pipeline, store
from imprint.embeddings.pipeline import (
    BATCH_SIZE,
    EmbeddedBatch,
    EmbeddingJob,
    EmbeddingProgress,
    Report,
    Skipped,
)

ENGINES = ("local", "ray")
JOURNAL = "journal.sqlite"
TABLES = (
    (
        "CREATE TABLE batches (number INTEGER PRIMARY KEY, content TEXT NOT NULL,"
        " checksum BLOB NOT NULL)"
    ),
)
"""Row 0 holds the identity of the extraction; each later row holds a batch: inputs,
rows, their CRC, skipped inputs.
"""
VERSION = 1


def extract(
    backbone: Backbone,
    split: Split,
    *,
    batch_size: int = BATCH_SIZE,
    folder: str | Path | None = None,
    progress: Report | None = None,
    workers: int | None = None,
    engine: str = "local",
) -> store.Embeddings:
    """The embeddings of `split` by `backbone`: opened if they are stored, otherwise
    computed and stored.

    The backbone embeds `batch_size` inputs at a time, while `workers` threads (default:
    one per core) decode and prepare the next ones. `folder` holds all stores (default:
    `embeddings` in the library's home). `progress` is called after every batch, and
    more often if the network is slow. After a kill, an interruption or a full disk, the
    same call resumes after the last finished batch, and the finished store is the same
    to the byte. A second process that requests the same embeddings waits for them. An
    input that raises `UnreadableInput` is skipped and recorded. Rows that are not
    finite are refused.

    With the engine `ray`, the nodes of a cluster compute the batches, on `workers`
    cores each (default: one), and only this process writes. The store is the same, and
    each engine resumes where the other stopped.
    """
    check_engine(engine)
    n = len(split.inputs)
    job = EmbeddingJob(backbone, split, range(n), batch_size, workers).check("extract")
    if not len(split.labels):
        raise ParameterError(
            f"extract(split with {n} inputs): there must be at least one input, and"
            " labels."
        )
    root = store.store_folder(folder)
    key = store.embeddings_key(backbone.fingerprint, split.fingerprint)
    target, partial = root / key, root / f"{key}.partial"
    is_new = False
    if not target.exists():
        with _writing(root):
            root.mkdir(parents=True, exist_ok=True)
        waiting = EmbeddingProgress(0, n, waiting=True)
        with exclusive(
            root / f"{key}.lock", lambda: progress(waiting) if progress else None
        ):
            if is_new := not target.exists():
                if not (partial / store.MANIFEST).is_file():  # it is written last
                    _extract(job, split, engine, progress, partial, key)
                with _writing(partial):
                    for path in partial.iterdir():
                        # a journal, perhaps of an earlier version
                        if path.name not in (store.MANIFEST, *store.FILES):
                            path.unlink()
                    partial.rename(target)
    stored = store.open_embeddings(target, verify=not is_new)
    skipped = tuple(replace(s, name=split.names[s.index]) for s in stored.skipped)
    return replace(stored, input_names=split.names, skipped=skipped)


def check_engine(engine: str) -> None:
    """Refuse an unknown engine."""
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)


def _extract(
    job: EmbeddingJob,
    split: Split,
    engine: str,
    progress: Report | None,
    folder: Path,
    key: str,
) -> None:
    """Embed the inputs that are not in the journal of `folder` yet, and complete the
    store there.
    """
    total, batches = len(split.inputs), pipeline.local_batches
    identity = {
        "key": key,
        "backbone": {
            "name": job.backbone.record.name,
            "fingerprint": job.backbone.fingerprint,
        },
        "data": {"fingerprint": split.fingerprint},
        "inputs": total,
        "width": job.backbone.width,
    }
    if engine == "ray":
        # here: it is slow to import
        from imprint.embeddings.ray_engine import ray_batches as batches
    with closing(ExtractionJournal(folder, identity)) as journal:
        start = EmbeddingProgress(journal.done, total, len(journal.skipped))
        pipeline.run(
            replace(job, index=range(journal.done, total)),
            batches,
            journal.commit,
            progress,
            start,
        )
    if not journal.rows:
        shutil.rmtree(folder)
        first = journal.skipped[0]
        raise ImprintError(
            f"None of the {total:,} inputs can be read; the first, {first.name}:"
            f" {first.reason}."
        )
    readable = np.delete(np.arange(total), [s.index for s in journal.skipped])
    facts = identity | {
        "rows": journal.rows,
        "skipped": [astuple(s) for s in journal.skipped],
    }
    with _writing(folder):
        store.complete(
            folder,
            np.asarray(split.labels)[readable],
            (split.names[i] for i in readable.tolist()),
            facts,
        )


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Report a full disk or a forbidden folder in one sentence, which says how to
    resume.
    """
    try:
        with reporting("write", folder):
            yield
    except FileError as e:
        raise FileError(
            f"{str(e).rstrip('.')}; finished batches are kept, and the same call"
            " resumes."
        ) from None


class ExtractionJournal:
    """The committed batches of one extraction; opening it resumes the extraction of an
    earlier process.
    """

    def __init__(self, folder: Path, identity: dict[str, Any]):
        """`identity` describes the extraction, including `width`; a folder with another
        identity is refused.
        """
        self.folder, self.width = folder, int(identity["width"])
        self.done = self.rows = self._batches = 0
        self.skipped: list[Skipped] = []
        with ExitStack() as files, _writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self._rows = files.enter_context(
                open(folder / store.ROWS, "a+b", buffering=0)
            )
            entries = _read_journal(folder / JOURNAL)
            self._database = files.enter_context(
                closing(Database(folder / JOURNAL, TABLES, VERSION, durable=False))
            )
            if entries and entries[0] != identity:
                raise ImprintError(
                    f"{folder} holds part of another extraction: delete that folder and"
                    " extract again."
                )
            self._resume(entries[1:])
            self._insert(0, identity)
            self.close = files.pop_all().close

    def commit(self, batch: EmbeddedBatch) -> None:
        """Append a batch: its rows first, then the entry that commits them."""
        raw = np.ascontiguousarray(batch.rows, dtype="<f4").tobytes()
        entry: list[Any] = [
            batch.inputs,
            len(batch.rows),
            zlib.crc32(raw),
            [astuple(s) for s in batch.skipped],
        ]
        with _writing(self.folder):
            self._append(raw)
            self._insert(self._batches + 1, entry)
        self._count(*entry)

    def _append(self, raw: bytes) -> None:
        view = memoryview(raw)
        while view:
            view = view[self._rows.write(view) :]

    def _insert(self, number: int, entry: Any) -> None:
        self._database.insert("batches", number, json.dumps(entry, sort_keys=True))

    def _count(self, inputs: int, rows: int, crc: int, skipped: list[Any]) -> None:
        self._batches += 1
        self.done += inputs
        self.rows += rows
        self.skipped += [Skipped(*s) for s in skipped]

    def _resume(self, entries: list[Any]) -> None:
        """Count the batches whose rows are intact, and drop the rest."""
        self._rows.seek(store.HEADER_BYTES)
        for inputs, rows, crc, skipped in entries:
            size = rows * self.width * 4
            if zlib.crc32(raw := self._rows.read(size)) != crc or len(raw) != size:
                break
            self._count(inputs, rows, crc, skipped)
        self._database.execute("DELETE FROM batches WHERE number > ?", self._batches)
        self._rows.truncate(store.HEADER_BYTES + self.rows * self.width * 4)


def _read_journal(path: Path) -> list[Any]:
    """The consecutive intact entries of a journal; a damaged database is deleted."""
    try:
        with closing(Database(path, TABLES, VERSION, durable=False)) as database:
            stored = database.execute("SELECT * FROM batches ORDER BY number")
    except DamagedDatabaseError:
        remove_database(path)
        return []
    intact = takewhile(
        lambda pair: pair[0] == pair[1][0] and is_intact(pair[1]), enumerate(stored)
    )
    return [json.loads(content) for _, (_number, content, _checksum) in intact]
