"""The folder of a study: one Parquet shard per finished unit, a manifest, the reasons
for failures, a lock.
"""

import hashlib
import io
import os
import platform
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from imprint.core import __version__
from imprint.core.arrays import Array
from imprint.core.component import PARTS
from imprint.core.errors import FileError, ParameterError, reporting
from imprint.core.files.atomic import (
    atomic_write,
    exclusive,
    make_folder,
    read_checked,
    write_checked,
)
from imprint.core.files.partial import remove_partials
from imprint.study.evaluate import COLUMNS, UnitResults
from imprint.study.failures import by_reason
from imprint.study.plan import KEY_BYTES, Plan, Unit, experiment_keys
from imprint.study.study import Study

MANIFEST = "manifest.json"
SHARDS = "shards"
FAILURES = "failures"
LOCK = ".lock"
FORMAT = 2  # of the manifest and the shards

# of the digest in the name of a shard: 16 bytes
DIGEST_DIGITS = 32

# Their versions are recorded, because they may change results.
LIBRARIES = ("numpy", "scipy", "scikit-learn", "pyarrow", "numba", "torch", "ray")
TEXT_COLUMNS = ("backbone", "dataset", "task", *PARTS)


class Store:
    """The results of a study in one folder. Shards are written atomically and never
    rewritten.

    A shard is called UNIT-DIGEST.parquet, after its unit and a digest of its bytes,
    which is checked on reading.

    Examples
    --------
    >>> from imprint.study import Store
    >>> Store("no such folder").exists()
    False
    """

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = Path(folder)

    def exists(self) -> bool:
        """Whether a study was run into this folder."""
        return (self.folder / MANIFEST).exists()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder for one run; the lock ends with the process."""
        make_folder(self.folder)
        try:
            with suppress(FileNotFoundError):
                read_checked(self.folder / MANIFEST, {"format": int})
        except FileError:
            raise FileError(
                f"Cannot write {self.folder / MANIFEST}: it is not the manifest of a"
                " study, or is damaged; choose another folder, or delete the file."
            ) from None
        folders = (self.folder, self.folder / SHARDS, self.folder / FAILURES)
        for folder in folders:
            make_folder(folder)
        with exclusive(self.folder / LOCK, self._refuse_second_run):
            # Files that a killed run had begun to write.
            for folder in folders:
                remove_partials(folder)
            yield

    def _refuse_second_run(self) -> None:
        raise FileError(
            f"{self.folder}: another run is at work in this folder; wait for it or"
            " choose another folder."
        )

    def shards(self) -> list[Path]:
        """The finished shards, in a fixed order."""
        return sorted((self.folder / SHARDS).glob("*.parquet"))

    def table(self) -> pa.Table:
        """All finished experiments."""
        tables = [_read(path) for path in self.shards()]
        if not tables:
            return schema().empty_table()
        return pa.concat_tables(tables).unify_dictionaries()

    def done(self) -> set[bytes]:
        """The keys of all finished experiments."""
        keys: set[bytes] = set()
        for path in self.shards():
            keys.update(_read(path)["key"].to_pylist())
        return keys

    def results(self, study: Study) -> pa.Table:
        """The finished experiments of a study, each once, in the study's order."""
        import pyarrow.compute as pc  # takes 0.1 s, and a run does not need it

        table = self.table()
        keys = self._keys(study)
        known = table["key"].combine_chunks()
        rows = pc.index_in(_key_column(b"".join(keys)), value_set=known)
        table = table.take(rows.drop_null())
        # Dictionaries in order of appearance, whatever the order of the shards.
        for i, name in enumerate(table.column_names):
            if pa.types.is_dictionary(table.schema.types[i]):
                texts = table[name].cast(pa.string()).combine_chunks()
                table = table.set_column(i, name, texts.dictionary_encode())
        return table

    def _keys(self, study: Study) -> list[bytes]:
        """The keys of the experiments of a study, as far as its packs were opened."""
        fingerprints = self.manifest()["embeddings"]
        methods = study.methods.encoded()
        shape = (len(study.task_texts), len(methods), len(study.seeds))
        experiments = np.indices(shape).reshape(len(shape), -1).T
        keys: list[bytes] = []
        for backbone, dataset in study.packs:
            fingerprint = fingerprints.get(f"{backbone}-{dataset}")
            if fingerprint is None:
                continue
            keys += experiment_keys(
                fingerprint,
                study.task_texts,
                methods,
                study.seeds,
                experiments,
            )
        return keys

    def write(self, unit: Unit, results: UnitResults) -> None:
        """Store the results of a unit, and the reasons of its failed experiments."""
        failed = results.failures
        for reason, indices in by_reason(failed):
            is_all = len(indices) == len(unit.experiments)
            texts = [] if is_all else unit.texts(indices)
            self.fail(unit.part(indices), reason, texts)
        finished = [i for i in range(len(unit.experiments)) if i not in failed]
        if not finished:
            return
        columns = results.columns
        if failed:
            unit = unit.part(finished)
            columns = {name: values[finished] for name, values in columns.items()}
        raw = io.BytesIO()
        pq.write_table(to_table(unit, columns), raw, compression="zstd")
        digest = hashlib.sha256(raw.getbuffer()).hexdigest()[:DIGEST_DIGITS]
        with atomic_write(self.folder / SHARDS / f"{unit.key}-{digest}.parquet") as f:
            f.write(raw.getbuffer())

    def fail(self, unit: Unit, reason: str, texts: Sequence[str] = ()) -> None:
        """Store the reason why experiments failed; `texts` tells which of a larger unit
        they are.
        """
        note = {
            "unit": str(unit),
            "experiments": len(unit.experiments),
            "reason": reason,
            "failed": list(texts),
            "keys": unit.keys.hex(),
        }
        write_checked(self.folder / FAILURES / f"{unit.key}.json", note)

    def failures(self) -> list[dict[str, Any]]:
        """The failed experiments with their reasons."""
        return [note for _, note in self._failure_notes()]

    def forget_failures(self, plan: Plan) -> None:
        """Remove the reasons of experiments that a plan tries again."""
        notes = self._failure_notes()
        if not notes:
            return
        to_do = {key for unit in plan.units for key in _split_keys(unit.keys)}
        for path, note in notes:
            keys = _split_keys(bytes.fromhex(note["keys"]))
            if not keys or not to_do.isdisjoint(keys):
                path.unlink()

    def _failure_notes(self) -> list[tuple[Path, dict[str, Any]]]:
        """The files about failed experiments, and their contents."""
        types = {"unit": str, "experiments": int, "reason": str}
        notes = []
        for path in sorted((self.folder / FAILURES).glob("*.json")):
            # Notes of earlier versions do not tell which experiments failed.
            note = {"failed": [], "keys": "", **read_checked(path, types)}
            notes.append((path, note))
        return notes

    def describe(self, study: Study, plan: Plan) -> None:
        """Write the manifest: the study, its embeddings, and the software that ran
        it.
        """
        libraries = {}
        for name in LIBRARIES:
            with suppress(PackageNotFoundError):
                libraries[name] = version(name)
        manifest = {
            "format": FORMAT,
            "study": study.to_json(),
            "experiments": plan.experiments,
            "embeddings": plan.fingerprints,
            "imprint": __version__,
            "python": platform.python_version(),
            "libraries": libraries,
            "machine": platform.machine(),
        }
        write_checked(self.folder / MANIFEST, manifest)

    def manifest(self) -> dict[str, Any]:
        """The manifest; refused if there is none."""
        try:
            manifest = read_checked(self.folder / MANIFEST, {"format": int})
        except FileNotFoundError:
            raise FileError(
                f"{self.folder}: no study has been run into this folder."
            ) from None
        # Before the other keys: another format may have others.
        if manifest["format"] != FORMAT:
            raise FileError(
                f"{self.folder / MANIFEST}: format {manifest['format']}; this imprint"
                f" reads format {FORMAT}."
            )
        types = {
            "study": dict,
            "embeddings": dict,
            "libraries": dict,
            "experiments": int,
            "imprint": str,
            "python": str,
            "machine": str,
        }
        return read_checked(self.folder / MANIFEST, types)

    def study(self) -> Study:
        """The study of the manifest."""
        try:
            return Study.of(self.manifest()["study"])
        except ParameterError as e:
            raise FileError(f"{self.folder / MANIFEST}: {e}") from None


