"""The folder of a study: one Parquet shard per finished unit, a manifest, the reasons of failures, a lock."""

import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from imprint.core.atomic import atomic_write
from imprint.core.errors import FileError
from imprint.core.types import Array
from imprint.core.version import __version__
from imprint.embeddings.lock import exclusive
from imprint.study.grid import PARTS
from imprint.study.plan import Plan, Unit
from imprint.study.study import Study

MANIFEST, SHARDS, FAILURES, LOCK = "manifest.json", "shards", "failures", ".lock"
FORMAT = 1
LIBRARIES = ("numpy", "scipy", "scikit-learn", "pyarrow", "numba", "torch", "ray")


class Store:
    """What is known of a study in one folder. Shards appear whole or not at all and are never rewritten."""

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = Path(folder)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for one run; the system lets go of it when the process ends, however it ends."""
        try:
            for place in (self.folder / SHARDS, self.folder / FAILURES):
                place.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise FileError(f"Cannot write {self.folder}: {e.strerror}.") from None
        with exclusive(self.folder / LOCK, self._busy):
            self._sweep()
            yield

    def _busy(self) -> None:
        raise FileError(f"{self.folder}: another run is at work in this folder; wait for it or choose another folder.")

    def _sweep(self) -> None:
        """Remove the halves of files that a killed run left; only the holder of the lock writes here."""
        for place in (self.folder, self.folder / SHARDS, self.folder / FAILURES):
            for half in place.glob(".*.*"):
                with suppress(OSError):
                    half.unlink()

    def done(self) -> set[bytes]:
        """The keys of all finished cells."""
        keys: set[bytes] = set()
        for path in self.shards():
            keys.update(_read(path, ["key"])["key"].to_pylist())
        return keys

    def shards(self) -> list[Path]:
        """The finished shards, in a fixed order."""
        return sorted((self.folder / SHARDS).glob("*.parquet"))

    def table(self) -> pa.Table:
        """All finished cells."""
        tables = [_read(path) for path in self.shards()]
        return pa.concat_tables(tables).unify_dictionaries() if tables else schema().empty_table()

    def write(self, unit: Unit, columns: dict[str, Array]) -> None:
        """Keep a finished unit."""
        with atomic_write(self.folder / SHARDS / f"{unit.key}.parquet") as f:
            pq.write_table(to_table(unit, columns), f, compression="zstd")
        if notes := list((self.folder / FAILURES).glob("*.json")):
            finished = {part.key for part in (unit, *unit.apart())}
            for note in notes:
                if note.stem in finished:
                    note.unlink()

    def fail(self, unit: Unit, reason: str) -> None:
        """Keep the reason why a unit did not finish; the next run tries it again."""
        note = {"unit": str(unit), "cells": len(unit.cells), "reason": reason}
        with atomic_write(self.folder / FAILURES / f"{unit.key}.json") as f:
            f.write(json.dumps(note, indent=1).encode())

    def failures(self) -> list[dict[str, Any]]:
        """Units that did not finish, with their reasons."""
        return [json.loads(p.read_text()) for p in sorted((self.folder / FAILURES).glob("*.json"))]

    def describe(self, study: Study, plan: Plan) -> None:
        """Write the manifest: the study, the embeddings it used, and what ran it."""
        manifest = {
            "format": FORMAT,
            "study": study.to_json(),
            "experiments": plan.experiments,
            "embeddings": plan.fingerprints,
            "imprint": __version__,
            "python": platform.python_version(),
            "libraries": dict(_versions()),
            "machine": platform.machine(),
        }
        with atomic_write(self.folder / MANIFEST) as f:
            f.write(json.dumps(manifest, indent=1, sort_keys=True).encode() + b"\n")

    def manifest(self) -> dict[str, Any]:
        """The manifest, or a sentence why there is none."""
        path = self.folder / MANIFEST
        try:
            found: dict[str, Any] = json.loads(path.read_text())
        except FileNotFoundError:
            raise FileError(f"{self.folder}: no study has been run into this folder.") from None
        except (OSError, ValueError):
            raise FileError(f"{path}: it is damaged or cannot be read.") from None
        if found.get("format") != FORMAT:
            raise FileError(f"{path}: format {found.get('format')!r}; this imprint reads format {FORMAT}.")
        return found


def schema() -> pa.Schema:
    """The columns of a shard."""
    from imprint.study.evaluate import COLUMNS

    text = pa.dictionary(pa.int32(), pa.string())
    names = [(name, text) for name in ("backbone", "dataset", "task", *PARTS)]
    numbers = [(name, pa.from_numpy_dtype(dtype)) for name, dtype in COLUMNS.items()]
    return pa.schema([*names, ("seed", pa.int64()), *numbers, ("fingerprint", text), ("key", pa.binary(16))])


def to_table(unit: Unit, columns: dict[str, Array]) -> pa.Table:
    """A unit's cells with what they are and what came out."""
    tasks, methods, seeds = (np.array(column, dtype=np.int32) for column in zip(*unit.cells))
    n = len(unit.cells)
    texts = {
        "backbone": (np.zeros(n, np.int32), [unit.backbone]),
        "dataset": (np.zeros(n, np.int32), [unit.dataset]),
        "task": (tasks, list(unit.tasks)),
        "fingerprint": (np.zeros(n, np.int32), [unit.fingerprint]),
    }
    for part in PARTS:
        values = [str(getattr(m, part)) for m in unit.methods]
        distinct = list(dict.fromkeys(values))
        code = np.array([distinct.index(v) for v in values], dtype=np.int32)
        texts[part] = (code[methods], distinct)
    made = {
        name: pa.DictionaryArray.from_arrays(as_numbers(codes), as_texts(values))
        for name, (codes, values) in texts.items()
    }
    plain = {"seed": np.array(unit.seeds, dtype=np.int64)[seeds], **columns}
    keys = pa.Array.from_buffers(pa.binary(16), n, [None, pa.py_buffer(b"".join(unit.keys))])
    arrays = {**made, **{name: as_numbers(values) for name, values in plain.items()}, "key": keys}
    return pa.table([arrays[name] for name in schema().names], schema=schema())


def as_numbers(values: Array) -> pa.Array:
    """The same numbers for Arrow, from their bytes: `pa.array` would import pandas where that is installed."""
    buffer = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, buffer])


def as_texts(values: list[str]) -> pa.Array:
    """The same for texts."""
    parts = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, parts)], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(parts), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(parts))])


def _read(path: Path, columns: list[str] | None = None) -> pa.Table:
    try:
        return pq.read_table(path, columns=columns, schema=schema() if columns is None else None, use_threads=False)
    except (pa.ArrowException, OSError):
        raise FileError(f"{path}: this shard is damaged; delete it and run the study again.") from None


def _versions() -> Iterator[tuple[str, str]]:
    for name in LIBRARIES:
        with suppress(PackageNotFoundError):
            yield name, version(name)
