"""Downloads that resume after a dropped connection and appear complete or not at all.

Why not `pooch`: its `HTTPDownloader` starts from the first byte, has a timeout per read
but no deadline for the file, and accepts a body of any size.
`tests/unit/datasets/test_hostile_servers.py` requires all three.
"""

import hashlib
import http.client
import io
import os
import ssl
import time
from functools import partial
from pathlib import Path
from typing import Any
from urllib import error, request

from imprint.core.errors import FileError, reporting
from imprint.core.files.atomic import exclusive
from imprint.datasets.named import DownloadProgress, PublishedFile

MAX_ATTEMPTS = 4  # in a row without a new byte
TIMEOUT = 30.0  # seconds without an answer
PAUSE = 1.0  # seconds before the next attempt
# the deadline of a file is this, plus its size / MIN_BYTES_PER_SECOND
BASE_SECONDS = 600.0
MIN_BYTES_PER_SECOND = 50_000
MAX_BYTES = 1 << 33  # of a file whose size is not published
BLOCK_BYTES = 1 << 18  # that are read at once
CONNECTION_ERRORS = (
    error.URLError,
    http.client.HTTPException,
    TimeoutError,
    ConnectionError,
    ssl.SSLError,
)
"""What urllib raises if a server does not answer, or stops."""
HANDLERS = (
    request.ProxyHandler,
    request.HTTPErrorProcessor,
    request.HTTPDefaultErrorHandler,
    request.UnknownHandler,
)


class _RefusedError(Exception):
    """An address does not send the file, for the reason in the message; another may."""


def fetch(
    source: PublishedFile,
    folder: Path,
    progress: DownloadProgress | None = None,
    hint: str = "",
) -> Path:
    """The published file, from `folder` or from the network, checked against its
    digest.

    An unfinished download is next to it as `.part` and is resumed. Processes that need
    the same file wait for one another. The addresses are tried in turn until one sends
    the right file.
    """
    target = folder / source.file
    with reporting("write", target):
        if not target.exists():
            folder.mkdir(parents=True, exist_ok=True)
            with exclusive(folder / f".{source.file}.lock"):
                if not target.exists():
                    _download(source, target, progress, hint)
        if problem := _problem(source, target):
            raise FileError(f"{target.name} {problem}. Delete it to download it again.")
    return target


def _download(
    source: PublishedFile, target: Path, progress: DownloadProgress | None, hint: str
) -> None:
    part = target.with_name(f"{target.name}.part")
    failures = []
    for url in source.urls:
        try:
            _resume(url, part, source, progress)
            problem = _problem(source, part)
            if problem is None:
                os.replace(part, target)
                return
            part.unlink()
            failures.append(f"what {url} sends {problem} and was discarded")
        except _RefusedError as e:
            failures.append(f"{url} {e}")
        except CONNECTION_ERRORS as e:
            reason = str(getattr(e, "reason", "") or e or type(e).__name__)
            failures.append(f"{url} does not answer ({' '.join(reason.split())})")
    raise FileError(
        f"Cannot download {target.name}: {'; '.join(failures)}; put the file into"
        f" {target.parent}{hint}."
    )


def _problem(source: PublishedFile, path: Path) -> str | None:
    """Why a file is not the published one; None if it is."""
    algorithm, expected = (
        ("sha256", source.sha256) if source.sha256 else ("md5", source.md5)
    )
    with open(path, "rb") as f:
        digest = hashlib.file_digest(
            f, lambda: hashlib.new(algorithm, usedforsecurity=False)
        ).hexdigest()
    if digest == expected:
        return None
    return (
        f"({path.stat().st_size} bytes) has {algorithm} {digest}, but must have"
        f" {expected}"
    )


