"""One process at a time: a lock that the operating system drops when its holder dies, however it dies."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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
def exclusive(path: Path, waiting: Callable[[], object] = lambda: None, *, remove: bool = False) -> Iterator[None]:
    """Hold the lock on `path`, an empty file made at need; call `waiting` before each pause.

    The file stays unless `remove` is set; then whoever took the lock on a file that is gone starts again.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, exclusive(Path(folder) / "a.lock"):
    ...     print("alone")
    alone
    """
    held = False
    while not held:
        with _opened(path) as f:
            while not _tried(f):
                waiting()
                time.sleep(PAUSE)
            held = not remove or _is_at(f, path)
            if held:
                try:
                    yield
                finally:
                    if remove:
                        with suppress(OSError):  # Windows keeps a file that is open: it stays, which does no harm
                            path.unlink()
                    _drop(f)


def _opened(path: Path) -> IO[bytes]:
    try:
        return open(path, "ab")
    except OSError as e:
        raise FileError(f"Cannot lock {path}: {e.strerror}.") from None


def _is_at(f: IO[bytes], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(f.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def _tried(f: IO[bytes]) -> bool:
    try:
        _take(f)
    except (BlockingIOError, PermissionError):
        return False
    except OSError as e:
        raise FileError(f"Cannot lock {f.name}: {e.strerror}.") from None
    return True
