"""The folder of a study: one Parquet shard per finished unit, a manifest, the reasons of failures, a lock."""

import hashlib
import io
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from imprint.core import __version__
from imprint.core.component import PARTS
from imprint.core.errors import FileError, ParameterError
from imprint.core.files.atomic import atomic_write, exclusive, remove_partials
from imprint.core.files.notes import read_note, write_note
from imprint.core.types import Array
from imprint.study.evaluate import COLUMNS
from imprint.study.plan import Plan, Unit
from imprint.study.study import Study

MANIFEST, SHARDS, FAILURES, LOCK = "manifest.json", "shards", "failures", ".lock"
FORMAT = 2
MANIFEST_HOLDS = dict(
    study=dict, experiments=int, embeddings=dict, imprint=str, python=str, libraries=dict, machine=str
)
FAILURE_HOLDS = dict(unit=str, experiments=int, reason=str)
LIBRARIES = ("numpy", "scipy", "scikit-learn", "pyarrow", "numba", "torch", "ray")
TEXTS = ("backbone", "dataset", "task", *PARTS)


class Store:
    """What is known of a study in one folder. Shards appear whole or not at all and are never rewritten.

    A shard is called UNIT-DIGEST.parquet after its unit and a digest of its bytes, which reading checks.
    """

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = Path(folder)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for one run; the system lets go of it when the process ends, however it ends."""
        places = self.folder, self.folder / SHARDS, self.folder / FAILURES
        try:
            for place in places:
                place.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                read_note(self.folder / MANIFEST, {"format": int})
        except FileError:
            rule = "it is no manifest of a study, or is damaged; choose another folder, or delete the file"
            raise FileError(f"Cannot write {self.folder / MANIFEST}: {rule}.") from None
        except OSError as e:
            raise FileError(f"Cannot write {self.folder}: {e.strerror}.") from None
        with exclusive(self.folder / LOCK, self._busy):
            for place in places:
                remove_partials(place)
            yield

    def _busy(self) -> None:
        raise FileError(f"{self.folder}: another run is at work in this folder; wait for it or choose another folder.")

    def done(self) -> set[bytes]:
        """The keys of all finished experiments."""
        return {key for path in self.shards() for key in _read(path)["key"].to_pylist()}

    def shards(self) -> list[Path]:
        """The finished shards, in a fixed order."""
        return sorted((self.folder / SHARDS).glob("*.parquet"))

    def table(self) -> pa.Table:
        """All finished experiments."""
        tables = [_read(path) for path in self.shards()]
        return pa.concat_tables(tables).unify_dictionaries() if tables else schema().empty_table()

    def write(self, unit: Unit, columns: dict[str, Array]) -> None:
        """Keep a finished unit."""
        raw = io.BytesIO()
        pq.write_table(to_table(unit, columns), raw, compression="zstd")
        content = raw.getvalue()
        with atomic_write(self.folder / SHARDS / f"{unit.key}-{_digest(content)}.parquet") as f:
            f.write(content)
        (self.folder / FAILURES / f"{unit.key}.json").unlink(missing_ok=True)

    def fail(self, unit: Unit, reason: str) -> None:
        """Keep the reason why a unit did not finish; the next run tries it again."""
        note = {"unit": str(unit), "experiments": len(unit.experiments), "reason": reason}
        write_note(self.folder / FAILURES / f"{unit.key}.json", note)

    def failures(self) -> list[dict[str, Any]]:
        """Units that did not finish, with their reasons."""
        return [read_note(path, FAILURE_HOLDS) for path in sorted((self.folder / FAILURES).glob("*.json"))]

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
        write_note(self.folder / MANIFEST, manifest)

    def manifest(self) -> dict[str, Any]:
        """The manifest, or a sentence why there is none."""
        try:
            found = read_note(self.folder / MANIFEST, {"format": int})
        except FileNotFoundError:
            raise FileError(f"{self.folder}: no study has been run into this folder.") from None
        if found["format"] != FORMAT:
            raise FileError(f"{self.folder / MANIFEST}: format {found['format']}; this imprint reads format {FORMAT}.")
        return read_note(self.folder / MANIFEST, MANIFEST_HOLDS)

    def study(self) -> Study:
        """The study that was run into this folder, as its manifest says."""
        try:
            return Study.of(self.manifest()["study"])
        except ParameterError as e:
            raise FileError(f"{self.folder / MANIFEST}: {e}") from None


def schema() -> pa.Schema:
    """The columns of a shard."""
    text = pa.dictionary(pa.int32(), pa.string())
    numbers = [(name, pa.from_numpy_dtype(dtype)) for name, dtype in COLUMNS.items()]
    names = [(name, text) for name in TEXTS]
    return pa.schema([*names, ("seed", pa.int64()), *numbers, ("fingerprint", text), ("key", pa.binary(16))])


def to_table(unit: Unit, columns: dict[str, Array]) -> pa.Table:
    """A unit's experiments with what they are and what came out."""
    tasks, methods, seeds = unit.experiments.T
    nothing = np.zeros(len(unit.experiments), dtype=np.int32)
    texts = {
        "backbone": (nothing, [unit.backbone]),
        "dataset": (nothing, [unit.dataset]),
        "task": (tasks, list(unit.tasks)),
        "fingerprint": (nothing, [unit.fingerprint]),
    }
    for part, own, column in zip(PARTS, unit.methods.components, unit.methods.codes.T):
        used, codes = np.unique(column, return_inverse=True)
        texts[part] = codes.astype(np.int32)[methods], [[*own][place] for place in used.tolist()]
    numbers = {"seed": np.array(unit.seeds, dtype=np.int64)[seeds], **columns}
    keys = pa.Array.from_buffers(pa.binary(16), len(unit.experiments), [None, pa.py_buffer(unit.keys)])
    arrays = {name: _texts(codes, values) for name, (codes, values) in texts.items()}
    arrays |= {name: _numbers(values) for name, values in numbers.items()} | {"key": keys}
    return pa.table([arrays[name] for name in schema().names], schema=schema())


