"""The server: the files of the page, the routes below /api, the guard in front of both,
and a port to listen on.
"""

import asyncio
import mimetypes
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from uvicorn.protocols.http.h11_impl import H11Protocol

from imprint.core.errors import FileError, ImprintError
from imprint.serve import api
from imprint.serve.label_studio import LabelStudio
from imprint.serve.projects import Projects
from imprint.serve.requests import Endpoints, refusal
from imprint.serve.security import ANY_HOST, Guard, in_address, token_of

FIRST_PORT, PORTS = 8470, 20  # the first port to try, and how many to try
STATIC = Path(__file__).parent / "static"
HEADER_SECONDS = 15.0  # time in which the header of a request must be complete
# the registry of Windows may state a type that browsers refuse
mimetypes.add_type("text/javascript", ".js")


def application(
    projects: Projects,
    token: str,
    port: int,
    host: str = "127.0.0.1",
    tls: bool = False,
) -> Guard:
    """The whole server as an ASGI application."""
    endpoints = Endpoints(projects)
    page = Route("/", lambda request: FileResponse(STATIC / "index.html"))
    routes = [
        page,
        Mount("/static", StaticFiles(directory=STATIC)),
        *api.routes(endpoints),
    ]
    if projects.label_studio:
        routes += LabelStudio(projects.project).routes(
            endpoints, f"/label-studio/{token}"
        )
    handlers = {
        HTTPException: lambda request, error: refusal(error),
        # a number of thousands of digits in an address
        ValueError: lambda request, error: refusal(HTTPException(404)),
    }
    return Guard(
        Starlette(routes=routes, exception_handlers=handlers), token, port, host, tls
    )


def listen(host: str, port: int | None) -> socket.socket:
    """A listening socket. None as the port means the first free one from 8470 on, 0
    means any free one.
    """
    for number in range(FIRST_PORT, FIRST_PORT + PORTS) if port is None else (port,):
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            return socket.create_server((host, number), family=family, backlog=512)
        except OSError as e:
            reason = str(e.strerror or e).partition(" (")[0]
    raise ImprintError(
        f"Cannot listen on {host}, port {number}: {reason}; choose another --port or"
        " --host."
    )


class TimedProtocol(H11Protocol):
    """The HTTP protocol of uvicorn, with a limit of time for the header of a
    request.
    """

    header_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def _watch(self) -> None:
        """Start the timer while a header is awaited, and stop it once the request has
        begun.
        """
        waiting = self.cycle is None or self.cycle.response_complete
        if not waiting and self.header_timer is not None:
            self.header_timer.cancel()
            self.header_timer = None
        elif waiting and self.header_timer is None:
            self.header_timer = self.loop.call_later(
                HEADER_SECONDS, self.transport.close
            )


def uvicorn_config(
    app: Guard, certificate: Path | None = None, key: Path | None = None
) -> uvicorn.Config:
    """The settings of uvicorn."""
    return uvicorn.Config(
        app,
        http=TimedProtocol,
        log_level="error",
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=1,
        timeout_keep_alive=60,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )


def serve(
    projects: Projects,
    listening: socket.socket,
    host: str,
    ready: Callable[[str], object],
    *tls: Path,
) -> None:
    """Answer requests until Ctrl-C; `tls` are the PEM files of a certificate and its
    key.

    `ready` is called with the address to open, which includes the token.
    """
    try:
        token, port = token_of(projects.first), listening.getsockname()[1]
        config = uvicorn_config(
            application(projects, token, port, host, bool(tls)), *tls
        )
        try:
            config.load()
        except OSError as e:
            files = " and ".join(map(str, tls))
            raise FileError(
                f"{files} must be a PEM certificate and its key: {e.strerror or e}."
            ) from None
        name = socket.gethostname() if host in ANY_HOST else in_address(host)
        ready(f"http{'s' if tls else ''}://{name}:{port}/?token={token}")
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        projects.project.close()
