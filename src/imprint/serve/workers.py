"""Supervised threads, and the thread that embeds. A failing task fails alone, and its thread continues."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any, Generic, TypeVar

from imprint.backbones import Backbone
from imprint.core.errors import ImprintError, UnreadableInput
from imprint.core.types import Array
from imprint.embeddings.pipeline import BATCH_SIZE, embed_checked
from imprint.modalities import modality

TaskT = TypeVar("TaskT")
ResultT = TypeVar("ResultT")


class TaskFailedError(ImprintError):
    """A task ended in an unexpected error; later tasks are not affected."""


class SupervisedThread(Generic[TaskT, ResultT]):
    """Drains a queue in batches on one thread, in the order of arrival.

    `work` takes up to `most` tasks and returns a result or an error for each. It must have no effect if it raises: each
    task of the batch is then tried again alone, so that an error reaches only the task that caused it. If something
    ends the thread, such as SystemExit, its tasks fail and another thread takes its place.

    >>> thread = SupervisedThread("example", lambda numbers: [1 / n for n in numbers], most=2)
    >>> futures = [thread.submit(n) for n in (1, 0, 4)]
    >>> thread.close()
    >>> futures[2].result(), str(futures[1].exception()), thread.status()["failures"]
    (0.25, 'The example thread failed: division by zero.', 1)
    """

    def __init__(self, name: str, work: Callable[[list[TaskT]], Sequence[ResultT | Exception]], most: int):
        self.name, self._work, self._most = name, work, most
        self._queue: SimpleQueue[tuple[TaskT, Future[ResultT]] | None] = SimpleQueue()  # None: stop
        self._batch: list[tuple[TaskT, Future[ResultT]]] = []
        self._failures, self._restarts, self._closed = 0, 0, False
        self.error: str | None = None
        """The message of the last failure; None after a batch has succeeded."""
        self._start()

    def submit(self, task: TaskT) -> "Future[ResultT]":
        """Queue a task; its future can be cancelled until it is started."""
        future: Future[ResultT] = Future()
        if self._closed:
            future.set_exception(TaskFailedError("This project was closed; reload the page."))
        else:
            self._queue.put((task, future))
        return future

    def status(self) -> dict[str, Any]:
        """Whether the thread is alive, and the numbers of failures and restarts."""
        return {"alive": self._thread.is_alive(), "failures": self._failures, "restarts": self._restarts}

    def close(self) -> None:
        """Finish the queued tasks, then stop."""
        self._closed = True
        self._queue.put(None)
        while self._thread.is_alive():  # another thread may have taken its place
            self._thread.join(1)

    def _start(self) -> None:
        self._thread = Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while self._take():
                self._do(self._batch)
        except BaseException as e:  # the top level of a thread
            failure = self._failure(f"stopped ({_sentence(e)}); try again.")
            for _, future in self._batch:
                if not future.done():
                    future.set_exception(failure)
            self._restarts += 1
            self._start()

    def _take(self) -> bool:
        """Take the next batch from the queue, as soon as there is a task; False after `close`."""
        self._batch = []
        while len(self._batch) < self._most and not (self._batch and self._queue.empty()):
            queued = self._queue.get()
            if queued is None:
                self._queue.put(None)  # for the next call
                break
            if queued[1].set_running_or_notify_cancel():  # from here on it cannot be cancelled
                self._batch.append(queued)
        return bool(self._batch)

    def _do(self, batch: list[tuple[TaskT, "Future[ResultT]"]]) -> None:
        outcomes: Sequence[ResultT | Exception]
        try:
            outcomes = self._work([task for task, _ in batch])
            self.error = None
        except Exception as e:
            if len(batch) > 1:
                for one in batch:
                    self._do([one])
                return
            outcomes = [e if isinstance(e, ImprintError) else self._failure(f"failed: {_sentence(e)}.")]
        for (_, future), outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

    def _failure(self, what: str) -> TaskFailedError:
        self._failures += 1
        self.error = f"The {self.name} thread {what}"
        return TaskFailedError(self.error)


def _sentence(error: BaseException) -> str:
    """The first line of an error's message, or its type if there is none."""
    lines = str(error).strip().splitlines()
    return (lines[0].strip() if lines else type(error).__name__).rstrip(".")[:300]


class BatchingEmbedder:
    """A backbone that any thread may use.

    The calling thread decodes its input. Whenever the backbone is free, it embeds all inputs that are ready, up to 64,
    in one batch: a single input does not wait, and many are fast.
    """

    def __init__(self, backbone: Backbone):
        self.backbone, self._modality = backbone, modality(backbone.modality)
        self.thread: SupervisedThread[tuple[Any, str], Array] = SupervisedThread("embed", self._embed, BATCH_SIZE)

    def submit(self, raw: bytes, name: str) -> "Future[Array]":
        """Decode an input now, and queue it to be embedded.  # (d,)"""
        try:
            prepared = self.backbone.prepare(self._modality.read(raw))
        except UnreadableInput as e:
            raise UnreadableInput(name, e.reason) from None
        return self.thread.submit((prepared, name))

    def submit_name(self, words: str) -> "Future[Array]":
        """Queue the name or description of a class to be embedded.  # (d,)"""
        return self.thread.submit((None, words))

    def _embed(self, batch: list[tuple[Any, str]]) -> Sequence[Array | Exception]:
        rows = {i: self.backbone.embed_names([words])[0] for i, (item, words) in enumerate(batch) if item is None}
        inputs = [i for i in range(len(batch)) if i not in rows]
        if inputs:
            prepared, names = zip(*(batch[i] for i in inputs))
            rows |= zip(inputs, embed_checked(self.backbone, prepared, names))
        return [rows[i] for i in range(len(batch))]
