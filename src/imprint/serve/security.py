"""Who may ask: the holder of the token, from the page itself, under the server's own name."""

import hmac
import ipaddress
import os
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from imprint.core.errors import FileError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
OPEN = ("/api/health",)
"""What anybody may ask who reaches the server under its own name."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "media-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(self), microphone=(), geolocation=()"),
]


def token_of(folder: Path) -> str:
    """The token of a classroom, made once and readable by its owner alone."""
    place = folder / "token"
    try:
        if place.exists():
            return place.read_text("ascii").strip()
        with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as f:
            f.write(token := secrets.token_urlsafe(24))
        return token
    except (OSError, UnicodeDecodeError) as e:
        raise FileError(f"Cannot keep the token in {place}: {e}.") from None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


class Guard:
    """Refuses requests under a foreign name, from foreign pages, and without the token; adds headers to every answer.

    The first visit brings the token in the address and gets it as a cookie that scripts cannot read and that other
    sites cannot send; programs send `Authorization: Bearer TOKEN`.
    """

    def __init__(self, app: App, token: str, port: int, host: str = "127.0.0.1", tls: bool = False):
        self.app, self.token, self.cookie = app, token, f"imprint-{port}"
        self.scheme = "https" if tls else "http"
        names = LOOPBACK if is_loopback(host) else (*LOOPBACK, host)
        self.any_name = host in ("0.0.0.0", "::")
        self.hosts = {f"{name}:{port}" for name in names} | ({"localhost"} if port in (80, 443) else set())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        status, reason = self._refusal(scope, headers)
        if reason:
            await _say(send, status, reason)
        elif scope["path"] == "/" and "token" in parse_qs(scope["query_string"].decode("latin-1")):
            await self._welcome(send)
        else:
            await self.app(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str]:
        host = headers.get("host", "")
        if host not in self.hosts and not self.any_name:
            return 403, "This server does not answer under that name; use the address that imprint serve printed."
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        if origin is not None and origin != f"{self.scheme}://{host}":
            return 403, "Requests from other pages are refused."
        if site not in ("none", "same-origin") and not (site == "cross-site" and _is_visit(scope, headers)):
            return 403, "Requests from other pages are refused."
        if scope["path"] in OPEN or self._knows(scope, headers):
            return 200, ""
        return 403, "The token is missing or wrong: open the address that imprint serve printed."

    def _knows(self, scope: Scope, headers: dict[str, str]) -> bool:
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            cookie = None
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        asked = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0] if scope["path"] == "/" else ""
        given = (cookie.value if cookie else "", bearer if scheme == "Bearer" else "", asked)
        return any(hmac.compare_digest(one.encode(), self.token.encode()) for one in given)

    async def _welcome(self, send: Send) -> None:
        """Put the token into a cookie and out of the address."""
        secure = "; Secure" if self.scheme == "https" else ""
        cookie = f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000{secure}"
        headers = [*HEADERS, (b"set-cookie", cookie.encode()), (b"location", b"/"), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


def _is_visit(scope: Scope, headers: dict[str, str]) -> bool:
    """Whether someone followed a link to the page, which brings no cookie and changes nothing."""
    return scope["path"] == "/" and scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate"


def _with_headers(send: Send) -> Send:
    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *HEADERS]
        await send(message)

    return sent


async def _say(send: Send, status: int, sentence: str) -> None:
    headers = [*HEADERS, (b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": sentence.encode() + b"\n"})
