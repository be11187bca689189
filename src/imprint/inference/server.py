"""The application, the guard in front of it, and the server."""

import asyncio
import hmac
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from imprint.core.errors import FileError, ImprintError, first_line
from imprint.core.workers import TaskFailedError
from imprint.http.listening import (
    LOOPBACK,
    in_address,
    is_loopback,
    load_certificate,
    server_config,
)
from imprint.inference import plain, protocol
from imprint.inference.endpoint import JSON, Endpoint
from imprint.inference.limits import BusyError, TooLargeError
from imprint.inference.openapi import document
from imprint.inference.records import RECORD, REQUEST_ID_HEADER, RequestRecord
from imprint.inference.service import Service

SENTENCES = {
    404: "There is nothing at this address.",
    405: "This address does not accept that method.",
}
HEADERS = {
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}
# Shorter tokens can be guessed: 16 random letters and digits have 95 bits.
MIN_TOKEN = 16


def application(
    service: Service, host: str = "127.0.0.1", token: str | None = None
) -> ASGIApp:
    """The whole server as an ASGI application.

    Parameters
    ----------
    service : Service
    host : str
        The address that the server listens on.
    token : str, optional
        What clients must send, as `Authorization: Bearer TOKEN`.
    """
    endpoints = [
        *protocol.endpoints(),
        *plain.endpoints(service.repository.models),
        Endpoint(
            *("GET", "/metrics", "metrics", "Metrics for Prometheus."),
            _metrics,
            {"text/plain": {"type": "string"}},
        ),
        Endpoint(
            *("GET", "/openapi.json", "openapi", "This document."),
            lambda *_: _openapi(service, endpoints, token is not None),
            {JSON: {"type": "object"}},
            public=True,
        ),
    ]
    routes = [_route(service, endpoint) for endpoint in endpoints]
    app = Starlette(
        routes=routes,
        exception_handlers={HTTPException: lambda _, error: refusal(error)},
    )
    public = {endpoint.path for endpoint in endpoints if endpoint.public}
    return FrontDoor(app, service, host, token, public)


def _route(service: Service, endpoint: Endpoint) -> Route:
    async def respond(request: Request) -> Response:
        record: RequestRecord = request.scope[RECORD]
        record.endpoint = endpoint.operation
        try:
            return await endpoint.handle(service, request, record)
        except Exception as e:  # the top level of a request
            response = refusal(e)
            record.error = str(e)
            return response

    return Route(endpoint.path, respond, methods=[endpoint.method])


async def _metrics(service: Service, request: Request, _: RequestRecord) -> Response:
    raw, media_type = service.metrics.expose(request.headers.get("accept", ""))
    return Response(raw, headers={"content-type": media_type})


async def _openapi(
    service: Service, endpoints: list[Endpoint], needs_token: bool
) -> Response:
    models = service.repository.models
    versions = {name: [model.version] for name, model in models.items()}
    return JSONResponse(document(endpoints, versions, needs_token))


def refusal(error: Exception) -> Response:
    """The answer to a request that failed: a sentence, with the HTTP status for this
    kind of error.
    """
    status, sentence, headers = 400, str(error), dict[str, str]()
    if isinstance(error, HTTPException):
        status, sentence = error.status_code, error.detail
        headers |= error.headers or {}
        if not sentence.endswith("."):  # the phrase of the status
            sentence = SENTENCES.get(status, "The request cannot be answered.")
    elif isinstance(error, TooLargeError):
        status = 413
    elif isinstance(error, BusyError):
        status = error.status
        headers["retry-after"] = str(error.retry_after)
    elif isinstance(error, TaskFailedError):
        status = 500
    elif isinstance(error, MemoryError):
        status = 503
        sentence = str(error) or "There is not enough memory for this request."
    elif not isinstance(error, ImprintError):
        status = 500
        sentence = f"The request failed: {type(error).__name__}: {first_line(error)}."
    if status == 503:
        headers.setdefault("retry-after", "1")
    if status == 413:
        # the rest of the body is not read
        headers["connection"] = "close"
    return JSONResponse({"error": sentence}, status, headers)


class FrontDoor:
    """An ASGI application in front of another one: tokens, names, request ids, metrics
    and the access log.

    Without a token, only programs on this machine may ask: a page of another site in a
    browser on this machine must not.
    """

    def __init__(
        self,
        app: ASGIApp,
        service: Service,
        host: str,
        token: str | None,
        public: set[str],
    ):
        self._app = app
        self._service = service
        self._token = token
        self._public = public
        names = {*LOOPBACK, in_address(host).lower()}
        self._names = names if is_loopback(host) and token is None else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        record = RequestRecord.of(scope)
        scope[RECORD] = record

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                record.status = message["status"]
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers[REQUEST_ID_HEADER] = record.id
                if record.version:
                    headers["x-model-version"] = record.version
            await send(message)

        response = self._refusal(HTTPConnection(scope))
        try:
            await (response or self._app)(scope, receive, send_with_headers)
        finally:
            seconds = time.perf_counter() - record.started
            self._service.metrics.observe(record, seconds)
            self._service.log.write(record, seconds)

    def _refusal(self, request: HTTPConnection) -> Response | None:
        """The answer to a request that may not be asked, None if it may."""
        headers, path = request.headers, request.scope["path"]
        if self._names is not None:
            name = headers.get("host", "").rpartition(":")[0] or headers.get("host", "")
            if name.lower() not in self._names:
                sentence = "Without --token-file, the server answers as localhost only."
                return JSONResponse({"error": sentence}, 403)
            if "origin" in headers:
                sentence = "Without --token-file, requests of web pages are refused."
                return JSONResponse({"error": sentence}, 403)
        if self._token is None or path in self._public:
            return None
        scheme, _, stated = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and hmac.compare_digest(
            stated.encode(), self._token.encode()
        ):
            return None
        return JSONResponse(
            {"error": "The token is missing or wrong: send Authorization: Bearer."},
            401,
            {"www-authenticate": "Bearer"},
        )


def read_token(path: Path) -> str:
    """The token in a file."""
    try:
        token = path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as e:
        raise FileError(f"Cannot read the token in {path}: {first_line(e)}.") from None
    if len(token) < MIN_TOKEN or not token.isprintable() or " " in token:
        raise FileError(
            f"{path} must hold a token of {MIN_TOKEN} or more characters on one line."
        )
    return token


class _Server(uvicorn.Server):
    """Calls `ready` when it listens, and looks for replaced models meanwhile."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], object]):
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


def serve(
    service: Service,
    app: ASGIApp,
    listening: socket.socket,
    ready: Callable[[], object],
    tls: tuple[Path | None, Path | None] = (None, None),
    drain_seconds: int = 30,
) -> None:
    """Answer requests until SIGTERM or Ctrl-C; the requests that have begun are
    finished within `drain_seconds`.
    """
    config = server_config(app, *tls, shutdown_seconds=drain_seconds)
    load_certificate(config)

    def stop(*_: Any) -> None:
        # uvicorn finishes the requests first, then raises the signal again
        sys.exit(0)

    signal.signal(signal.SIGTERM, stop)
    service.repository.watch()
    try:
        asyncio.run(_Server(config, ready).serve(sockets=[listening]))
    finally:
        service.close()
