"""News of a project for its open pages, which wait for them without polling."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock


class News:
    """Wakes the pages of a project when something has changed; any thread may tell."""

    def __init__(self) -> None:
        self._lock = Lock()
        # each waiting page, with the loop that runs it
        self._waiting: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}

    def tell(self) -> None:
        """Wake all pages that wait now."""
        with self._lock:
            waiting = list(self._waiting.items())
        for event, loop in waiting:
            # the loop of a server that has stopped is closed
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(event.set)

    @contextmanager
    def listening(self) -> Iterator[asyncio.Event]:
        """An event of the running loop that every `tell` sets, while the block runs."""
        event = asyncio.Event()
        with self._lock:
            self._waiting[event] = asyncio.get_running_loop()
        try:
            yield event
        finally:
            with self._lock:
                del self._waiting[event]
