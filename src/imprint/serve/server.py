"""Opens a port and answers until it is stopped."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from imprint.core.errors import FileError, ImprintError, ParameterError
from imprint.serve.app import application
from imprint.serve.security import token_of

if TYPE_CHECKING:
    from imprint.serve.classroom import Classroom

PORT, TRIES = 8470, 20


def bound(host: str, port: int | None) -> socket.socket:
    """A listening socket; without a port the first free one from 8470 on, with 0 any free one."""
    for one in range(PORT, PORT + TRIES) if port is None else (port,):
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            return socket.create_server((host, one), family=family, backlog=512)
        except OSError as e:
            failed = e
    raise ImprintError(f"Cannot listen on {host}, port {one}: {failed.strerror or failed}; choose another with --port.")


def serve(
    classroom: "Classroom",
    listening: socket.socket,
    host: str,
    ready: Callable[[str], object],
    certificate: Path | None = None,
    key: Path | None = None,
) -> None:
    """Answer until Ctrl-C; `ready` hears the address to open, token included."""
    import uvicorn

    tls, port = certificate is not None, listening.getsockname()[1]
    if tls and key is None:
        raise ParameterError("--certificate needs --key as well.")
    token = token_of(classroom.folder)
    config = uvicorn.Config(
        application(classroom, token, port, host, tls),
        log_level="error",
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=1,
        timeout_keep_alive=60,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    try:
        config.load()
    except OSError as e:
        raise FileError(f"{certificate} and {key} are no certificate with its key in PEM: {e.strerror or e}.") from None
    ready(f"http{'s' if tls else ''}://{_reached_as(host)}:{port}/?token={token}")
    uvicorn.Server(config).run(sockets=[listening])


def _reached_as(host: str) -> str:
    """What stands for the host in an address that another machine can open."""
    if host in ("0.0.0.0", "::"):
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host
