"""The manifest of a finished store: what it holds, and the size and checksum of every file."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from imprint.core.digest import digest
from imprint.core.errors import FileError
from imprint.core.files.atomic import atomic_write

HEADER = 128  # bytes before the first row: the header of a .npy file, written last
ROWS, MANIFEST, LABELS, NAMES = "rows.npy", "manifest.json", "labels.npy", "names.json"
FILES = (ROWS, LABELS, NAMES)
CHUNK = 1 << 20  # bytes; a checksum needs no more memory than this
KINDS = dict(format=int, imprint=str, key=str, backbone=dict, data=dict, dtype=str, rows=int, width=int)
KINDS |= dict(inputs=int, skipped=list, files=dict, digest=str)


def npy_header(rows: int, width: int) -> bytes:
    """The first bytes of a float32 `.npy` file: always of the same length, so that it can be written last.

    >>> npy_header(3, 512)[10:71]
    b"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 512), }"
    """
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {width}), }}"
    body = text.ljust(HEADER - 11).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(body).to_bytes(2, "little") + body


def write_names(path: Path, names: Iterable[str]) -> None:
    """Write names as a JSON list, one per line, without holding them all."""
    with atomic_write(path) as f:
        f.write(b"[")
        for i, name in enumerate(names):
            f.write((",\n" if i else "\n").encode() + json.dumps(name).encode())
        f.write(b"\n]\n")


def read_names(path: Path) -> list[str]:
    """The names that `write_names` wrote."""
    names: list[str] = json.loads(path.read_bytes())
    return names


def write_manifest(folder: Path, facts: dict[str, Any]) -> None:
    """Describe the files of `folder`; after this the store is complete."""
    files = {name: {"bytes": (folder / name).stat().st_size, "sha256": sha256(folder / name)} for name in FILES}
    manifest = facts | {"files": files}
    with atomic_write(folder / MANIFEST) as f:
        f.write(json.dumps(manifest | {"digest": _own(manifest)}, indent=1, sort_keys=True).encode() + b"\n")


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a store, refused where it is missing, damaged or not one of ours."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        raise _damaged(folder, f"{MANIFEST} is missing") from None
    except OSError as e:
        raise FileError(f"Cannot read {folder / MANIFEST}: {e.strerror}.") from None
    except (ValueError, RecursionError):
        raise _damaged(folder, f"{MANIFEST} cannot be read") from None
    if not isinstance(manifest, dict) or {k: type(v) for k, v in manifest.items()} != KINDS:
        raise _damaged(folder, f"{MANIFEST} is not the manifest of embeddings")
    if manifest["digest"] != _own(manifest) or not _is_consistent(manifest):
        raise _damaged(folder, f"{MANIFEST} has been changed")
    return manifest


def verify_files(folder: Path, manifest: dict[str, Any], *, rows: bool) -> None:
    """Compare every file with the manifest; the rows' checksum only where `rows` asks for it."""
    for name in FILES:
        path, entry = folder / name, manifest["files"][name]
        try:
            if path.stat().st_size != entry["bytes"]:
                raise _damaged(folder, f"{name} has {path.stat().st_size:,} bytes instead of {entry['bytes']:,}")
            if (rows or name != ROWS) and sha256(path) != entry["sha256"]:
                raise _damaged(folder, f"{name} does not have its checksum")
        except FileNotFoundError:
            raise _damaged(folder, f"{name} is missing") from None
    with open(folder / ROWS, "rb") as f:
        if f.read(HEADER) != npy_header(manifest["rows"], manifest["width"]):
            raise _damaged(folder, f"{ROWS} does not have its header")


def sha256(path: Path) -> str:
    """The SHA-256 of a file, read piece by piece."""
    h, piece = hashlib.sha256(), memoryview(bytearray(CHUNK))
    with open(path, "rb", buffering=0) as f:
        while n := f.readinto(piece):
            h.update(piece[:n])
    return h.hexdigest()


def _is_consistent(manifest: dict[str, Any]) -> bool:
    """Whether the parts that opening relies on fit together, whoever wrote them."""
    files, rows, width, inputs = (manifest[k] for k in ("files", "rows", "width", "inputs"))
    return (
        set(files) == set(FILES)
        and all(type(e) is dict and set(e) == {"bytes", "sha256"} for e in files.values())
        and rows > 0 < width
        and files[ROWS]["bytes"] == HEADER + 4 * rows * width
        and rows + len(manifest["skipped"]) == inputs
        and all(type(s) is list and [*map(type, s)] == [int, str, str] for s in manifest["skipped"])
    )


def _own(manifest: dict[str, Any]) -> str:
    return digest([json.dumps({k: v for k, v in manifest.items() if k != "digest"}, sort_keys=True)])


def _damaged(folder: Path, what: str) -> FileError:
    return FileError(f"The embeddings in {folder} are damaged ({what}): delete that folder and extract again.")
