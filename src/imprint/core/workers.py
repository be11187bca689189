"""Supervised threads: a failing task fails alone, and its thread continues."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

from imprint.core.errors import ImprintError, first_line

QueuedTask = tuple[Any, Future[Any]]


class TaskFailedError(ImprintError):
    """A task ended in an unexpected error; later tasks are not affected."""


class SupervisedThread:
    """Drains a queue in batches on one thread, in the order of arrival.

    `work` takes up to `max_batch` tasks and returns a result or an error for each. It
    must have no effect if it raises: each task of the batch is then tried again alone,
    so that an error reaches only the task that caused it. If something ends the thread,
    such as SystemExit, its tasks fail and another thread takes its place. `closed` is
    the error for tasks that arrive after `close`.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[list[Any]], Sequence[Any]],
        max_batch: int,
        closed: str = "This project was closed; reload the page.",
    ):
        self.name = name
        self._work = work
        self._max_batch = max_batch
        self._closed_sentence = closed
        self._queue: SimpleQueue[QueuedTask | None] = SimpleQueue()  # None: stop
        self._batch: list[QueuedTask] = []
        self._failures = 0
        self._restarts = 0
        self._closed = False
        self._lock = Lock()
        # the message of the last failure; None after a batch has succeeded
        self.error: str | None = None
        self._start()

    def submit(self, task: Any) -> "Future[Any]":
        """Queue a task; its future can be cancelled until it is started."""
        future: Future[Any] = Future()
        with self._lock:
            if self._closed:
                future.set_exception(TaskFailedError(self._closed_sentence))
            else:
                self._queue.put((task, future))
        return future

    def status(self) -> dict[str, Any]:
        """Whether the thread is alive, and the numbers of failures and restarts."""
        return {
            "alive": self._thread.is_alive(),
            "failures": self._failures,
            "restarts": self._restarts,
        }

    def close(self) -> None:
        """Finish the queued tasks, then stop."""
        with self._lock:
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
            failure = self._failure(f"stopped ({first_line(e)[:300]}); try again.")
            for _, future in self._batch:
                if not future.done():
                    future.set_exception(failure)
            self._restarts += 1
            self._start()

    def _take(self) -> bool:
        """Take the next batch from the queue, as soon as there is a task; False after
        `close`.
        """
        self._batch = []
        while len(self._batch) < self._max_batch and not (
            self._batch and self._queue.empty()
        ):
            queued = self._queue.get()
            if queued is None:
                self._queue.put(None)  # for the next call
                break
            # from here on it cannot be cancelled
            if queued[1].set_running_or_notify_cancel():
                self._batch.append(queued)
        return bool(self._batch)

    def _do(self, batch: list[QueuedTask]) -> None:
        try:
            outcomes = self._work([task for task, _ in batch])
            self.error = None
        except Exception as e:
            if len(batch) > 1:
                for one in batch:
                    self._do([one])
                return
            outcomes = [
                (
                    e
                    if isinstance(e, ImprintError)
                    else self._failure(f"failed: {first_line(e)[:300]}.")
                )
            ]
        for (_, future), outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

    def _failure(self, what: str) -> TaskFailedError:
        self._failures += 1
        self.error = f"The {self.name} thread {what}"
        return TaskFailedError(self.error)