def _resume(
    url: str, part: Path, source: PublishedFile, progress: DownloadProgress | None
) -> None:
    """Append to `part` until the server has no more; an attempt that receives a byte
    resets the count of attempts.
    """
    deadline = (
        time.monotonic() + BASE_SECONDS + (source.size or 0) / MIN_BYTES_PER_SECOND
    )
    attempts_left = MAX_ATTEMPTS
    while True:
        size = part.stat().st_size if part.exists() else 0
        try:
            return _request(url, part, size, source, progress, deadline)
        except CONNECTION_ERRORS as e:
            status = 500
            if isinstance(e, error.HTTPError):
                e.close()
                status = e.code
            # there are no more bytes; the digest tells whether the file is right
            if status == 416:
                return None
            has_grown = part.exists() and part.stat().st_size > size
            attempts_left = MAX_ATTEMPTS if has_grown else attempts_left - 1
            if status < 500 or not attempts_left:
                raise
        time.sleep(PAUSE)


def _request(
    url: str,
    part: Path,
    received: int,
    source: PublishedFile,
    progress: DownloadProgress | None,
    deadline: float,
) -> None:
    """Append what the server sends to `part`, of which `received` bytes are there
    already.
    """
    headers = {"User-Agent": "imprint", "Accept-Encoding": "identity"}
    if received:
        headers["Range"] = f"bytes={received}-"
    with _open_address(url, headers, deadline) as answer:
        if answer.status != 206:
            received = 0  # the server sends everything again
        length = str(answer.headers.get("Content-Length", ""))
        total = (
            received + int(length)
            if length.isdecimal() and len(length) < 16
            else source.size
        )
        with open(part, "ab" if received else "wb") as f:
            while block := answer.read1(BLOCK_BYTES):
                received += len(block)
                if received > (source.size or MAX_BYTES):
                    f.close()
                    part.unlink()
                    raise _RefusedError(
                        f"sends more than the {source.size or MAX_BYTES:,} bytes of the"
                        " file"
                    )
                f.write(block)
                if progress is not None:
                    progress(source.file, received, total)
    if total is not None and received < total:
        raise ConnectionError(f"it ended after {received} of {total} bytes")


def _open_address(url: str, headers: dict[str, str], deadline: float) -> Any:
    """The response of an HTTP or HTTPS address; no read starts after the deadline
    (`time.monotonic`).
    """
    opener = request.OpenerDirector()
    for handler in (
        _HttpHandler(deadline),
        _Redirects(),
        *(kind() for kind in HANDLERS),
    ):
        opener.add_handler(handler)
    try:
        return opener.open(request.Request(url, headers=headers), timeout=TIMEOUT)
    except http.client.HTTPException:
        raise
    except ValueError as e:  # from urllib or the codec of host names
        raise _RefusedError(f"leads to an address that is not valid ({e})") from None


class _HttpHandler(request.HTTPHandler, request.HTTPSHandler):
    """Opens HTTP and HTTPS addresses; reading a response after the deadline fails."""

    def __init__(self, deadline: float) -> None:
        super().__init__()
        self._response = partial(_Response, deadline=deadline)

    def do_open(self, http_class: Any, req: request.Request, **options: Any) -> Any:
        def connect(host: str, **arguments: Any) -> Any:
            connection = http_class(host, **arguments)
            connection.response_class = self._response
            return connection

        return super().do_open(connect, req, **options)


class _Response(http.client.HTTPResponse):
    def __init__(self, *args: Any, deadline: float, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fp = io.BufferedReader(_UntilDeadline(self.fp.detach(), deadline))


class _UntilDeadline(io.RawIOBase):
    """The bytes of a connection until the deadline."""

    def __init__(self, connection: Any, deadline: float) -> None:
        self._connection, self._deadline = connection, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if time.monotonic() > self._deadline:
            raise _RefusedError("is too slow; the same call resumes the download")
        count: int | None = self._connection.readinto(buffer)
        return count

    def close(self) -> None:
        self._connection.close()
        super().close()


class _Redirects(request.HTTPRedirectHandler):
    """Follows redirects without reading their bodies, which may never end."""

    def redirect_request(self, req: Any, fp: Any, *rest: Any) -> Any:
        fp.close()
        return super().redirect_request(req, fp, *rest)
