"""Reports: files that are written again and again, and that never replace a file of somebody else."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from imprint.core.errors import FileError
from imprint.core.files.atomic import atomic_write, make_folder
from imprint.core.files.notes import read_note, write_note

WRITTEN = ".imprint-files.json"
"""In a folder of outputs, the files that were written there and digests of their content."""


def write_outputs(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write files, by their names within a folder, each whole or not at all.

    A file that exists is replaced only if an earlier call wrote it and nobody has changed it since.
    """
    written = _written(folder)
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


def _written(folder: Path) -> dict[str, str]:
    try:
        return dict(read_note(folder / WRITTEN, {"files": dict})["files"])
    except FileNotFoundError:
        return {}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
