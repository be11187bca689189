"""The server: the files of the page, the routes below /api, the guard in front of both, and a port to listen on."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from imprint.core.errors import FileError, ImprintError, ParameterError
from imprint.serve.api import Api
from imprint.serve.label_studio import LabelStudio
from imprint.serve.project import Project
from imprint.serve.projects import Projects
from imprint.serve.security import Guard, token_of

PORT, TRIES = 8470, 20
STATIC = Path(__file__).parent / "static"
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
FILES = {f"/static/{p.name}": p for p in STATIC.iterdir() if p.suffix in TYPES} | {"/": STATIC / "index.html"}
"""The files of the page by their address; no other file is served."""
HEADER_SECONDS = 15.0
"""Time in which the header of a request must be complete."""
REASONS = {404: "There is nothing at this address.", 405: "This address does not accept that method."}


def application(
    project: Project,
    token: str,
    port: int,
    host: str = "127.0.0.1",
    tls: bool = False,
    label_studio: bool = False,
) -> Guard:
    """The whole server as an ASGI application.

    With `label_studio`, it is also a machine-learning backend below `/label-studio/TOKEN`, and its project stays open.
    """

    def of_project(project: Project, projects: Projects) -> ASGIApp:
        routes = [Route("/", _file), Route("/static/{name}", _file)]
        routes += Api(project, None if label_studio else projects).routes()
        if label_studio:
            routes += LabelStudio.from_environment(project, token).routes()
        return Starlette(routes=routes, exception_handlers={HTTPException: _refusal})

    return Guard(Projects(project, of_project), token, port, host, tls)


async def _file(request: Request) -> Response:
    path = FILES.get(request.url.path)
    if path is None:
        raise HTTPException(404)
    return Response(path.read_bytes(), media_type=TYPES[path.suffix], headers={"cache-control": "no-cache"})


async def _refusal(request: Request, error: Any) -> Response:
    is_sentence = error.detail.endswith(".")
    sentence = error.detail if is_sentence else REASONS.get(error.status_code, "The request cannot be answered.")
    return JSONResponse({"error": sentence}, error.status_code, headers=error.headers)


def bound(host: str, port: int | None) -> socket.socket:
    """A listening socket. None as the port means the first free one from 8470 on, 0 means any free one."""
    for number in range(PORT, PORT + TRIES) if port is None else (port,):
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            return socket.create_server((host, number), family=family, backlog=512)
        except OSError as e:
            failed = e
    raise ImprintError(
        f"Cannot listen on {host}, port {number}: {failed.strerror or failed}; choose another with --port."
    )


def configured(app: ASGIApp, certificate: Path | None = None, key: Path | None = None) -> Any:
    """The settings of uvicorn."""
    import uvicorn

    return uvicorn.Config(
        app,
        http=_protocol(),
        log_level="error",
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=1,
        timeout_keep_alive=60,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )


def _protocol() -> Any:
    """The HTTP protocol of uvicorn, with a limit of time for the header of a request."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class TimedProtocol(H11Protocol):
        header_timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def _watch(self) -> None:
            """Start the timer while a header is awaited, and stop it once the request has begun."""
            waiting = self.cycle is None or self.cycle.response_complete
            if not waiting and self.header_timer is not None:
                self.header_timer.cancel()
                self.header_timer = None
            elif waiting and self.header_timer is None:
                self.header_timer = self.loop.call_later(HEADER_SECONDS, self._give_up)

        def _give_up(self) -> None:
            self.header_timer = None
            if self.cycle is None or self.cycle.response_complete:
                self.transport.close()

    return TimedProtocol


def serve(
    project: Project,
    listening: socket.socket,
    host: str,
    ready: Callable[[str], object],
    certificate: Path | None = None,
    key: Path | None = None,
    label_studio: bool = False,
) -> None:
    """Answer requests until Ctrl-C. `ready` is called with the address to open, which includes the token."""
    import uvicorn

    tls, port = certificate is not None, listening.getsockname()[1]
    if tls and key is None:
        raise ParameterError("--certificate needs --key as well.")
    token = token_of(project.folder)
    guard = application(project, token, port, host, tls, label_studio)
    config = configured(guard, certificate, key)
    try:
        config.load()
    except OSError as e:
        raise FileError(f"{certificate} and {key} must be a PEM certificate and its key: {e.strerror or e}.") from None
    ready(f"http{'s' if tls else ''}://{_public_name(host)}:{port}/?token={token}")
    try:
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        assert isinstance(guard.app, Projects)
        guard.app.close()


def _public_name(host: str) -> str:
    """The host name in an address that a browser can open."""
    if host in ("0.0.0.0", "::"):
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host
