"""Files under a temporary name, until they are complete."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import IO

try:
    import fcntl
except ImportError:  # Windows, which refuses to delete a file that is open
    HAS_LOCKS = False
else:
    HAS_LOCKS = True

PARTIAL_SUFFIX = ".imprint-partial"  # of temporary files; no other file has it
# of the name of the file, in the name of its temporary file; the rest of the 255 bytes
# that file systems allow is for the random part and the suffix
NAME_CHARACTERS = 40
# folders in which this process has removed the temporary files of killed processes
_searched_folders: set[Path] = set()


@contextmanager
def partial_file(
    target: Path, publish: Callable[[Path], object], mode: int | None = None
) -> Iterator[IO[bytes]]:
    """Open a new file next to `target` for writing and reading, under a random name.

    `O_EXCL` makes sure that the file is new: a link or a file that somebody has put
    there is never written to. The temporary name is removed in any case; if the process
    is killed, the next one that writes into the folder removes it.

    Parameters
    ----------
    target : Path
        The file to be.
    publish : callable
        Called with the path of the temporary file once its content is on the disk;
        gives the file its name. Not called if the block raises.
    mode : int, optional
        Permissions of the file. By default, those of the umask.
    """
    if target.parent not in _searched_folders:
        _searched_folders.add(target.parent)
        remove_partials(target.parent)
    handle, partial = _create(target, mode)
    try:
        with os.fdopen(handle, "w+b") as f:
            yield f
            f.flush()
            os.fsync(f.fileno())
            if HAS_LOCKS:  # the lock protects the file until it has its name
                publish(partial)
        if not HAS_LOCKS:  # Windows does not rename an open file
            publish(partial)
        _sync_folder(target.parent)
    finally:
        partial.unlink(missing_ok=True)


def _create(target: Path, mode: int | None) -> tuple[int, Path]:
    """The descriptor of a new, locked file next to `target`, and its path."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        random = f".{target.name[:NAME_CHARACTERS]}.{token_hex(8)}{PARTIAL_SUFFIX}"
        partial = target.with_name(random)
        handle = os.open(partial, flags, 0o666 if mode is None else mode | 0o600)
        try:
            if mode is not None:
                os.chmod(partial, mode)
            if not HAS_LOCKS:
                return handle, partial
            with suppress(OSError):  # some network file systems have no locks
                fcntl.flock(handle, fcntl.LOCK_EX)
            # Another process may have removed the file before it was locked.
            if os.fstat(handle).st_nlink:
                return handle, partial
        except BaseException:
            os.close(handle)
            partial.unlink(missing_ok=True)
            raise
        os.close(handle)


def remove_partials(folder: Path) -> None:
    """Remove the temporary files of killed processes.

    Files that a living process writes are locked, or on Windows open, and stay.
    """
    try:
        with os.scandir(folder) as entries:
            partials = [
                Path(entry.path)
                for entry in entries
                if entry.name.startswith(".") and entry.name.endswith(PARTIAL_SUFFIX)
            ]
    except OSError:  # the write that follows reports what is wrong with the folder
        return
    for partial in partials:
        with suppress(OSError):
            _remove_if_abandoned(partial)


def _remove_if_abandoned(partial: Path) -> None:
    """Remove a temporary file; raises OSError if a process writes it."""
    if not stat.S_ISREG(partial.lstat().st_mode):
        return
    if not HAS_LOCKS:
        partial.unlink()
        return
    handle = os.open(partial, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        partial.unlink()
    finally:
        os.close(handle)


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
