"""The folder of a study: one Parquet shard per finished unit, a manifest, the reasons
for failures, a lock.
"""

import hashlib
import io
import os
import platform
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from itertools import product
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
from imprint.study.evaluate import COLUMNS
from imprint.study.plan import Plan, Unit, experiment_keys
from imprint.study.study import Study

MANIFEST, SHARDS, FAILURES, LOCK = "manifest.json", "shards", "failures", ".lock"
FORMAT = 2
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
            rule = (
                "it is not the manifest of a study, or is damaged; choose another"
                " folder, or delete the file"
            )
            raise FileError(f"Cannot write {self.folder / MANIFEST}: {rule}.") from None
        folders = self.folder, self.folder / SHARDS, self.folder / FAILURES
        for folder in folders:
            make_folder(folder)
        with exclusive(self.folder / LOCK, self._refuse_second_run):
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
        return (
            pa.concat_tables(tables).unify_dictionaries()
            if tables
            else schema().empty_table()
        )

    def done(self) -> set[bytes]:
        """The keys of all finished experiments."""
        return {key for path in self.shards() for key in _read(path)["key"].to_pylist()}

    def results(self, study: Study) -> pa.Table:
        """The finished experiments of a study, each once, in the study's order."""
        import pyarrow.compute as pc  # takes 0.1 s, and a run does not need it

        fingerprints, table, keys = (
            self.manifest()["embeddings"],
            self.table(),
            list[bytes](),
        )
        methods = study.methods.encoded()
        experiments = (
            np.indices((len(study.task_texts), len(methods), len(study.seeds)))
            .reshape(3, -1)
            .T
        )
        for pack in map("-".join, product(study.backbones, study.datasets)):
            if pack in fingerprints:
                keys += experiment_keys(
                    fingerprints[pack],
                    study.task_texts,
                    methods,
                    study.seeds,
                    experiments,
                )
        keys_of_study = _array(
            np.frombuffer(b"".join(keys), dtype="V16"), pa.binary(16)
        )
        rows = pc.index_in(keys_of_study, value_set=table["key"].combine_chunks())
        table = table.take(rows.drop_null())
        # dictionaries in order of appearance, whatever the shards' order
        for i, name in enumerate(table.column_names):
            if pa.types.is_dictionary(table.schema.types[i]):
                table = table.set_column(
                    i,
                    name,
                    table[name].cast(pa.string()).combine_chunks().dictionary_encode(),
                )
        return table

    def write(self, unit: Unit, columns: dict[str, Array]) -> None:
        """Store the results of a unit."""
        raw = io.BytesIO()
        pq.write_table(to_table(unit, columns), raw, compression="zstd")
        digest = hashlib.sha256(raw.getbuffer()).hexdigest()[:32]
        with atomic_write(self.folder / SHARDS / f"{unit.key}-{digest}.parquet") as f:
            f.write(raw.getbuffer())
        (self.folder / FAILURES / f"{unit.key}.json").unlink(missing_ok=True)

    def fail(self, unit: Unit, reason: str) -> None:
        """Store the reason why a unit failed; the next run tries it again."""
        note = {
            "unit": str(unit),
            "experiments": len(unit.experiments),
            "reason": reason,
        }
        write_checked(self.folder / FAILURES / f"{unit.key}.json", note)

    def failures(self) -> list[dict[str, Any]]:
        """The failed units with their reasons."""
        types = dict(unit=str, experiments=int, reason=str)
        return [
            read_checked(path, types)
            for path in sorted((self.folder / FAILURES).glob("*.json"))
        ]

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
        if manifest["format"] != FORMAT:
            file_format = manifest["format"]
            raise FileError(
                f"{self.folder / MANIFEST}: format {file_format}; this imprint reads"
                f" format {FORMAT}."
            )
        types = dict.fromkeys(("study", "embeddings", "libraries"), dict) | {
            "experiments": int
        }
        return read_checked(
            self.folder / MANIFEST,
            types | dict.fromkeys(("imprint", "python", "machine"), str),
        )

    def study(self) -> Study:
        """The study of the manifest."""
        try:
            return Study.of(self.manifest()["study"])
        except ParameterError as e:
            raise FileError(f"{self.folder / MANIFEST}: {e}") from None


def schema() -> pa.Schema:
    """The columns of a shard."""
    text = pa.dictionary(pa.int32(), pa.string())
    numbers = [(name, pa.from_numpy_dtype(dtype)) for name, dtype in COLUMNS.items()]
    names = [(name, text) for name in TEXT_COLUMNS]
    return pa.schema(
        [
            *names,
            ("seed", pa.int64()),
            *numbers,
            ("fingerprint", text),
            ("key", pa.binary(16)),
        ]
    )


def to_table(unit: Unit, columns: dict[str, Array]) -> pa.Table:
    """The experiments of a unit with their results."""
    tasks, methods, seeds = unit.experiments.T
    zeros = np.zeros(len(tasks), dtype=np.int32)  # the codes of a column with one value
    parts = zip(unit.methods.codes.T, unit.methods.components)
    arrays = [
        _encoded(zeros, [unit.backbone]),
        _encoded(zeros, [unit.dataset]),
        _encoded(tasks, unit.tasks),
        *(_encoded(codes[methods], components) for codes, components in parts),
        _array(np.array(unit.seeds, dtype=np.int64)[seeds]),
        *(_array(columns[name]) for name in COLUMNS),
        _encoded(zeros, [unit.fingerprint]),
        _array(np.frombuffer(unit.keys, dtype="V16"), pa.binary(16)),
    ]
    return pa.Table.from_arrays(arrays, schema=schema())


def _array(values: Array, kind: pa.DataType | None = None) -> pa.Array:
    """An array that shares the memory of NumPy's; unlike `pa.array`, this does not
    import pandas.
    """
    kind = kind or pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(
        kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))]
    )


def _encoded(codes: Array, values: Collection[str]) -> pa.DictionaryArray:
    """A column of texts, given as the code of each row and the texts by code."""
    encoded = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    texts = pa.StringArray.from_buffers(
        len(values), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))
    )
    return pa.DictionaryArray.from_arrays(_array(codes.astype(np.int32)), texts)


def _read(path: Path) -> pa.Table:
    """The table of a shard; refused if its digest or its columns are wrong."""
    with reporting("read", path):
        content = path.read_bytes()
    damaged = FileError(
        f"{path}: this shard is damaged; delete it and run the study again."
    )
    if path.stem.rpartition("-")[2] != hashlib.sha256(content).hexdigest()[:32]:
        raise damaged
    try:
        table = pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)
        table.validate(full=True)
    except (pa.ArrowException, OSError):
        raise damaged from None
    if not table.schema.equals(schema()) or any(
        column.null_count for column in table.columns
    ):
        raise damaged
    return table