def results(study: Study, folder: str | os.PathLike[str]) -> pa.Table:
    """The finished experiments of a study, each once, in the order in which the study names them."""
    store = Store(folder)
    prints = store.manifest()["embeddings"]
    table = store.table()
    instances = {i: n for n, i in enumerate(study.instances)}
    methods = {text: n for n, text in enumerate(study.method_texts)}
    seeds = {s: n for n, s in enumerate(study.seeds)}
    instance = _looked_up(table, ("backbone", "dataset", "task"), lambda v: instances.get(v, -1))
    method = _looked_up(table, PARTS, lambda v: methods.get(" / ".join(v), -1))
    values, codes = np.unique(table["seed"].to_numpy(), return_inverse=True)
    seed = np.array([seeds.get(int(s), -1) for s in values], dtype=np.int64)[codes]
    current = _looked_up(table, ("backbone", "dataset", "fingerprint"), lambda v: prints.get("-".join(v[:2])) == v[2])
    chosen = np.flatnonzero((instance >= 0) & (method >= 0) & (seed >= 0) & current)
    order = (instance[chosen] * len(methods) + method[chosen]) * len(seeds) + seed[chosen]
    return _in_order(table.take(chosen[np.unique(order, return_index=True)[1]]))


def _in_order(table: pa.Table) -> pa.Table:
    """The same with texts numbered as they come, whatever the shards had numbered and were read in what order."""
    for i, name in enumerate(table.column_names):
        if pa.types.is_dictionary(table.schema.types[i]):
            table = table.set_column(i, name, table[name].cast(pa.string()).combine_chunks().dictionary_encode())
    return table


def _looked_up(table: pa.Table, names: tuple[str, ...], value: Callable[[Any], int]) -> Array:
    """A number for each row from the texts in some columns, looked up once per distinct combination."""
    columns = [_codes(table[name]) for name in names]
    rows = np.stack([codes for codes, _ in columns], axis=1)
    kinds, kind = np.unique(rows, axis=0, return_inverse=True)
    found = [value(tuple(texts[code] for code, (_, texts) in zip(row, columns))) for row in kinds.tolist()]
    return np.array(found, dtype=np.int64)[kind.ravel()] if found else np.zeros(0, dtype=np.int64)


def _codes(column: pa.ChunkedArray) -> tuple[Array, list[str]]:
    """A column of texts as numbers and the texts that they stand for."""
    found: Any = column.combine_chunks()
    found = found.chunk(0) if hasattr(found, "chunk") else found
    return found.indices.to_numpy(), found.dictionary.to_pylist()


def _numbers(values: Array) -> pa.Array:
    """Numbers for Arrow, from their bytes: `pa.array` would import pandas where that is installed."""
    buffer = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, buffer])


def _texts(codes: Array, values: list[str]) -> pa.Array:
    """Texts for Arrow, as the numbers of some distinct ones."""
    parts = [value.encode() for value in values]
    ends = pa.py_buffer(np.cumsum([0, *map(len, parts)], dtype=np.int32))
    distinct = pa.Array.from_buffers(pa.string(), len(parts), [None, ends, pa.py_buffer(b"".join(parts))])
    return pa.DictionaryArray.from_arrays(_numbers(codes), distinct)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def _read(path: Path) -> pa.Table:
    """A shard whose bytes are those that were written, and whose columns are those of a shard."""
    try:
        content = path.read_bytes()
    except OSError as e:
        raise FileError(f"Cannot read {path}: {e.strerror}.") from None
    damaged = FileError(f"{path}: this shard is damaged; delete it and run the study again.")
    if path.stem.rpartition("-")[2] != _digest(content):
        raise damaged
    try:
        table = pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)
        table.validate(full=True)
    except (pa.ArrowException, OSError):
        raise damaged from None
    if not table.schema.equals(schema()) or any(column.null_count for column in table.columns):
        raise damaged
    return table


def _versions() -> Iterator[tuple[str, str]]:
    for name in LIBRARIES:
        with suppress(PackageNotFoundError):
            yield name, version(name)
