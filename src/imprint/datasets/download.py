"""Downloads that survive a dropped connection and arrive whole or not at all."""

import hashlib
import http.client
import os
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from imprint.core.errors import FileError
from imprint.datasets.record import Progress, Source

ATTEMPTS = 4  # in a row without a new byte
TIMEOUT = 30.0  # seconds without an answer
PAUSE = 1.0  # seconds before the next attempt
BLOCK = 1 << 18
_BROKEN = (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError, ssl.SSLError)


def fetch(source: Source, folder: Path, progress: Progress | None = None, hint: str = "") -> Path:
    """The published file, from `folder` or from the network, checked against its digest.

    An unfinished download lies beside it as `.part` and is taken up where it stopped. Processes that want the
    same file wait for one another.
    """
    target = folder / source.file
    if not target.exists():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with _locked(folder / f".{source.file}.lock"):
                if not target.exists():
                    _download(source, target, progress, hint)
        except FileError:
            raise
        except OSError as e:
            raise FileError(f"Cannot write {target}: {e.strerror or e}.") from None
    _verify(source, target, "Delete it to download it again.")
    return target


def _download(source: Source, target: Path, progress: Progress | None, hint: str) -> None:
    part = target.with_name(f"{target.name}.part")
    failure = ""
    for url in source.urls:
        try:
            _resume(url, part, source, progress)
            break
        except _BROKEN as e:
            failure = f"{url} does not answer ({getattr(e, 'reason', '') or e or type(e).__name__})"
    else:
        raise FileError(f"Cannot download {target.name}: {failure}; put the file into {target.parent}{hint}.")
    try:
        _verify(source, part, "The download was discarded; try again.")
    except FileError:
        part.unlink()
        raise
    os.replace(part, target)


def _resume(url: str, part: Path, source: Source, progress: Progress | None) -> None:
    """Append to `part` until the server has no more; every attempt that brings a byte earns new ones."""
    left = ATTEMPTS
    while True:
        have = part.stat().st_size if part.exists() else 0
        try:
            return _request(url, part, have, source, progress)
        except urllib.error.HTTPError as e:
            e.close()
            if e.code == 416:  # nothing lies beyond what we have; the digest will say whether it is right
                return None
            if e.code < 500:
                raise
            failure: Exception = e
        except _BROKEN as e:
            failure = e
        left = ATTEMPTS if part.exists() and part.stat().st_size > have else left - 1
        if not left:
            raise failure
        time.sleep(PAUSE)


def _request(url: str, part: Path, have: int, source: Source, progress: Progress | None) -> None:
    headers = {"User-Agent": "imprint", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT) as answer:
        if answer.status != 206:
            have = 0  # the server sends everything again
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length else source.size
        with open(part, "ab" if have else "wb") as f:
            while block := answer.read(BLOCK):
                f.write(block)
                have += len(block)
                if progress is not None:
                    progress(source.file, have, total)
    if total is not None and have < total:
        raise ConnectionError(f"it ended after {have} of {total} bytes")


def _verify(source: Source, path: Path, remedy: str) -> None:
    kind, wanted = ("sha256", source.sha256) if source.sha256 else ("md5", source.md5)
    with open(path, "rb") as f:
        found = hashlib.file_digest(f, lambda: hashlib.new(kind, usedforsecurity=False)).hexdigest()
    if found != wanted:
        size = path.stat().st_size
        raise FileError(f"{path.name} ({size} bytes) has {kind} {found}, but must have {wanted}. {remedy}")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold `path` as a lock among processes; the system lets go of it if the process dies."""
    with open(path, "ab") as f:
        _lock(f)
        yield


if os.name == "nt":

    def _lock(file: Any) -> None:
        import msvcrt

        while True:
            try:
                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
                return
            except OSError:
                time.sleep(0.2)

else:

    def _lock(file: Any) -> None:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)
