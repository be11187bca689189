"""A thread that takes all that waits at once, so that what costs much once costs little for each."""

from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Generic, TypeVar

T = TypeVar("T")


class Batches(Generic[T]):
    """Hands what is put here to a function, in the order of arrival and in a thread of its own, up to `most` at once.

    >>> found = []
    >>> batches = Batches(found.extend, most=2, name="example")
    >>> for i in range(5):
    ...     batches.put(i)
    >>> batches.close()
    >>> found
    [0, 1, 2, 3, 4]
    """

    def __init__(self, work: Callable[[list[T]], None], most: int, name: str):
        self._work, self._most = work, most
        self._waiting: SimpleQueue[T | None] = SimpleQueue()  # None: nothing comes any more
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, item: T) -> None:
        """Have an item worked on."""
        self._waiting.put(item)

    def close(self) -> None:
        """Finish what waits, then stop."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        while batch := self._taken():
            self._work(batch)

    def _taken(self) -> list[T]:
        """What waits, at least one item; empty once nothing comes any more."""
        batch: list[T] = []
        while len(batch) < self._most:
            try:
                item = self._waiting.get(block=not batch)
            except Empty:
                break
            if item is None:
                self._waiting.put(None)  # for the next call
                break
            batch.append(item)
        return batch
