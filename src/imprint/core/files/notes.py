"""Small JSON files with a checksum: what is read back is what was written, or refused in one sentence."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from imprint.core.digest import digest
from imprint.core.errors import FileError
from imprint.core.files.atomic import atomic_write

SEAL = "sha256"


def write_note(path: str | os.PathLike[str], values: dict[str, Any], seal: str = SEAL) -> None:
    """Write values that JSON can hold, whole or not at all; the key `seal` gets their checksum."""
    with atomic_write(path) as f:
        f.write(json.dumps({**values, seal: _seal(values)}, indent=1, sort_keys=True).encode() + b"\n")


def read_note(path: str | os.PathLike[str], holds: Mapping[str, type], seal: str = SEAL) -> dict[str, Any]:
    """What `write_note` wrote; a file that is damaged, was altered, or does not hold values of these types is refused.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_note(Path(folder) / "a.json", {"b": [1, 2]})
    ...     read_note(Path(folder) / "a.json", {"b": list})
    {'b': [1, 2]}
    """
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        checksum = found.pop(seal, None)
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError, AttributeError, TypeError):
        raise _damaged(path) from None
    if checksum != _seal(found):
        raise _damaged(path)
    for key, kind in holds.items():
        if type(found.get(key)) is not kind:
            raise FileError(f"{path}: its {key!r} is missing or not what this imprint writes there.")
    return dict(found)


def _seal(values: dict[str, Any]) -> str:
    return digest([json.dumps(values, sort_keys=True)])


def _damaged(path: str | os.PathLike[str]) -> FileError:
    return FileError(f"{path}: it is damaged or was altered; its checksum does not match.")
