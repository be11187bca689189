"""Sockets to listen on, and the HTTP protocol of uvicorn with deadlines."""

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from imprint.core.errors import FileError, ImprintError

FIRST_PORT, PORTS = 8470, 20  # the first port to try, and how many to try
HEADER_SECONDS = 15.0  # time in which the header of a request must be complete
# time in which a client must take some of an answer (48 kB), or its rest
WRITE_SECONDS = 30.0
BACKLOG = 512  # connections that wait to be accepted
LOOPBACK, ANY_HOST = ("127.0.0.1", "localhost", "[::1]"), ("0.0.0.0", "::")


def listen(host: str, port: int | None) -> socket.socket:
    """A listening socket. None as the port means the first free one from 8470 on, 0
    means any free one.
    """
    for number in range(FIRST_PORT, FIRST_PORT + PORTS) if port is None else (port,):
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            return socket.create_server((host, number), family=family, backlog=BACKLOG)
        except OSError as e:
            reason = str(e.strerror or e).partition(" (")[0]
    raise ImprintError(
        f"Cannot listen on {host}, port {number}: {reason}; choose another --port or"
        " --host."
    )


def in_address(host: str) -> str:
    """A host as it is written in an address: one of IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


class TimedProtocol(H11Protocol):
    """The HTTP protocol of uvicorn, with limits of time for the header of a request,
    and for a client that does not take its answer.
    """

    header_timer: asyncio.TimerHandle | None = None
    write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        _send_at_once(transport)
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
            self.header_timer = self.loop.call_later(HEADER_SECONDS, self._end)

    def _end(self) -> None:
        """Close the connection; a rest that the client does not take is dropped."""
        self.transport.close()
        self._limit_rest()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._limit_rest()

    def _limit_rest(self) -> None:
        if self.transport.get_write_buffer_size():
            self._limit_writing()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._limit_writing()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._allow_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._allow_writing()

    def _limit_writing(self) -> None:
        if self.write_timer is None:
            self.write_timer = self.loop.call_later(WRITE_SECONDS, self.transport.abort)

    def _allow_writing(self) -> None:
        if self.write_timer is not None:
            self.write_timer.cancel()
            self.write_timer = None


def _send_at_once(transport: Any) -> None:
    """Do not hold back a part of an answer until the client has acknowledged the
    part before it (Nagle's algorithm).

    A client acknowledges late, so that would take 44 ms for every request on a
    connection after the first. asyncio does this itself, but only for sockets whose
    protocol is stated, and those of `socket.create_server` state none.
    """
    connection = transport.get_extra_info("socket")
    if connection is not None and connection.family in (
        socket.AF_INET,
        socket.AF_INET6,
    ):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def server_config(
    app: Callable[..., Any],
    certificate: Path | None = None,
    key: Path | None = None,
    shutdown_seconds: int = 1,
) -> uvicorn.Config:
    """The settings of uvicorn; the requests that have begun get `shutdown_seconds` to
    end after a signal.
    """
    return uvicorn.Config(
        app,
        http=TimedProtocol,
        log_level="error",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=shutdown_seconds,
        timeout_keep_alive=60,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )


def load_certificate(config: uvicorn.Config) -> None:
    """Load the settings, and report files that are not a certificate and its key."""
    try:
        config.load()
    except OSError as e:
        files = f"{config.ssl_certfile} and {config.ssl_keyfile}"
        raise FileError(
            f"{files} must be a PEM certificate and its key: {e.strerror or e}."
        ) from None
