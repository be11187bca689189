"""Pages wait for news without polling."""

import asyncio
import json
import threading
from types import SimpleNamespace

from imprint.serve import api
from imprint.serve.news import News


def test_every_waiting_page_is_woken_from_another_thread():
    news = News()

    async def page():
        with news.listening() as changed:
            await asyncio.wait_for(changed.wait(), 20)

    async def pages():
        waiting = [asyncio.ensure_future(page()) for _ in range(3)]
        await asyncio.sleep(0)
        threading.Thread(target=news.tell).start()
        await asyncio.gather(*waiting)

    asyncio.run(pages())
    news.tell()  # nobody waits any more, and the loop is closed


def test_an_idle_page_does_not_read_the_project(project):
    reads = []
    real = project.history

    class Counted:
        @property
        def revision(self):
            reads.append(1)
            return real.revision

    async def listen():
        stream = api.events(project)
        first = await anext(stream)
        project.history = Counted()
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0.5)
        idle = len(reads)
        project.history = SimpleNamespace(revision=real.revision + 7)
        project.news.tell()
        second = await asyncio.wait_for(waiting, 20)
        project.history = real
        await stream.aclose()
        return first, idle, second

    first, idle, second = asyncio.run(listen())
    assert idle <= 1
    assert json.loads(second[6:])["revision"] == json.loads(first[6:])["revision"] + 7
