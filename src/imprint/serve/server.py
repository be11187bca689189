"""The server: the files of the page, the addresses below /api, the guard in front of both, and a port to listen on."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from imprint.core.errors import FileError, ImprintError, ParameterError
from imprint.serve.security import App, Guard, token_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from imprint.serve.project import Project

PORT, TRIES = 8470, 20
STATIC = Path(__file__).parent / "static"
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
HEADER_SECONDS = 15.0
"""Within which the header of a request must be complete."""
REASONS = {404: "There is nothing at this address.", 405: "This address does not accept that method."}


def application(
    project: "Project",
    token: str,
    port: int,
    host: str = "127.0.0.1",
    tls: bool = False,
    label_studio: bool = False,
) -> Guard:
    """The whole server as an ASGI application. Of files, only those in the folder `static` are served.

    With `label_studio`, it is also a machine-learning backend below `/label-studio/TOKEN`, and keeps its project.
    """
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    from imprint.serve.api import Api
    from imprint.serve.projects import Projects

    files = {f"/static/{p.name}": p for p in STATIC.iterdir() if p.suffix in TYPES} | {"/": STATIC / "index.html"}

    async def page(request: "Request") -> "Response":
        path = files.get(request.url.path)
        if path is None:
            raise HTTPException(404)
        kind = f"{TYPES[path.suffix]}; charset=utf-8"
        return Response(path.read_bytes(), media_type=kind, headers={"cache-control": "no-cache"})

    async def refusal(request: "Request", error: Any) -> "Response":
        is_sentence = error.detail.endswith(".")
        sentence = error.detail if is_sentence else REASONS.get(error.status_code, "The request cannot be answered.")
        return JSONResponse({"error": sentence}, error.status_code, headers=error.headers)

    def application_of(project: "Project", projects: Projects) -> App:
        routes = Api(project, None if label_studio else projects).routes()
        if label_studio:
            from imprint.serve.label_studio import LabelStudio

            routes += LabelStudio.from_environment(project, token).routes()
        routes += [Route("/", page), Route("/static/{name}", page)]
        return Starlette(routes=routes, exception_handlers={HTTPException: refusal})

    return Guard(Projects(project, application_of), token, port, host, tls)


def bound(host: str, port: int | None) -> socket.socket:
    """A listening socket; without a port the first free one from 8470 on, with 0 any free one."""
    for number in range(PORT, PORT + TRIES) if port is None else (port,):
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            return socket.create_server((host, number), family=family, backlog=512)
        except OSError as e:
            failed = e
    raise ImprintError(
        f"Cannot listen on {host}, port {number}: {failed.strerror or failed}; choose another with --port."
    )


def configured(app: App, certificate: Path | None = None, key: Path | None = None) -> Any:
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
    """uvicorn's HTTP, which closes connections whose header does not arrive in time."""
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
    project: "Project",
    listening: socket.socket,
    host: str,
    ready: Callable[[str], object],
    certificate: Path | None = None,
    key: Path | None = None,
    label_studio: bool = False,
) -> None:
    """Answer until Ctrl-C; `ready` gets the address to open, token included."""
    import uvicorn

    from imprint.serve.projects import Projects

    tls, port = certificate is not None, listening.getsockname()[1]
    if tls and key is None:
        raise ParameterError("--certificate needs --key as well.")
    token = token_of(project.folder)
    guard = application(project, token, port, host, tls, label_studio)
    config = configured(guard, certificate, key)
    try:
        config.load()
    except OSError as e:
        raise FileError(f"{certificate} and {key} are no certificate with its key in PEM: {e.strerror or e}.") from None
    ready(f"http{'s' if tls else ''}://{_reached_as(host)}:{port}/?token={token}")
    try:
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        assert isinstance(guard.app, Projects)
        guard.app.close()


def _reached_as(host: str) -> str:
    """The host in an address that another machine can open."""
    if host in ("0.0.0.0", "::"):
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host
