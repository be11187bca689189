"""One process at a time: a lock that the operating system drops when its holder dies, however it dies."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from imprint.core.errors import FileError

PAUSE = 0.1  # seconds between two tries


@contextmanager
def exclusive(path: Path, waiting: Callable[[], object] = lambda: None, *, remove: bool = False) -> Iterator[None]:
    """Hold the lock on `path`, an empty file made at need; call `waiting` before each pause.

    The file stays unless `remove` is set. Threads exclude one another as processes do; a thread that asks for a lock
    it holds already waits for ever.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, exclusive(Path(folder) / "a.lock"):
    ...     print("alone")
    alone
    """
    if not path.parent.is_dir():
        raise FileError(f"Cannot lock {path}: there is no folder {path.parent}.")
    from filelock import FileLock  # here: it costs a cold start ten milliseconds

    lock = FileLock(path)
    while not _took(lock, path):
        waiting()
        time.sleep(PAUSE)
    try:
        yield
    finally:
        if remove:
            with suppress(OSError):  # Windows keeps a file that is open: it stays, which does no harm
                path.unlink()
        lock.release()


def _took(lock: Any, path: Path) -> bool:
    from filelock import Timeout

    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    except OSError as e:
        raise FileError(f"Cannot lock {path}: {e.strerror or e}.") from None
    return True
