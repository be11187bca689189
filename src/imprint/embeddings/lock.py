"""One process at a time: a lock that the operating system drops when its holder dies, however it dies."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from imprint.core.errors import FileError

PAUSE = 0.1  # seconds between two tries

if sys.platform == "win32":
    import msvcrt

    def _take(f: IO[bytes]) -> None:
        f.seek(0)
        msvcrt.locking(f.fileno(), msvcrt.LK_NBLCK, 1)

    def _drop(f: IO[bytes]) -> None:
        f.seek(0)
        msvcrt.locking(f.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _take(f: IO[bytes]) -> None:
        fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _drop(f: IO[bytes]) -> None:
        fcntl.flock(f, fcntl.LOCK_UN)


@contextmanager
def exclusive(path: Path, waiting: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Hold the lock on `path` (an empty file, made at need and left there); call `waiting` before each pause.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, exclusive(Path(folder) / "a.lock"):
    ...     print("alone")
    alone
    """
    try:
        f = open(path, "ab")  # noqa: SIM115 - closed below
    except OSError as e:
        raise FileError(f"Cannot lock {path}: {e.strerror}.") from None
    with f:
        while not _tried(f):
            waiting()
            time.sleep(PAUSE)
        try:
            yield
        finally:
            _drop(f)


def _tried(f: IO[bytes]) -> bool:
    try:
        _take(f)
    except (BlockingIOError, PermissionError):
        return False
    except OSError as e:
        raise FileError(f"Cannot lock {f.name}: {e.strerror}.") from None
    return True
