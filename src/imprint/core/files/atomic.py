"""Files that appear complete or not at all, among them JSON with a checksum; locks; the
folder for caches.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from imprint.core.errors import FileError, reporting
from imprint.core.files.partial import partial_file

# in a folder of reports: the names and digests of the files written there
OUTPUT_LIST = ".imprint-files.json"
CHECKSUM_KEY = "sha256"  # in a JSON file, the key of the checksum of the other values
LOCK_INTERVAL = 0.1  # seconds between two attempts to lock a file


@contextmanager
def atomic_write(
    path: str | os.PathLike[str], *, private: bool = False
) -> Iterator[IO[bytes]]:
    """Open a new file next to `path` for writing and reading; it is renamed to `path`
    if the block ends without error.

    A crash, a full disk or Ctrl-C leaves the old file intact. A new file gets the
    permissions of the umask, a replaced one keeps its permissions. Only the owner can
    read a `private` one. If `path` is a link, its target is replaced.
    """
    target = Path(os.path.realpath(path))
    with reporting("write", path):
        if target.is_dir():
            raise FileError(f"Cannot write {path}: it is a folder.")
        if target.exists() and not target.is_file():
            raise FileError(f"Cannot write {path}: it is not an ordinary file.")
        mode = target.stat().st_mode & 0o777 if target.exists() else None
        mode = 0o600 if private else mode
        with partial_file(
            target, lambda partial: os.replace(partial, target), mode
        ) as f:
            yield f


def make_folder(folder: Path) -> Path:
    """Create the folder and its parents."""
    with reporting("make the folder", folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_checked(
    path: str | os.PathLike[str], values: dict[str, Any], key: str = CHECKSUM_KEY
) -> None:
    """Write values as JSON with their checksum under `key`, complete or not at all."""
    with atomic_write(path) as f:
        f.write(
            json.dumps(
                {**values, key: _checksum(values)}, indent=1, sort_keys=True
            ).encode()
            + b"\n"
        )


def read_checked(
    path: str | os.PathLike[str], types: Mapping[str, type], key: str = CHECKSUM_KEY
) -> dict[str, Any]:
    """The values that `write_checked` wrote; a wrong checksum, or values of other
    types, are an error.
    """
    try:
        values: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
        if values.pop(key, None) != _checksum(values):
            raise ValueError
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError, AttributeError, TypeError):
        raise FileError(
            f"{path}: it is damaged or was altered; its checksum does not match."
        ) from None
    for name, expected in types.items():
        if type(values.get(name)) is not expected:
            raise FileError(
                f"{path}: its {name!r} is missing or not what this imprint writes"
                " there."
            )
    return values


def _checksum(values: dict[str, Any]) -> str:
    from imprint.core.arrays import digest  # imports NumPy

    return digest([json.dumps(values, sort_keys=True)])


def write_outputs(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write files into a folder, given by name, each complete or not at all; their
    paths.

    An existing file is replaced only if an earlier call wrote it and it has not changed
    since.
    """
    try:
        written = read_checked(folder / OUTPUT_LIST, {"files": dict})["files"]
    except FileNotFoundError:
        written = {}
    digests = {
        name: hashlib.sha256(content).hexdigest() for name, content in files.items()
    }
    for name, sha256 in digests.items():
        path = folder / name
        with reporting("replace", path):
            existing = (
                hashlib.sha256(path.read_bytes()).hexdigest()
                if path.exists()
                else sha256
            )
        if existing not in (sha256, written.get(name)):
            rule = (
                "it exists, and imprint did not write it or it was changed since; move"
                " it or choose another folder"
            )
            raise FileError(f"Cannot write {path}: {rule}.")
    for name, content in files.items():
        make_folder((folder / name).parent)
        with atomic_write(folder / name) as f:
            f.write(content)
    write_checked(folder / OUTPUT_LIST, {"files": written | digests})
    return [folder / name for name in files]


@contextmanager
def exclusive(
    path: Path, waiting: Callable[[], object] = lambda: None, *, remove: bool = False
) -> Iterator[None]:
    """Hold the lock on the file `path`, which is created if needed; call `waiting`
    before each pause.

    The operating system releases the lock when the process dies. The file stays unless
    `remove` is set. The lock also excludes other threads of the process. It is not
    reentrant: a thread that locks a file twice deadlocks.
    """
    if not path.parent.is_dir():
        raise FileError(f"Cannot lock {path}: there is no folder {path.parent}.")
    from filelock import FileLock, Timeout  # importing it takes ten milliseconds

    lock = FileLock(path)
    while True:
        with reporting("lock", path), suppress(Timeout):
            lock.acquire(timeout=0)
            break
        waiting()
        time.sleep(LOCK_INTERVAL)
    try:
        yield
    finally:
        with suppress(OSError):  # Windows does not delete an open file; it may stay
            if remove:
                path.unlink()
        lock.release()


def home() -> Path:
    """The folder for data and embeddings: `IMPRINT_HOME`, else `imprint` in the user's
    cache folder.

    The cache folder is `$XDG_CACHE_HOME` or `~/.cache`, on Windows `%LOCALAPPDATA%`.
    Nothing is created.
    """
    if folder := os.environ.get("IMPRINT_HOME"):
        return Path(os.path.expanduser(folder)).absolute()
    if os.name == "nt":
        local = os.environ.get("LOCALAPPDATA")
        cache = Path(local) if local else _user_folder() / "AppData" / "Local"
    else:
        named = os.environ.get("XDG_CACHE_HOME", "")
        cache = Path(named) if os.path.isabs(named) else _user_folder() / ".cache"
    return cache / "imprint"


def expanded(path: str | os.PathLike[str]) -> Path:
    """The path with the home folder for `~`. That of an unknown user stays as it is,
    and does not exist.
    """
    return Path(os.path.expanduser(path))


def _user_folder() -> Path:
    """The user's home folder, which a user without an account of the system lacks."""
    try:
        return Path.home()
    except RuntimeError:
        raise FileError(
            "There is no home folder for the cache: set IMPRINT_HOME to a folder."
        ) from None