def schema() -> pa.Schema:
    """The columns of a shard."""
    text = pa.dictionary(pa.int32(), pa.string())
    columns = {name: text for name in TEXT_COLUMNS}
    columns["seed"] = pa.int64()
    for name, dtype in COLUMNS.items():
        columns[name] = pa.from_numpy_dtype(dtype)
    columns["fingerprint"] = text
    columns["key"] = pa.binary(KEY_BYTES)
    return pa.schema(columns)


def to_table(unit: Unit, columns: dict[str, Array]) -> pa.Table:
    """The experiments of a unit with their results."""
    tasks, methods, seeds = unit.experiments.T
    zeros = np.zeros(len(tasks), dtype=np.int32)  # the codes of a column with one value
    arrays = [
        _encoded(zeros, [unit.backbone]),
        _encoded(zeros, [unit.dataset]),
        _encoded(tasks, unit.tasks),
    ]
    for codes, components in zip(unit.methods.codes.T, unit.methods.components):
        arrays.append(_encoded(codes[methods], components))
    seed_values = np.array(unit.seeds, dtype=np.int64)
    arrays.append(_array(seed_values[seeds]))
    arrays += [_array(columns[name]) for name in COLUMNS]
    arrays.append(_encoded(zeros, [unit.fingerprint]))
    arrays.append(_key_column(unit.keys))
    return pa.Table.from_arrays(arrays, schema=schema())


