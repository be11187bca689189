"""The server: the page's own files, the addresses below /api, and the guard before both."""

from pathlib import Path
from typing import TYPE_CHECKING

from imprint.serve.security import App, Guard

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from imprint.serve.classroom import Classroom

STATIC = Path(__file__).parent / "static"
KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


def application(classroom: "Classroom", token: str, port: int, host: str = "127.0.0.1", tls: bool = False) -> App:
    """The whole server as an ASGI application. Only files that are in the package's own folder can be asked for."""
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse, Response
    from starlette.routing import Route

    from imprint.serve.api import Api

    files = {f"/static/{p.name}": p for p in STATIC.iterdir() if p.suffix in KINDS} | {"/": STATIC / "index.html"}

    async def page(request: "Request") -> "Response":
        place = files.get(request.url.path)
        if place is None:
            return PlainTextResponse("There is nothing here.\n", 404)
        kind = f"{KINDS[place.suffix]}; charset=utf-8"
        return Response(place.read_bytes(), media_type=kind, headers={"cache-control": "no-cache"})

    routes = [*Api(classroom).routes(), Route("/{rest:path}", page, methods=["GET"])]
    return Guard(Starlette(routes=routes), token, port, host, tls)
