"""Small JSON files with a checksum, and reports that never replace a file of somebody else."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from imprint.core.digest import digest
from imprint.core.errors import FileError
from imprint.core.files.atomic import atomic_write, make_folder

CHECKSUM = "sha256"  # the key of the checksum


def write_note(path: str | os.PathLike[str], values: dict[str, Any], key: str = CHECKSUM) -> None:
    """Write values that JSON can hold, complete or not at all; the key `key` holds their checksum."""
    with atomic_write(path) as f:
        f.write(json.dumps({**values, key: _checksum(values)}, indent=1, sort_keys=True).encode() + b"\n")


def read_note(path: str | os.PathLike[str], holds: Mapping[str, type], key: str = CHECKSUM) -> dict[str, Any]:
    """What `write_note` wrote; a file that is damaged, was altered, or does not hold values of these types is refused.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_note(Path(folder) / "a.json", {"b": [1, 2]})
    ...     read_note(Path(folder) / "a.json", {"b": list})
    {'b': [1, 2]}
    """
    try:
        values = json.loads(Path(path).read_text(encoding="utf-8"))
        checksum = values.pop(key, None)
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError, AttributeError, TypeError):
        raise _damaged(path) from None
    if checksum != _checksum(values):
        raise _damaged(path)
    for name, kind in holds.items():
        if type(values.get(name)) is not kind:
            raise FileError(f"{path}: its {name!r} is missing or not what this imprint writes there.")
    return dict(values)


def _checksum(values: dict[str, Any]) -> str:
    return digest([json.dumps(values, sort_keys=True)])


def _damaged(path: str | os.PathLike[str]) -> FileError:
    return FileError(f"{path}: it is damaged or was altered; its checksum does not match.")


WRITTEN = ".imprint-files.json"
"""In a folder of reports: the names of the files that were written there and digests of their content."""


def write_outputs(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write files, by their names within a folder, each complete or not at all.

    A file that exists is replaced only if an earlier call wrote it and nobody has changed it since.
    """
    try:
        written = dict(read_note(folder / WRITTEN, {"files": dict})["files"])
    except FileNotFoundError:
        written = {}
    for name, content in files.items():
        path = folder / name
        if path.exists() and path.read_bytes() != content and written.get(name) != _digest(path.read_bytes()):
            rule = "it exists, and imprint did not write it or it was changed since; move it or choose another folder"
            raise FileError(f"Cannot write {path}: {rule}.")
    for name, content in files.items():
        make_folder((folder / name).parent)
        with atomic_write(folder / name) as f:
            f.write(content)
    write_note(folder / WRITTEN, {"files": written | {name: _digest(content) for name, content in files.items()}})
    return [folder / name for name in files]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
