"""Files appear whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from imprint.core.errors import FileError

PARTIAL = ".imprint-partial"
"""How the names of temporary files end; no other file is ever taken for one."""


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a temporary neighbour of `path`; it takes the name once the block ends without an error.

    A crash, a full disk or Ctrl-C leaves what stood there before, whole. A link stays one: what it points to is
    replaced.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise FileError(f"Cannot write {path}: it is a folder.")
    if target.exists() and not target.is_file():
        raise FileError(f"Cannot write {path}: it is no ordinary file.")
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.", suffix=PARTIAL)
    except OSError as e:
        raise FileError(f"Cannot write {path}: {e.strerror}.") from None
    try:
        try:
            with os.fdopen(handle, "wb") as f:
                yield f
                f.flush()
                os.fsync(f.fileno())
            os.chmod(name, _mode_for(target))
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
    """The folder, made if need be with those it lies in, or a sentence why not."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise FileError(f"Cannot make the folder {folder}: {e.strerror}.") from None
    return folder


def remove_partials(folder: Path) -> None:
    """Remove what writers that were killed left in a folder; only for who knows that nobody writes there now."""
    for partial in folder.glob(f".*{PARTIAL}"):
        with suppress(OSError):
            partial.unlink()


def _mode_for(target: Path) -> int:
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
