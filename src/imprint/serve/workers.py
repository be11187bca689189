"""Supervised threads, and the one that embeds: a task that fails fails alone, and the thread goes on."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Generic, TypeVar

from imprint.backbones import Backbone
from imprint.core.errors import ImprintError, UnreadableInput
from imprint.core.types import Array
from imprint.embeddings.pipeline import BATCH_SIZE, embed_checked
from imprint.modalities import modality

TaskT = TypeVar("TaskT")
ResultT = TypeVar("ResultT")


class TaskFailedError(ImprintError):
    """A task ended in an error that nobody expected; later tasks are not affected."""


class SupervisedThread(Generic[TaskT, ResultT]):
    """Drains a queue in batches on one thread, in the order of arrival.

    `work` takes at most `most` tasks and returns for each a result or the error that it ended in. If it raises, none of
    the batch may count, and each task is tried again alone: an error reaches only the task that caused it. If something
    ends the thread's work, such as SystemExit, its tasks fail and it starts again.

    >>> thread = SupervisedThread("example", lambda numbers: [1 / n for n in numbers], most=2)
    >>> futures = [thread.submit(n) for n in (1, 0, 4)]
    >>> thread.close()
    >>> futures[2].result(), str(futures[1].exception()), thread.status()["failures"]
    (0.25, 'The example thread failed: division by zero.', 1)
    """

    def __init__(self, name: str, work: Callable[[list[TaskT]], Sequence[ResultT | Exception]], most: int):
        self.name, self._work, self._most = name, work, most
        self._queue: SimpleQueue[tuple[TaskT, Future[ResultT]] | None] = SimpleQueue()  # None: stop
        self._running: list[tuple[TaskT, Future[ResultT]]] = []
        self._failures, self._restarts, self._closed = 0, 0, False
        self.error: str | None = None
        """The message of the last failure; None once a batch has succeeded since."""
        self._lock = Lock()
        self._thread = self._started()

    def submit(self, task: TaskT) -> "Future[ResultT]":
        """Queue a task; its future can be cancelled until it is started."""
        future: Future[ResultT] = Future()
        if self._closed:
            future.set_exception(TaskFailedError("This project was closed; reload the page."))
            return future
        self._queue.put((task, future))
        self._revive()
        return future

    def status(self) -> dict[str, Any]:
        """Whether the thread runs (it is restarted here if not), and how often a task or the thread has failed."""
        self._revive()
        return {"alive": self._thread.is_alive(), "failures": self._failures, "restarts": self._restarts}

    def close(self) -> None:
        """Finish what is queued, then stop."""
        self._closed = True
        self._queue.put(None)
        self._thread.join()

    def _started(self) -> Thread:
        thread = Thread(target=self._run, name=self.name, daemon=True)
        thread.start()
        return thread

    def _revive(self) -> None:
        with self._lock:
            if not self._thread.is_alive() and not self._closed:
                self._fail_running("stopped; try again.")
                self._restarts += 1
                self._thread = self._started()

    def _run(self) -> None:
        while not self._drained():
            self._restarts += 1

    def _drained(self) -> bool:
        """Work until `close`; False where something ended the work before."""
        try:
            while batch := self._taken():
                self._running = batch
                self._do(batch)
                self._running = []
        except BaseException as e:  # the top level of a thread
            self._fail_running(f"stopped ({_sentence(e)}); try again.")
            return False
        return True

    def _do(self, batch: list[tuple[TaskT, "Future[ResultT]"]]) -> None:
        outcomes: Sequence[ResultT | Exception]
        try:
            outcomes = self._work([task for task, _ in batch])
        except Exception as e:
            if len(batch) > 1:
                for one in batch:
                    self._do([one])
                return
            outcomes = [e if isinstance(e, ImprintError) else self._failure(f"failed: {_sentence(e)}.")]
        else:
            self.error = None
        for (_, future), outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

    def _fail_running(self, what: str) -> None:
        failure = self._failure(what)
        for _, future in self._running:
            if not future.done():
                future.set_exception(failure)
        self._running = []

    def _failure(self, what: str) -> TaskFailedError:
        self._failures += 1
        self.error = f"The {self.name} thread {what}"
        return TaskFailedError(self.error)

    def _taken(self) -> list[tuple[TaskT, "Future[ResultT]"]]:
        """What is queued, at least one task; empty after `close`."""
        batch: list[tuple[TaskT, Future[ResultT]]] = []
        while len(batch) < self._most:
            try:
                queued = self._queue.get(block=not batch)
            except Empty:
                break
            if queued is None:
                self._queue.put(None)  # for the next call
                break
            if queued[1].set_running_or_notify_cancel():  # from here on nobody else ends it
                batch.append(queued)
        return batch


def _sentence(error: BaseException) -> str:
    """The first line of an error's message, or its type where it has none."""
    lines = str(error).strip().splitlines()
    return (lines[0].strip() if lines else type(error).__name__).rstrip(".")[:300]


class ClassWords(str):
    """The name or description of a class, among prepared inputs."""


class BatchingEmbedder:
    """A backbone that any thread may use.

    Inputs are decoded by the thread that brings them. Whenever the network is free, it takes all that are ready, up to
    64: a single input does not wait, and many at once cost what they cost in a batch.
    """

    def __init__(self, backbone: Backbone):
        self.backbone, self._modality = backbone, modality(backbone.modality)
        self.thread: SupervisedThread[tuple[Any, str], Array] = SupervisedThread("embed", self._embed, BATCH_SIZE)

    def submit(self, raw: bytes, name: str) -> "Future[Array]":
        """Decode the bytes of an input now, and embed it soon.  # (d,)"""
        try:
            prepared = self.backbone.prepare(self._modality.read(raw))
        except UnreadableInput as e:
            raise UnreadableInput(name, e.reason) from None
        return self.thread.submit((prepared, name))

    def submit_name(self, words: str) -> "Future[Array]":
        """Embed the name or description of a class soon.  # (d,)"""
        return self.thread.submit((ClassWords(words), words))

    def _embed(self, batch: list[tuple[Any, str]]) -> Sequence[Array | Exception]:
        rows = {i: self.backbone.embed_names([a])[0] for i, (a, _) in enumerate(batch) if isinstance(a, ClassWords)}
        inputs = [i for i in range(len(batch)) if i not in rows]
        if inputs:
            prepared, names = zip(*(batch[i] for i in inputs))
            rows |= zip(inputs, embed_checked(self.backbone, prepared, names))
        return [rows[i] for i in range(len(batch))]