def _split_keys(keys: bytes) -> list[bytes]:
    """Keys that are given one after another."""
    return [keys[i : i + KEY_BYTES] for i in range(0, len(keys), KEY_BYTES)]


def _key_column(keys: bytes) -> pa.Array:
    """A column of keys, given one after another."""
    values = np.frombuffer(keys, dtype=f"V{KEY_BYTES}")
    return _array(values, pa.binary(KEY_BYTES))


def _array(values: Array, kind: pa.DataType | None = None) -> pa.Array:
    """An array that shares the memory of NumPy's; unlike `pa.array`, this does not
    import pandas.
    """
    kind = kind or pa.from_numpy_dtype(values.dtype)
    memory = pa.py_buffer(np.ascontiguousarray(values))
    # The first buffer would say which values are null.
    return pa.Array.from_buffers(kind, len(values), [None, memory])


def _encoded(codes: Array, values: Collection[str]) -> pa.DictionaryArray:
    """A column of texts, given as the code of each row and the texts by code."""
    encoded = [value.encode() for value in values]
    # Arrow stores texts one after another, and where each begins and ends.
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    texts = pa.StringArray.from_buffers(
        len(values),
        pa.py_buffer(ends),
        pa.py_buffer(b"".join(encoded)),
    )
    return pa.DictionaryArray.from_arrays(_array(codes.astype(np.int32)), texts)


def _read(path: Path) -> pa.Table:
    """The table of a shard; refused if its digest or its columns are wrong."""
    with reporting("read", path):
        content = path.read_bytes()
    damaged = FileError(
        f"{path}: this shard is damaged; delete it and run the study again."
    )
    expected = path.stem.rpartition("-")[2]
    if hashlib.sha256(content).hexdigest()[:DIGEST_DIGITS] != expected:
        raise damaged
    try:
        table = pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)
        table.validate(full=True)
    except (pa.ArrowException, OSError):
        raise damaged from None
    has_nulls = any(column.null_count for column in table.columns)
    if has_nulls or not table.schema.equals(schema()):
        raise damaged
    return table
