"""Who may ask: the holder of the token, from the page itself, under the server's own name."""

import hmac
import ipaddress
import json
import os
import re
import secrets
import tempfile
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from imprint.core.errors import FileError, ParameterError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
OPEN = ("/api/health",)
"""What needs no token."""
TOKEN = re.compile(r"[A-Za-z0-9_-]{20,100}")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "media-src 'self' blob: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(self), microphone=(), geolocation=()"),
]
CONTINUE = (
    b'<!doctype html><meta http-equiv="refresh" content="0; url=/"><title>imprint</title><a href="/">Continue</a>'
)


def token_of(folder: Path) -> str:
    """The token of a project, created once and readable by its owner alone."""
    path = folder / "token"
    try:
        if not path.exists():
            write_private(path, secrets.token_urlsafe(24))
        token = path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as e:
        raise FileError(f"Cannot read the token in {path}: {e}; delete that file to create another one.") from None
    if not TOKEN.fullmatch(token):
        raise FileError(f"{path} holds no valid token; delete that file to create another one.")
    return token


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, completely or not at all."""
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as f:
            f.write(text)
            f.flush()
            os.fsync(f.fileno())
        os.replace(partial, path)
    except BaseException:
        os.unlink(partial)
        raise


def redirect_file(folder: Path, address: str) -> Path:
    """A private page that leads to an address, so that the token is not in the command line of the browser."""
    path = folder / "open.html"
    write_private(path, f'<!doctype html><meta http-equiv="refresh" content="0; url={address}"><title>imprint</title>')
    return path


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


class Guard:
    """Refuses requests under a foreign name, from foreign pages, and without the token; adds headers to every answer.

    The first visit has the token in its address and gets it as a cookie that scripts cannot read and that other sites
    cannot send; programs send `Authorization: Bearer TOKEN`.
    """

    def __init__(self, app: App, token: str, port: int, host: str = "127.0.0.1", tls: bool = False):
        if not token:
            raise ParameterError("Guard(token=''): the token must not be empty.")
        self.app, self.token, self.cookie = app, token.encode(), f"imprint-{port}"
        self.scheme = "https" if tls else "http"
        names = LOOPBACK if is_loopback(host) else (*LOOPBACK, host)
        self.any_name = host in ("0.0.0.0", "::")
        self.hosts = {f"{name}:{port}" for name in names} | ({"localhost"} if port in (80, 443) else set())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        reason = self._refusal(scope, headers)
        if reason:
            await _refuse(send, scope["path"], reason)
        elif scope["path"] == "/" and "token" in parse_qs(scope["query_string"].decode("latin-1")):
            await self._welcome(send, headers.get("sec-fetch-site", "none"))
        else:
            await self.app(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> str | None:
        host = headers.get("host", "")
        if host not in self.hosts and not self.any_name:
            return "This server does not answer under that name; use the address that imprint serve printed."
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        if origin is not None and origin != f"{self.scheme}://{host}":
            return "Requests from other pages are refused."
        if site not in ("none", "same-origin") and not (site == "cross-site" and _is_visit(scope, headers)):
            return "Requests from other pages are refused."
        if scope["path"] in OPEN or self._has_token(scope, headers):
            return None
        return "The token is missing or wrong: open the address that imprint serve printed."

    def _has_token(self, scope: Scope, headers: dict[str, str]) -> bool:
        given = [value for name, value in _cookies(headers.get("cookie", "")) if name == self.cookie]
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        given += [bearer] if scheme == "Bearer" else []
        if scope["path"].startswith("/label-studio/"):  # Label Studio sends no header with its webhooks
            given.append(scope["path"].split("/")[2])
        if scope["path"] == "/":
            given += parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        return any(one and hmac.compare_digest(one.encode(), self.token) for one in given)

    async def _welcome(self, send: Send, site: str) -> None:
        """Put the token into a cookie and out of the address.

        The cookie is not sent along a redirect that began on another site or in a file, so a visit from there gets a
        page that leads on.
        """
        secure = "; Secure" if self.scheme == "https" else ""
        value = f"{self.cookie}={self.token.decode()}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000{secure}"
        headers = [*HEADERS, (b"set-cookie", value.encode()), (b"cache-control", b"no-store")]
        if site == "cross-site":
            await _send(send, 200, [*headers, (b"content-type", b"text/html; charset=utf-8")], CONTINUE)
        else:
            await _send(send, 303, [*headers, (b"location", b"/")], b"")


def _cookies(header: str) -> list[tuple[str, str]]:
    """Names and values of a Cookie header, in time that grows linearly with its length."""
    pairs = (part.partition("=") for part in header.split(";"))
    return [(name.strip(), value.strip()) for name, _, value in pairs]


def _is_visit(scope: Scope, headers: dict[str, str]) -> bool:
    """Whether someone followed a link to the page, which brings no cookie and changes nothing."""
    return scope["path"] == "/" and scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate"


def _with_headers(send: Send) -> Send:
    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *HEADERS]
        await send(message)

    return sent


async def _refuse(send: Send, path: str, sentence: str) -> None:
    """A refusal as the API promises it; for a person who opens the page as plain text."""
    kind, raw = b"application/json", json.dumps({"error": sentence}).encode()
    if path == "/":
        kind, raw = b"text/plain; charset=utf-8", sentence.encode() + b"\n"
    await _send(send, 403, [*HEADERS, (b"content-type", kind), (b"connection", b"close")], raw)


async def _send(send: Send, status: int, headers: list[tuple[bytes, bytes]], raw: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": raw})
