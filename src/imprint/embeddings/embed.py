"""Embeddings in memory; those of inputs that were embedded before come from a cache.

The cache is one SQLite file per backbone. Its keys are digests of content, so moved and
renamed files are found. A row that fails its checksum is ignored, and a damaged file is
replaced: both cost time, but never give a wrong embedding.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from imprint.backbones import Backbone
from imprint.backbones.backbone import thread_count
from imprint.core.arrays import Array, digest
from imprint.core.errors import FileError, UnreadableInput
from imprint.core.files.atomic import make_folder
from imprint.core.files.database import (
    DamagedDatabaseError,
    Database,
    is_intact,
    remove_database,
)
from imprint.embeddings import pipeline
from imprint.embeddings.pipeline import (
    BATCH_SIZE,
    EmbeddedBatch,
    EmbeddingJob,
    EmbeddingProgress,
    NamedInputs,
    Report,
    Skipped,
)
from imprint.embeddings.store import store_folder

LAYOUT = "cache 1"  # part of every file's name; increase it when decoding changes
TABLES = (
    (
        "CREATE TABLE embeddings (key BLOB PRIMARY KEY, row BLOB NOT NULL, checksum"
        " BLOB NOT NULL)"
    ),
)
VERSION = 1


@dataclass(frozen=True, eq=False)
class EmbeddedInputs:
    """The embeddings of some inputs: row `i` of `X` is that of the input at
    `index[i]`.
    """

    X: Array = field(repr=False)  # (n, d) float32
    index: Array = field(repr=False)  # (n,) ascending; without the skipped inputs
    skipped: tuple[Skipped, ...]  # the inputs that could not be read; they have no row
    known: int  # the number of rows from the cache
    # why new rows could not be written to the cache; they are correct nevertheless
    problem: str | None = None


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

    The cache is addressed by content: the bytes of a file, a text, or pixels. New
    inputs are embedded in batches and added to it. `remember=False` neither reads nor
    writes it. For more inputs than fit into memory, see `extract`.
    """
    if parts := getattr(backbone, "parts", ()):
        options = (batch_size, folder, progress, workers, remember)
        return _embed_parts(parts, data, *options)
    total = len(data.inputs)
    job = EmbeddingJob(backbone, data, range(total), batch_size, workers).check("embed")
    cache = (
        EmbeddingCache(backbone.fingerprint, backbone.width, folder)
        if remember
        else None
    )
    keyed = _KeyedInputs(data)
    X, is_cached = np.zeros((total, backbone.width), np.float32), np.zeros(total, bool)
    if cache is not None and cache.path.is_file():
        with ThreadPoolExecutor(
            thread_count(workers), thread_name_prefix="imprint-prepare"
        ) as pool:
            X, is_cached = cache.find(list(pool.map(keyed.key, range(total))))
    skipped: list[Skipped] = []
    problems: list[str] = []

    def store(batch: EmbeddedBatch) -> None:
        """Fill the rows that were not in the cache, and add them to it until it cannot
        be written.
        """
        X[batch.index] = batch.rows
        skipped.extend(batch.skipped)
        if cache is None or problems or not batch.index:
            return
        try:
            cache.add([keyed.keys.pop(i) for i in batch.index], batch.rows)
        except OSError as e:
            problems.append(f"The new embeddings are not cached: {e}")

    cached = int(is_cached.sum())
    uncached = replace(
        job,
        data=data if cache is None else keyed,
        index=np.flatnonzero(~is_cached).tolist(),
    )
    pipeline.run(
        uncached,
        pipeline.local_batches,
        store,
        progress,
        pipeline.EmbeddingProgress(cached, total),
    )
    index = np.delete(np.arange(total), [s.index for s in skipped])
    rows = X[index] if skipped else X
    return EmbeddedInputs(
        rows, index, tuple(skipped), cached, next(iter(problems), None)
    )


