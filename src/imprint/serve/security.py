"""Access control: only holders of the token, from the page itself, under the server's
name.
"""

import hmac
import re
import secrets
from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from imprint.core.errors import FileError, ParameterError
from imprint.core.files.atomic import atomic_write
from imprint.http.listening import ANY_HOST, LOOPBACK, in_address

TOKEN = re.compile(r"[A-Za-z0-9_-]{20,100}")
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
        " connect-src 'self'; media-src 'self' blob: data:; base-uri 'none';"
        " form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(self), microphone=(), geolocation=()",
}
PAGE = (
    '<!doctype html><meta http-equiv="refresh" content="0;'
    ' url={0}"><title>imprint</title><a href="{0}">Continue</a>'
)
"""A page that leads to an address."""


def token_of(folder: Path) -> str:
    """The token of a project, created once and readable by its owner alone."""
    path = folder / "token"
    try:
        if not path.exists():
            with atomic_write(path, private=True) as f:
                f.write(secrets.token_urlsafe(24).encode())
        token = path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as e:
        raise FileError(
            f"Cannot read the token in {path}: {e}; delete that file to create another"
            " one."
        ) from None
    if not TOKEN.fullmatch(token):
        raise FileError(
            f"{path} holds no valid token; delete that file to create another one."
        )
    return token


def redirect_file(folder: Path, address: str) -> Path:
    """A private page that leads to an address, so that the token is not in the command
    line of the browser.
    """
    path = folder / "open.html"
    with atomic_write(path, private=True) as f:
        f.write(PAGE.format(address).encode())
    return path


class Guard:
    """An ASGI application in front of another one.

    It refuses requests under a foreign host name, from pages of other sites, and
    without the token, and it adds security headers to every response. The first visit
    has the token in its address and receives it as a cookie that scripts cannot read
    and that other sites cannot send; programs send `Authorization: Bearer TOKEN`.
    """

    def __init__(
        self,
        app: ASGIApp,
        token: str,
        port: int,
        host: str = "127.0.0.1",
        tls: bool = False,
    ):
        if not token:
            raise ParameterError("Guard(token=''): the token must not be empty.")
        self.app, self.token, self.cookie = app, token, f"imprint-{port}"
        self.scheme, self.any_name = "https" if tls else "http", host in ANY_HOST
        names = {*LOOPBACK, in_address(host).lower()}
        self.hosts = {f"{name}:{port}" for name in names}
        if port == (443 if tls else 80):  # browsers leave out the default port
            self.hosts |= names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("cache-control", "no-cache")
            await send(message)

        app = self.app
        if scope["type"] == "http":
            request, path = HTTPConnection(scope), scope["path"]
            if reason := self._refusal(request):
                closing = {"connection": "close"}
                as_page = PlainTextResponse(f"{reason}\n", 403, closing)
                app = (
                    as_page
                    if path == "/"
                    else JSONResponse({"error": reason}, 403, closing)
                )
            elif path == "/" and "token" in request.query_params:
                app = self._welcome(request)
        await app(scope, receive, send_with_headers)

    def _refusal(self, request: HTTPConnection) -> str | None:
        headers, path = request.headers, request.scope["path"]
        host, origin, site = (
            headers.get("host", ""),
            headers.get("origin"),
            headers.get("sec-fetch-site", "none"),
        )
        if host.lower() not in self.hosts and not self.any_name:
            return (
                "This server does not answer under that name; use the address that"
                " imprint serve printed."
            )
        followed_link = (
            path == "/"
            and request.scope["method"] == "GET"
            and headers.get("sec-fetch-mode") == "navigate"
        )
        same_site = site in ("none", "same-origin") or (
            site == "cross-site" and followed_link
        )
        if origin not in (None, f"{self.scheme}://{host}") or not same_site:
            return "Requests from other pages are refused."
        # the health check needs no token
        if path == "/api/health" or self._has_token(request):
            return None
        return (
            "The token is missing or wrong: open the address that imprint serve"
            " printed."
        )

    def _has_token(self, request: HTTPConnection) -> bool:
        """Whether the token is in a cookie, in a header, or in the address where that
        is allowed.
        """
        path, cookies = (
            request.scope["path"],
            request.headers.get("cookie", "").split(";"),
        )
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        tokens = [
            part.partition("=")[2].strip()
            for part in cookies
            if part.partition("=")[0].strip() == self.cookie
        ]
        tokens += [bearer] if scheme == "Bearer" else []
        # its webhooks have no header
        tokens += [path.split("/")[2]] if path.startswith("/label-studio/") else []
        tokens += request.query_params.getlist("token") if path == "/" else []
        return any(
            one and hmac.compare_digest(one.encode(), self.token.encode())
            for one in tokens
        )

    def _welcome(self, request: HTTPConnection) -> Response:
        """Put the token into a cookie and remove it from the address.

        The browser does not send a new cookie along a redirect that began on another
        site or in a file, so a visit from there gets a page with a link.
        """
        is_foreign = request.headers.get("sec-fetch-site") == "cross-site"
        response = (
            HTMLResponse(PAGE.format("/")) if is_foreign else RedirectResponse("/", 303)
        )
        secure, year = self.scheme == "https", 31_536_000
        response.set_cookie(
            self.cookie,
            self.token,
            year,
            secure=secure,
            httponly=True,
            samesite="strict",
        )
        response.headers["cache-control"] = "no-store"
        return response
