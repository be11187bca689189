"""Requests: reading a body within limits of size and time, errors as JSON, and the stream of events."""

import asyncio
import functools
import inspect
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from imprint.core.errors import FileError, ImprintError, NotFittedError, ParameterError
from imprint.serve.drift import ServedDrift
from imprint.serve.project import Project
from imprint.serve.workers import TaskFailedError

Handler = Callable[[Request], Any]
"""Returns a response or data that becomes JSON. Runs in a thread if it is not a coroutine function."""

MEGABYTE = 1 << 20
LARGEST = {"file": 32 * MEGABYTE, "text": 256 * 1024, "change": MEGABYTE, "model": 512 * MEGABYTE}
"""Maximum number of bytes in a request of each kind."""
IDLE = 10.0  # seconds without data after which an upload is aborted
SLOWEST = 256 * 1024  # minimum average of bytes per second of an upload
DEADLINE = 120.0  # seconds after which a request is answered with an error
UPLOAD_DEADLINE = 3600.0  # of a model file; `body` limits the upload itself
POLL = 0.05  # seconds between two looks for news
HEARTBEAT = 15.0  # seconds after which an event is sent in any case, to notice closed connections


class RequestError(ImprintError):
    """A request that cannot be answered, with its HTTP status."""

    def __init__(self, status: int, sentence: str):
        super().__init__(sentence)
        self.status = status


async def body(request: Request, kind: str) -> bytes:
    """The complete body; refused as soon as it is too large or too slow."""
    limit, stated = LARGEST[kind], request.headers.get("content-length", "0")
    if request.headers.get("content-type", "").startswith("multipart/"):
        raise RequestError(
            415, "A form cannot be read: send the file itself as the body, as with curl --data-binary @FILE (not -F)."
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
        raise RequestError(503, f"The upload stalled after {len(content):,} bytes; send it again.") from None
    except ClientDisconnect:
        raise ParameterError("The connection was closed before the request was complete.") from None
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


def _too_large(request: Request, kind: str) -> RequestError:
    size, name = LARGEST[kind], request.query_params.get("name", "")
    limit = f"{size // MEGABYTE} MB" if size >= MEGABYTE else f"{size // 1024} kB"
    return RequestError(413, f"{name[:120] or f'This {kind}'} is too large: the maximum size of a {kind} is {limit}.")


def guarded(call: Handler) -> Callable[[Request], Awaitable[Response]]:
    """A handler with a deadline, whose errors become one sentence with an HTTP status."""
    upload = call.__name__ == "import_model"

    @functools.wraps(call)
    async def respond(request: Request) -> Response:
        try:
            _check_address(request)
            running = call(request) if inspect.iscoroutinefunction(call) else asyncio.to_thread(call, request)
            result = await asyncio.wait_for(running, UPLOAD_DEADLINE if upload else DEADLINE)
            return result if isinstance(result, Response) else JSONResponse(result)
        except HTTPException:
            raise
        except TimeoutError:
            return _refusal(503, f"There was no answer within {DEADLINE:g} seconds; try again.")
        except ImprintError as e:
            return _refusal(_status(e), str(e))
        except Exception as e:  # the top level of a request
            return _refusal(500, f"The request failed: {type(e).__name__}: {e}.")

    return respond


def _check_address(request: Request) -> None:
    """Refuse parameters that are not UTF-8, which would otherwise be read with replacement characters."""
    try:
        unquote_to_bytes(request.scope["query_string"]).decode()
    except UnicodeDecodeError:
        rule = "percent-encode names as UTF-8, such as label=caf%C3%A9"
        raise ParameterError(f"The parameters of the address are not UTF-8; {rule}.") from None


def _status(error: ImprintError) -> int:
    if isinstance(error, RequestError):
        return error.status
    if isinstance(error, NotFittedError):
        return 409
    return 500 if isinstance(error, TaskFailedError) or (isinstance(error, FileError) and error.errno) else 400


def _refusal(status: int, sentence: str) -> Response:
    headers = {"connection": "close"} if status in (413, 503) else None
    return JSONResponse({"error": sentence}, status, headers=headers)


async def events(project: Project, drift: ServedDrift) -> AsyncIterator[str]:
    """Server-sent events: the newest revision, the newest one that was evaluated, and the drift alarm.

    An event follows every change of these, and the page then requests what it shows. Polling needs no callbacks from
    the threads of the project.
    """
    sent, sent_at = "", 0.0
    while not project.closed:
        revisions = {"revision": project.history.revision, "evaluated": project.evaluation().history.revision}
        event = json.dumps({"project": project.folder.name, **revisions, "alarm": drift.alarm})
        if event != sent or time.monotonic() > sent_at + HEARTBEAT:
            sent, sent_at = event, time.monotonic()
            yield f"data: {event}\n\n"
        await asyncio.sleep(POLL)