def _embed_parts(
    parts: Sequence[Backbone],
    data: NamedInputs,
    batch_size: int,
    folder: str | Path | None,
    progress: Report | None,
    workers: int | None,
    remember: bool,
) -> EmbeddedInputs:
    """The embeddings of several networks side by side.

    Each network has its own cache, so a combination finds what another one embedded.
    """
    results = []
    for i, part in enumerate(parts):
        results.append(
            embed(
                part,
                data,
                batch_size=batch_size,
                folder=folder,
                progress=_share_of_progress(progress, i, len(parts)),
                workers=workers,
                remember=remember,
            )
        )
    # an input may be too large for one network only
    index = results[0].index
    for result in results[1:]:
        index = np.intersect1d(index, result.index, assume_unique=True)
    rows = [result.X[np.isin(result.index, index)] for result in results]
    skipped = {entry.index: entry for result in results for entry in result.skipped}
    problems = [result.problem for result in results if result.problem]
    return EmbeddedInputs(
        np.concatenate(rows, axis=1),
        index,
        tuple(skipped[i] for i in sorted(skipped)),
        min(result.known for result in results),
        next(iter(problems), None),
    )


def _share_of_progress(
    progress: Report | None, network: int, networks: int
) -> Report | None:
    """Reports the progress of one of several networks, as a share of the inputs."""
    if progress is None:
        return None
    report = progress

    def share(step: EmbeddingProgress) -> None:
        done = (network * step.total + step.done) // networks
        remaining = step.eta
        if remaining is not None and step.rate:
            # the other networks are assumed to be as fast
            remaining += (networks - network - 1) * step.total / step.rate
        report(step._replace(done=done, eta=remaining))

    return share


def content_key(content: bytes | str | Array) -> bytes:
    """The key of an input: the digest of a file's bytes, of a text, or of an array."""
    return bytes.fromhex(digest([content]))


class _KeyedInputs:
    """Inputs that record, in `keys`, the cache key of each input that is read."""

    def __init__(self, data: NamedInputs):
        self.inputs, self.names = self, data.names
        self.keys: dict[int, bytes] = {}
        # bytes of a file, or the input itself
        self._content = getattr(data.inputs, "raw", data.inputs.__getitem__)
        self._decode = getattr(data.inputs, "decode", lambda _, content: content)

    def __getitem__(self, i: int) -> Any:
        """The input; its key belongs to the bytes that are decoded, even if the file
        changes meanwhile.
        """
        content = self._content(i)
        self.keys[i] = content_key(content)
        return self._decode(i, content)

    def key(self, i: int) -> bytes:
        """The key of an input; empty if it cannot be read, which is reported when it is
        embedded.
        """
        try:
            return content_key(self._content(i))
        except UnreadableInput:
            return b""


class EmbeddingCache:
    """The cached embeddings of one backbone. Several threads and processes may use one
    file at once.
    """

    def __init__(self, backbone: str, width: int, folder: str | Path | None = None):
        """`backbone` is a fingerprint; `folder` holds all embeddings."""
        self.width = width
        self.path = (
            store_folder(folder)
            / "cache"
            / f"{digest([LAYOUT, backbone, str(width)])[:32]}.sqlite"
        )

    def find(self, keys: Sequence[bytes]) -> tuple[Array, Array]:
        """Embeddings (n, width), and which of them are in the cache (n,); the others
        are zero.
        """
        X, is_cached = (
            np.zeros((len(keys), self.width), np.float32),
            np.zeros(len(keys), bool),
        )
        # rows that cannot be read are embedded again
        with suppress(FileError), closing(self._open()) as database:
            for i, key in enumerate(keys):
                for row in database.execute(
                    "SELECT * FROM embeddings WHERE key = ?", key
                ):
                    if is_intact(row) and len(row[1]) == 4 * self.width:
                        X[i], is_cached[i] = np.frombuffer(row[1], "<f4"), True
        return X, is_cached

    def add(self, keys: Sequence[bytes], X: Array) -> None:
        """Store embeddings; raises `FileError` if they cannot be written, which leaves
        the cache as it was.
        """
        make_folder(self.path.parent)
        try:
            self._insert(keys, X)
        except DamagedDatabaseError:
            remove_database(self.path)
            self._insert(keys, X)

    def _insert(self, keys: Sequence[bytes], X: Array) -> None:
        with closing(self._open()) as database, database.transaction():
            for key, row in zip(keys, X.astype("<f4", copy=False)):
                database.insert("embeddings", key, row.tobytes())

    def _open(self) -> Database:
        return Database(self.path, TABLES, VERSION, durable=False)
