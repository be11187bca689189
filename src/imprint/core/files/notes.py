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
WRITTEN = ".imprint-files.json"  # in a folder of reports: the names and digests of the files that were written there


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
        values: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
        if values.pop(key, None) != _checksum(values):
            raise ValueError
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError, AttributeError, TypeError):
        raise FileError(f"{path}: it is damaged or was altered; its checksum does not match.") from None
    for name, kind in holds.items():
        if type(values.get(name)) is not kind:
            raise FileError(f"{path}: its {name!r} is missing or not what this imprint writes there.")
    return values


def _checksum(values: dict[str, Any]) -> str:
    return digest([json.dumps(values, sort_keys=True)])


def write_outputs(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write files, by their names within a folder, each complete or not at all.

    A file that exists is replaced only if an earlier call wrote it and nobody has changed it since.
    """
    try:
        written = read_note(folder / WRITTEN, {"files": dict})["files"]
    except FileNotFoundError:
        written = {}
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    for name, sha256 in digests.items():
        path = folder / name
        if path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() not in (sha256, written.get(name)):
            rule = "it exists, and imprint did not write it or it was changed since; move it or choose another folder"
            raise FileError(f"Cannot write {path}: {rule}.")
    for name, content in files.items():
        make_folder((folder / name).parent)
        with atomic_write(folder / name) as f:
            f.write(content)
    write_note(folder / WRITTEN, {"files": written | digests})
    return [folder / name for name in files]
