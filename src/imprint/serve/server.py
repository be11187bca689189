"""The server: the files of the page, the routes below /api, the guard in front of both,
and a port to listen on.
"""

import mimetypes
import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from imprint.evaluation.page.document import WEB
from imprint.http.listening import (
    ANY_HOST,
    in_address,
    load_certificate,
    server_config,
)
from imprint.serve import api
from imprint.serve.label_studio import LabelStudio
from imprint.serve.projects import Projects
from imprint.serve.requests import Endpoints, refusal
from imprint.serve.security import Guard, token_of

STATIC = Path(__file__).parent / "static"
SHARED = ("matrix.js", "matrix.css")  # the confusion matrix
# the registry of Windows may state a type that browsers refuse
mimetypes.add_type("text/javascript", ".js")


def _shared(name: str) -> Route:
    """The route of a file that the page of `imprint evaluate` contains too."""
    path = Path(str(WEB / name))
    return Route(f"/static/{name}", lambda request: FileResponse(path))


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
        *map(_shared, SHARED),
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
        app = application(projects, token, port, host, bool(tls))
        certificate, key = tls or (None, None)
        config = server_config(app, certificate, key)
        load_certificate(config)
        name = socket.gethostname() if host in ANY_HOST else in_address(host)
        ready(f"http{'s' if tls else ''}://{name}:{port}/?token={token}")
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        projects.project.close()
