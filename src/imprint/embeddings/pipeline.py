"""The one pipeline from inputs to embeddings: read, prepare, batch, embed, check.

An engine runs it: threads of this process (`local_batches`), or the nodes of a Ray
cluster (`ray_engine.ray_batches`). Where a batch begins and ends depends on the data
alone, so every engine gives the same rows. A sink takes the checked batches: `embed`
fills a matrix in memory and a cache, `extract` writes a memory-mapped store. A server
batches waiting requests itself and calls `embed_checked`.
"""

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from imprint.backbones import Backbone
from imprint.backbones.backbone import thread_count
from imprint.core.arrays import Array
from imprint.core.errors import ImprintError, UnreadableInput, check_int
from imprint.modalities.image import DECODING

BATCH_SIZE = 64
# inputs of a large first batch that are embedded at a time, so that progress is visible
# early
FIRST_SLICE = 16
# batches that are prepared before they are needed: they bound the memory
PREPARED_BATCHES = 2


class NamedInputs(Protocol):
    """Inputs with one name each.

    `inputs[i]` may raise `UnreadableInput`, and several threads read at once. Inputs in
    files also have `raw(i)`, the bytes of a file, and `decode(i, raw)`. The Ray engine
    needs both sequences to be sliceable.
    """

    @property
    def inputs(self) -> Any: ...
    @property
    def names(self) -> Any: ...


@dataclass(frozen=True)
class Skipped:
    """An input that could not be read: its index in the data, its name, and the
    reason.
    """

    index: int
    name: str
    reason: str


class EmbeddingProgress(NamedTuple):
    """Progress of an embedding run."""

    done: int
    total: int
    skipped: int = 0
    rate: float | None = None  # inputs per second of this run
    eta: float | None = None  # seconds
    # another process extracts the same embeddings, and this one waits for it
    waiting: bool = False


Report = Callable[[EmbeddingProgress], object]


@dataclass(frozen=True)
class EmbeddingJob:
    """What to embed, and in which batches."""

    backbone: Backbone
    data: NamedInputs
    index: Sequence[int]  # the inputs to embed
    batch_size: int = BATCH_SIZE
    workers: int | None = None  # threads that prepare inputs; None: one per core
    offset: int = 0  # where `data` begins, if it is a part of the data

    def check(self, call: str) -> "EmbeddingJob":
        """The job itself, refused if its counts are not positive integers; the error
        names the call.
        """
        check_int(call, "batch_size", self.batch_size)
        if self.workers is not None:
            check_int(call, "workers", self.workers)
        return self

    def spans(self) -> Iterator[Sequence[int]]:
        """The inputs of each batch, by index."""
        for first in range(0, len(self.index), self.batch_size):
            yield self.index[first : first + self.batch_size]


@dataclass(frozen=True)
class EmbeddedBatch:
    """One checked batch: `rows[i]` is the embedding of the input `index[i]`."""

    index: list[int]
    rows: Array  # (n, width) float32, finite
    skipped: list[Skipped]

    @property
    def inputs(self) -> int:
        """The number of inputs, including the skipped ones."""
        return len(self.index) + len(self.skipped)


# called with the number of rows of the current batch that are embedded
Advance = Callable[[int], object]
Batches = Generator[EmbeddedBatch, None, None]


def run(
    job: EmbeddingJob,
    engine: Callable[[EmbeddingJob, Advance], Batches],
    sink: Callable[[EmbeddedBatch], object],
    report: Report | None,
    start: EmbeddingProgress,
) -> None:
    """Pass every batch of the job to the sink, in order, and report the progress,
    beginning with `start`.
    """
    started = time.monotonic()
    report = report or (lambda _: None)
    done, total, skipped, *_ = start

    def advance(rows: int) -> None:
        finished = done + rows
        rate = (finished - start.done) / max(time.monotonic() - started, 1e-9)
        report(
            EmbeddingProgress(finished, total, skipped, rate, (total - finished) / rate)
        )

    report(start)
    if len(job.index):
        with closing(engine(job, advance)) as batches:
            for batch in batches:
                sink(batch)
                done += batch.inputs
                skipped += len(batch.skipped)
                advance(0)


def local_batches(job: EmbeddingJob, advance: Advance) -> Batches:
    """The batches of a job: while the backbone embeds one, threads of this process
    prepare the next ones.
    """
    threads = thread_count(job.workers)
    pool = ThreadPoolExecutor(threads, thread_name_prefix="imprint-prepare")
    waiting: deque[list[Future[dict[int, Any]]]] = deque()
    try:
        for span in job.spans():
            share = -(-len(span) // threads)
            waiting.append(
                [
                    pool.submit(_prepare, job, span[i : i + share])
                    for i in range(0, len(span), share)
                ]
            )
            if len(waiting) > PREPARED_BATCHES:
                yield _embedded(job, waiting.popleft(), advance)
        while waiting:
            yield _embedded(job, waiting.popleft(), advance)
    finally:
        pool.shutdown(cancel_futures=True)


def _prepare(job: EmbeddingJob, span: Sequence[int]) -> dict[int, Any]:
    """Read and prepare inputs, by index; one that cannot be read becomes a
    `Skipped`.
    """
    prepared: dict[int, Any] = {}
    for i in span:
        try:
            with DECODING.holding():
                prepared[i] = job.backbone.prepare(job.data.inputs[i])
        except UnreadableInput as e:
            prepared[i] = Skipped(job.offset + i, job.data.names[i], e.reason)
    return prepared


def _embedded(
    job: EmbeddingJob, shares: list[Future[dict[int, Any]]], advance: Advance
) -> EmbeddedBatch:
    """The embeddings of one batch, of which each thread has prepared a share."""
    prepared = {i: item for share in shares for i, item in share.result().items()}
    skipped = [item for item in prepared.values() if isinstance(item, Skipped)]
    items = {i: item for i, item in prepared.items() if not isinstance(item, Skipped)}
    index, values = list(items), list(items.values())
    total = len(items)
    is_first = total >= BATCH_SIZE and job.offset == 0 and 0 in prepared
    step = getattr(job.backbone, "slice_rows", None) or (
        FIRST_SLICE if is_first else max(total, 1)
    )
    rows = np.empty((total, job.backbone.width), np.float32)
    for first in range(0, total, step):
        end = min(first + step, total)
        names = [job.data.names[i] for i in index[first:end]]
        rows[first:end] = embed_checked(job.backbone, values[first:end], names)
        if end < total:
            advance(end)
    return EmbeddedBatch([job.offset + i for i in index], rows, skipped)


def embed_checked(
    backbone: Backbone, items: Sequence[Any], names: Sequence[str]
) -> Array:
    """The embeddings of prepared inputs, refused unless they are finite float32 rows of
    the backbone's width.
    """
    rows = backbone.embed(
        np.stack(items) if isinstance(items[0], np.ndarray) else items
    )
    if rows.dtype != np.float32 or rows.shape != (len(items), backbone.width):
        rule = f"they must be float32 of shape {(len(items), backbone.width)}"
        raise ImprintError(
            f"{backbone.record.name} gave {rows.dtype} rows of shape {rows.shape};"
            f" {rule}."
        )
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        raise ImprintError(
            f"The embedding of {names[int(np.argmin(finite))]} by"
            f" {backbone.record.name} is not finite."
        )
    return rows
