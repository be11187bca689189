"""Reading a request within its limits of size and time, and telling pages about news."""

import asyncio
import functools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from imprint.core.errors import FileError, ImprintError, NotFittedError, ParameterError
from imprint.serve.project import Project
from imprint.serve.workers import TaskFailedError

Handler = Callable[[Request], Awaitable[Response]]
ResultT = TypeVar("ResultT")

MEGABYTE = 1 << 20
LARGEST = {"picture": 32 * MEGABYTE, "text": 256 * 1024, "change": MEGABYTE, "model": 512 * MEGABYTE}
"""Bytes that a request of each kind may carry."""
IDLE = 10.0  # seconds without a byte after which an upload is given up
SLOWEST = 256 * 1024  # bytes per second that an upload of some size must reach
DEADLINE = 120.0  # seconds after which a request is answered with an error
UPLOAD_DEADLINE = 3600.0  # of a model file, whose upload has limits of its own
HEARTBEAT = 15.0  # seconds after which an event is sent in any case, to notice who has gone


class TooLargeError(ImprintError):
    """A request carries more than it may."""


class TooSlowError(ImprintError):
    """A request or its answer takes longer than it may."""


class WrongFormatError(ImprintError):
    """A request is encoded in a way that the server does not read."""


STATUS = (
    (TooLargeError, 413),
    (TooSlowError, 503),
    (WrongFormatError, 415),
    (NotFittedError, 409),
    (TaskFailedError, 500),
)


async def body(request: Request, kind: str) -> bytes:
    """The whole body; refused as soon as it is too long or too slow."""
    limit, stated = LARGEST[kind], request.headers.get("content-length", "0")
    if request.headers.get("content-type", "").startswith("multipart/"):
        raise WrongFormatError(
            f"A form cannot be read: send the {kind} itself as the body, as with curl --data-binary @FILE (not -F)."
        )
    if not stated.isdecimal() or int(stated) > limit:
        raise _too_large(request, kind)
    content, parts = bytearray(), request.stream()
    try:
        async with asyncio.timeout(IDLE + limit / SLOWEST):
            while (part := await asyncio.wait_for(anext(parts, None), IDLE)) is not None:
                content += part
                if len(content) > limit:
                    raise _too_large(request, kind)
    except TimeoutError:
        raise TooSlowError(f"The upload stalled: after {len(content):,} bytes no more came; send it again.") from None
    except ClientDisconnect:
        raise ParameterError("The request ended before all of it had come.") from None
    return bytes(content)


async def json_body(request: Request, kind: str = "change") -> dict[str, Any]:
    """A JSON object."""
    try:
        value = json.loads(await body(request, kind))
    except (ValueError, RecursionError) as e:
        if isinstance(e, ImprintError):
            raise
        value = None
    if not isinstance(value, dict):
        raise ParameterError("The request must carry a JSON object.")
    return value


def number(request: Request, name: str, default: float, low: float, high: float) -> float:
    """A number among the parameters of the address."""
    try:
        value = float(request.query_params.get(name, default))
    except ValueError:
        value = low - 1
    if not low <= value <= high:
        raise ParameterError(
            f"{name}={request.query_params.get(name)!r}: {name} must be a number from {low:g} to {high:g}."
        )
    return value


def _too_large(request: Request, kind: str) -> TooLargeError:
    size, name = LARGEST[kind], request.query_params.get("name", "")
    limit = f"{size // MEGABYTE} MB" if size >= MEGABYTE else f"{size // 1024} kB"
    return TooLargeError(f"{name[:120] or f'This {kind}'} is too large: the maximum size of a {kind} is {limit}.")


async def ended(future: "Future[ResultT]") -> ResultT:
    """The result of a supervised thread's future."""
    return await asyncio.wrap_future(future)


def guarded(call: Handler) -> Handler:
    """A handler with a deadline, whose errors become one sentence with a status that programs understand."""
    seconds = UPLOAD_DEADLINE if call.__name__ == "import_model" else None

    @functools.wraps(call)
    async def answered(request: Request) -> Response:
        try:
            return await asyncio.wait_for(call(request), seconds or DEADLINE)
        except HTTPException:
            raise
        except TimeoutError:
            return _refusal(TooSlowError(f"There was no answer within {DEADLINE:g} seconds; try again."), 503)
        except FileError as e:
            return _refusal(e, 500 if e.errno else 400)
        except ImprintError as e:
            return _refusal(e, next((status for kind, status in STATUS if isinstance(e, kind)), 400))
        except Exception as e:  # the top level of a request
            return _refusal(TaskFailedError(f"The request failed: {type(e).__name__}: {e}."), 500)

    return answered


def _refusal(error: Exception, status: int) -> Response:
    headers = {"connection": "close"} if status in (413, 503) else None
    return JSONResponse({"error": str(error)}, status, headers=headers)


class EventStream:
    """Server-sent events for every open page; the page then asks for what it shows."""

    def __init__(self, project: Project):
        self._project = project
        self._waiting: set[asyncio.Event] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        project.listen(self._notify)

    async def stream(self) -> AsyncIterator[str]:
        """The newest revision and the newest that was evaluated; several changes may share one event."""
        self._loop = asyncio.get_running_loop()
        news = asyncio.Event()
        self._waiting.add(news)
        try:
            while True:
                yield f"data: {json.dumps(self._now())}\n\n"
                news.clear()
                try:
                    await asyncio.wait_for(news.wait(), HEARTBEAT)
                    await asyncio.sleep(0.02)
                except TimeoutError:
                    continue
        finally:
            self._waiting.discard(news)

    def _now(self) -> dict[str, int]:
        evaluated = self._project.evaluation().history.revision
        return {"revision": self._project.history.revision, "evaluated": evaluated, "judged": evaluated}

    def _notify(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        for news in self._waiting:
            news.set()
