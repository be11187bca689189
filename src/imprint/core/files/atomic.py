"""Files appear whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import IO

from imprint.core.errors import FileError

PARTIAL = ".imprint-partial"
"""The suffix of temporary files; no other file is mistaken for one."""


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a temporary file next to `path`; it is renamed to `path` once the block ends without an error.

    A crash, a full disk or Ctrl-C leaves the old file intact. A new file has the permissions of the process's umask, a
    replaced one keeps its own. If `path` is a link, its target is replaced.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise FileError(f"Cannot write {path}: it is a folder.")
    if target.exists() and not target.is_file():
        raise FileError(f"Cannot write {path}: it is not an ordinary file.")
    try:
        handle, name = _temporary(target)
    except OSError as e:
        raise FileError(f"Cannot write {path}: {e.strerror}.") from None
    try:
        try:
            with os.fdopen(handle, "wb") as f:
                yield f
                f.flush()
                os.fsync(f.fileno())
            os.replace(name, target)
            _sync_folder(target.parent)
        except FileError:
            raise
        except OSError as e:
            raise FileError(f"Cannot write {path}: {e.strerror or e}.") from None
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)


def make_folder(folder: Path) -> Path:
    """Create the folder and its parents, or refuse in one sentence."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise FileError(f"Cannot make the folder {folder}: {e.strerror}.") from None
    return folder


def remove_partials(folder: Path) -> None:
    """Remove the temporary files of killed writers; the caller must know that nobody writes there now."""
    for partial in folder.glob(f".*{PARTIAL}"):
        with suppress(OSError):
            partial.unlink()


def _temporary(target: Path) -> tuple[int, Path]:
    """A new, open file next to `target`. The system applies the umask, so that no thread has to read it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    replaced_mode = target.stat().st_mode & 0o777 if target.exists() else None
    while True:
        path = target.with_name(f".{target.name[:40]}.{token_hex(8)}{PARTIAL}")
        with suppress(FileExistsError):
            handle = os.open(path, flags, 0o666 if replaced_mode is None else replaced_mode | 0o600)
            if replaced_mode is not None:
                os.chmod(path, replaced_mode)
            return handle, path


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
