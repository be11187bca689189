"""Requests: bodies within limits of size and time, handlers in threads with a deadline,
and errors as JSON.
"""

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from imprint.core.errors import ImprintError, NotFittedError, ParameterError
from imprint.core.workers import TaskFailedError
from imprint.http.body import read_body
from imprint.serve.project import Project
from imprint.serve.projects import Projects

Handler = Callable[[Project, Request, bytes], Any]
"""Takes the open project, a request and its body. Returns a response, or data that
becomes JSON. Runs in a thread.
"""
MAX_BYTES = {
    "file": 32 << 20,
    "text": 256 << 10,
    "change": 1 << 20,
    "model": 512 << 20,
    "tasks": 512 << 20,
}
"""Maximum number of bytes in a body of each kind."""
# a body that is a file or a text, depending on the modality of the project
INPUT = "input"
# maximum number of requests that hold an input in memory; the others wait
MAX_INPUTS = 48
# so that inputs, which wait for the backbone, leave threads to other requests
THREADS = MAX_INPUTS + 16
# seconds after which a request is answered with an error; its thread must not wait
# longer either
DEADLINE = 120.0
# the same for a request that carries a model file; `_body` limits the upload itself
UPLOAD_DEADLINE = 3600.0
STATUS_SENTENCES = {
    404: "There is nothing at this address.",
    405: "This address does not accept that method.",
}


class Endpoints:
    """Makes routes of handlers, for the project that is open when a request arrives."""

    def __init__(self, projects: Projects):
        self.projects, self._inputs = projects, asyncio.Semaphore(MAX_INPUTS)
        self._threads = ThreadPoolExecutor(THREADS, "request")

    def route(self, method: str, path: str, handle: Handler, kind: str = "") -> Route:
        """A route to a handler; `kind` is that of the body that requests carry."""

        async def respond(request: Request) -> Response:
            project = self.projects.project
            body = (
                ("text" if project.modality.typed else "file")
                if kind == INPUT
                else kind
            )
            deadline = UPLOAD_DEADLINE if kind == "model" else DEADLINE
            try:
                _check_address(request)
                async with (
                    asyncio.timeout(deadline),
                    self._inputs if kind == INPUT else nullcontext(),
                ):
                    content = await _body(request, body) if kind else b""
                    run = asyncio.get_running_loop().run_in_executor
                    result = await run(self._threads, handle, project, request, content)
                return result if isinstance(result, Response) else JSONResponse(result)
            except Exception as e:  # the top level of a request
                return refusal(e)

        return Route(path, respond, methods=[method])


async def _body(request: Request, kind: str) -> bytes:
    """The complete body; refused as soon as it is too large, stalls, or is so slow that
    it would occupy its place.
    """
    limit, name = (
        MAX_BYTES[kind],
        request.query_params.get("name", "")[:120] or f"This {kind}",
    )
    shown = f"{limit >> 20} MB" if limit >> 20 else f"{limit >> 10} kB"
    too_large = f"{name} is too large: the maximum size of a {kind} is {shown}."
    if request.headers.get("content-type", "").startswith("multipart/"):
        raise HTTPException(
            415,
            "A form cannot be read: send the file as the body, as with curl"
            " --data-binary @FILE.",
        )
    return await read_body(request, limit, too_large)


def json_object(content: bytes) -> dict[str, Any]:
    """The JSON object that a request carries."""
    try:
        value = json.loads(content)
        # refuses halves of characters, which UTF-8 does not have
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ParameterError("The request must carry a JSON object.")
    return value


def number(
    request: Request, name: str, default: float, low: float, high: float
) -> float:
    """A number among the parameters of the address."""
    text = request.query_params.get(name, default)
    try:
        value = float(text)
    except ValueError:
        value = low - 1
    if not low <= value <= high:
        raise ParameterError(
            f"{name}={text!r}: {name} must be a number from {low:g} to {high:g}."
        )
    return value


def refusal(error: Exception) -> Response:
    """The answer to a request that failed: a sentence, with the HTTP status for this
    kind of error.
    """
    status, sentence = 400, str(error)
    if isinstance(error, HTTPException):
        status, sentence = error.status_code, error.detail
        if not sentence.endswith("."):  # the phrase of the status
            sentence = STATUS_SENTENCES.get(status, "The request cannot be answered.")
    elif isinstance(error, TimeoutError):
        status, sentence = (
            503,
            f"There was no answer within {DEADLINE:g} seconds; try again.",
        )
    elif isinstance(error, MemoryError):
        status = 503
        sentence = str(error) or "There is not enough memory for this request."
    elif not isinstance(error, ImprintError):
        status, sentence = 500, f"The request failed: {type(error).__name__}: {error}."
    elif isinstance(error, NotFittedError | TaskFailedError):
        status = 409 if isinstance(error, NotFittedError) else 500
    headers = (
        {"connection": "close"}
        if status in (413, 503)
        else getattr(error, "headers", None)
    )
    return JSONResponse({"error": sentence}, status, headers=headers)


def _check_address(request: Request) -> None:
    """Refuse parameters that are not UTF-8, which would otherwise be read with
    replacement characters.
    """
    try:
        unquote_to_bytes(request.scope["query_string"]).decode()
    except UnicodeDecodeError:
        rule = "percent-encode names as UTF-8, such as label=caf%C3%A9"
        raise ParameterError(
            f"The parameters of the address are not UTF-8; {rule}."
        ) from None
