"""Tells every open page that there is something new, by server-sent events."""

import asyncio
import json
from collections.abc import AsyncIterator

from imprint.serve.classroom import Classroom

HEARTBEAT = 15.0  # seconds after which a line is sent in any case, to notice who has gone


class Events:
    """Rings for every open page; the page then asks for what it wants to show."""

    def __init__(self, classroom: Classroom):
        self._classroom = classroom
        self._bells: set[asyncio.Event] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        classroom.listen(self._ring)

    async def stream(self) -> AsyncIterator[str]:
        """Revisions, the newest first; several changes at once may become one event."""
        self._loop = asyncio.get_running_loop()
        bell = asyncio.Event()
        self._bells.add(bell)
        try:
            while True:
                yield f"data: {json.dumps(self._now())}\n\n"
                bell.clear()
                try:
                    await asyncio.wait_for(bell.wait(), HEARTBEAT)
                    await asyncio.sleep(0.02)
                except TimeoutError:
                    continue
        finally:
            self._bells.discard(bell)

    def _now(self) -> dict[str, int]:
        return {"revision": self._classroom.history.revision, "judged": self._classroom.judgement().revision}

    def _ring(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ring_all)

    def _ring_all(self) -> None:
        for bell in self._bells:
            bell.set()
