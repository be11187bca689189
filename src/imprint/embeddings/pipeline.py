"""The one pipeline from inputs to embeddings: read, prepare, batch, embed, check; a sink takes the checked batches.

An engine runs the middle stages: threads of this process (`local_batches`), or the nodes of a Ray cluster
(`ray_engine.ray_batches`). Where a batch begins and ends depends on the data alone, so the engine does not matter.
Sinks are memory with its cache (`embed`) and the journal of a memory-mapped store
(`ExtractionJournal.commit`). Packs (`imprint embed`) are written from finished stores, so that an interrupted command
resumes. A server, whose inputs arrive one by one, batches the waiting requests itself and calls `embed_checked`.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from imprint.backbones import Backbone
from imprint.backbones.backbone import thread_count
from imprint.core.errors import ImprintError, ParameterError, UnreadableInput
from imprint.core.types import Array

BATCH_SIZE = 64
FIRST_SLICE = 16  # inputs of a large first batch that are embedded at once, so that progress is visible early
AHEAD = 2  # batches prepared before they are needed: enough to overlap, few enough to bound memory


class NamedInputs(Protocol):
    """Inputs with one name each.

    `inputs[i]` may raise `UnreadableInput`, and several threads read at once. Inputs in files also have `raw(i)`, the
    bytes of a file, and `decode(i, raw)`. The Ray engine needs both sequences to be sliceable.
    """

    @property
    def inputs(self) -> Any: ...
    @property
    def names(self) -> Any: ...


@dataclass(frozen=True)
class Skipped:
    """An input that could not be read: its index in the data, its name, and the reason."""

    index: int
    name: str
    reason: str


class EmbeddingProgress(NamedTuple):
    """Progress of an embedding run. `rate` is in inputs per second of this run, `eta` in seconds."""

    done: int
    total: int
    skipped: int = 0
    rate: float | None = None
    eta: float | None = None
    waiting: bool = False
    """Another process extracts the same embeddings, and this one waits for it."""


Report = Callable[[EmbeddingProgress], object]


@dataclass(frozen=True)
class EmbeddingJob:
    """What to embed, from the input `start` on, and in which batches; `workers` threads prepare."""

    backbone: Backbone
    data: NamedInputs
    batch_size: int = BATCH_SIZE
    workers: int | None = None  # None: one per core
    start: int = 0
    offset: int = 0
    """The index of the first input of `data` in the whole data, of which `data` may be a part."""

    def check(self, call: str) -> "EmbeddingJob":
        """Refuse counts that are not positive integers; the error names the call."""
        for name, value in (("batch_size", self.batch_size), ("workers", self.workers)):
            if value is None and name == "workers":
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ParameterError(f"{call}({name}={value!r}): {name} must be int >= 1.")
        return self

    def spans(self) -> Iterator[range]:
        """The inputs of each batch, by index."""
        total = len(self.data.inputs)
        for first in range(self.start, total, self.batch_size):
            yield range(first, min(first + self.batch_size, total))


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


Sink = Callable[[EmbeddedBatch], object]
Advance = Callable[[int], object]
Engine = Callable[[EmbeddingJob, Advance], AbstractContextManager[Iterator[EmbeddedBatch]]]


def run(job: EmbeddingJob, engine: Engine, sink: Sink, progress: "ProgressMeter") -> None:
    """Hand every batch of the job to the sink, in order."""
    if job.start < len(job.data.inputs):
        with engine(job, progress.within_batch) as batches:
            for batch in batches:
                sink(batch)
                progress.finish(batch)


class ProgressMeter:
    """Counts inputs and estimates the rate; `done` and `skipped` inputs were finished by an earlier run."""

    def __init__(self, report: Report | None, total: int, done: int = 0, skipped: int = 0):
        self._report = report or (lambda _: None)
        self._total, self._before, self._done, self._skipped = total, done, done, skipped
        self._start = time.monotonic()
        self._report(EmbeddingProgress(done, total, skipped))

    def finish(self, batch: EmbeddedBatch) -> None:
        """A batch is in the sink."""
        self._done += batch.inputs
        self._skipped += len(batch.skipped)
        self.within_batch(0)

    def within_batch(self, rows: int) -> None:
        """`rows` rows of the current batch are embedded: slow networks show progress within a batch."""
        done = self._done + rows
        rate = (done - self._before) / max(time.monotonic() - self._start, 1e-9)
        self._report(EmbeddingProgress(done, self._total, self._skipped, rate, (self._total - done) / rate))


@contextmanager
def local_batches(job: EmbeddingJob, advance: Advance) -> Iterator[Iterator[EmbeddedBatch]]:
    """The batches of a job, prepared by threads of this process while the backbone embeds the batch before."""
    threads = thread_count(job.workers)
    pool = ThreadPoolExecutor(threads, thread_name_prefix="imprint-prepare")
    try:
        yield (_embedded(job, prepared, advance) for prepared in _prepared_batches(pool, threads, job))
    finally:
        pool.shutdown(cancel_futures=True)


def _prepared_batches(pool: ThreadPoolExecutor, threads: int, job: EmbeddingJob) -> Iterator[dict[int, Any]]:
    """Batches in order, prepared in threads, never more than `AHEAD` of them before they are needed."""
    waiting: deque[list[Future[dict[int, Any]]]] = deque()
    for span in job.spans():
        part = -(-len(span) // threads)
        waiting.append([pool.submit(_prepare, job, span[i : i + part]) for i in range(0, len(span), part)])
        if len(waiting) > AHEAD:
            yield _joined(waiting.popleft())
    yield from map(_joined, waiting)


def _joined(parts: list[Future[dict[int, Any]]]) -> dict[int, Any]:
    return {i: item for part in parts for i, item in part.result().items()}


def _prepare(job: EmbeddingJob, span: Sequence[int]) -> dict[int, Any]:
    """Read and prepare inputs, by their index; one that cannot be read becomes a `Skipped`."""
    prepared: dict[int, Any] = {}
    for i in span:
        try:
            prepared[i] = job.backbone.prepare(job.data.inputs[i])
        except UnreadableInput as e:
            prepared[i] = Skipped(job.offset + i, job.data.names[i], e.reason)
    return prepared


def _embedded(job: EmbeddingJob, prepared: dict[int, Any], advance: Advance) -> EmbeddedBatch:
    """The checked embeddings of prepared inputs; `advance` is called with the number of rows after each slice."""
    skipped = [item for item in prepared.values() if isinstance(item, Skipped)]
    items = {i: item for i, item in prepared.items() if not isinstance(item, Skipped)}
    index, total, values = list(items), len(items), list(items.values())
    is_first = total >= BATCH_SIZE and job.offset + index[0] < job.batch_size
    step = getattr(job.backbone, "slice_rows", None) or (FIRST_SLICE if is_first else max(total, 1))
    rows = np.empty((total, job.backbone.width), np.float32)
    for first in range(0, total, step):
        end = min(first + step, total)
        names = [job.data.names[i] for i in index[first:end]]
        rows[first:end] = embed_checked(job.backbone, values[first:end], names)
        if end < total:
            advance(end)
    return EmbeddedBatch([job.offset + i for i in index], rows, skipped)


def embed_checked(backbone: Backbone, items: Sequence[Any], names: Sequence[str]) -> Array:
    """The embeddings of prepared inputs, refused where they are not finite float32 rows of the backbone's width."""
    rows = backbone.embed(np.stack(items) if isinstance(items[0], np.ndarray) else items)
    if rows.dtype != np.float32 or rows.shape != (len(items), backbone.width):
        raise ImprintError(
            f"{backbone.record.name} gave {rows.dtype} rows of shape {rows.shape}; "
            f"they must be float32 of shape {(len(items), backbone.width)}."
        )
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        raise ImprintError(f"The embedding of {names[int(np.argmin(finite))]} by {backbone.record.name} is not finite.")
    return rows
