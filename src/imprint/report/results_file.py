"""The results of a study as one table for other tools, with a description of every
column in the file.
"""

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from imprint.core.component import PARTS
from imprint.core.errors import FileError, ParameterError
from imprint.core.files.atomic import atomic_write
from imprint.method import FAMILIES
from imprint.study.store import MANIFEST, TEXT_COLUMNS, Store

MEANINGS = {
    "study": "name of the study; in studies of the paper, the role of the data set",
    "backbone": "network that computed the embeddings",
    "dataset": "data set",
    "task": "rows of the data set and their labels",
    "method": "the five components of the method, separated by ' / '",
    "norm_pre": "normalisation of training rows",
    "generator": "how the proxies of a class are computed",
    "norm_post": "normalisation of proxies",
    "norm_inf": "normalisation of test rows",
    "aggregator": "how proxies classify",
    "k": (
        "maximum number of proxies per class; null if the generator has no such"
        " parameter"
    ),
    "m": (
        "number of nearest proxies that vote; null if the aggregator has no such"
        " parameter"
    ),
    "seed": "random seed",
    "accuracy": "share of test rows classified correctly, 0 to 1",
    "macro_f1": "F1 averaged over classes with equal weights, 0 to 1",
    "weighted_f1": "F1 averaged over classes, weighted by their test rows, 0 to 1",
    "near_ties": "test rows whose two best scores are equal up to float rounding",
    "proxies": "number of proxies of all classes",
    "test_rows": "number of test rows",
    "seconds_generation": (
        "CPU seconds to compute proxies; shared work is divided among the experiments"
        " that share it"
    ),
    "seconds_evaluation": (
        "CPU seconds to classify; shared work is divided among the experiments that"
        " share it"
    ),
    "peak_memory": (
        "peak memory of the process in bytes while the unit of this experiment ran"
    ),
    "fingerprint": "digest of the embeddings",
    "key": (
        "digest of embeddings, task, method and seed: equal keys are the same"
        " computation"
    ),
}
"""The data dictionary: every column of an exported table, in order."""
FORMATS = (".parquet", ".csv")


def export(folder: str | os.PathLike[str], path: str | os.PathLike[str]) -> pa.Table:
    """Write the results in a folder to one `.parquet` or `.csv` file, and return them
    as a table.

    A Parquet file has `MEANINGS` as the `description` of its columns, and the manifests
    of the study as `imprint`.
    """
    path = Path(path)
    if path.suffix not in FORMATS:
        raise ParameterError(
            f"export({os.fspath(path)!r}): the name must end in {' or '.join(FORMATS)}."
        )
    table = results_table(folder)
    with atomic_write(path) as f:
        if path.suffix == ".csv":
            pyarrow.csv.write_csv(table, f)
        else:
            pq.write_table(table, f, compression="zstd")
    return table


def check_own(path: Path) -> None:
    """Refuse to overwrite a file that `export` did not write."""
    if path.is_file() and path.stat().st_size and not _is_export(path):
        raise FileError(
            f"Cannot write {path}: it exists and holds no results of a study; choose"
            " another --output."
        )


def _is_export(path: Path) -> bool:
    try:
        if path.suffix == ".csv":
            with path.open("rb") as f:
                return (
                    f.readline(4096).replace(b'"', b"").strip()
                    == ",".join(MEANINGS).encode()
                )
        return b"imprint" in (pq.read_schema(path).metadata or {})
    except (pa.ArrowException, OSError):
        return False


def results_table(folder: str | os.PathLike[str]) -> pa.Table:
    """The results in the folder of a study, or in all such sub-folders; the columns are
    those of `MEANINGS`.

    The results of one study are in its order. For studies of the paper, the table has
    everything that is finished.
    """
    folder = Path(folder)
    if (folder / MANIFEST).exists():
        stores = [Store(folder)]
        study = stores[0].study()
        parts = [_plain(study.name, study.results(folder))]
    else:
        stores = [
            Store(manifest.parent) for manifest in sorted(folder.glob(f"*/{MANIFEST}"))
        ]
        parts = [_plain(store.folder.name, _finished(store)) for store in stores]
    if not stores:
        raise FileError(f"{folder}: no study has been run into this folder.")
    manifests = {store.folder.name: store.manifest() for store in stores}
    return pa.concat_tables(parts).replace_schema_metadata(
        {"imprint": json.dumps(manifests)}
    )


def _finished(store: Store) -> pa.Table:
    """Every finished experiment with the current embeddings, sorted."""
    table, fingerprints = store.table(), store.manifest()["embeddings"]
    names = zip(
        *(table[name].to_pylist() for name in ("backbone", "dataset", "fingerprint"))
    )
    current = table.filter(
        pa.array([fingerprints.get(f"{b}-{d}") == f for b, d, f in names], pa.bool_())
    )
    order = pa.table(
        {
            **{name: current[name].cast(pa.string()) for name in TEXT_COLUMNS},
            "seed": current["seed"],
        }
    )
    return current.take(
        pc.sort_indices(order, [(name, "ascending") for name in order.column_names])
    )


def _plain(name: str, table: pa.Table) -> pa.Table:
    """The table of a store with plain texts, and with the parameters of its components
    as columns.
    """
    columns: dict[str, Any] = {c: table[c] for c in table.column_names}
    texts = {c: table[c].cast(pa.string()) for c in (*TEXT_COLUMNS, "fingerprint")}
    columns |= texts | {
        "study": pa.repeat(name, len(table)),
        "method": pc.binary_join_element_wise(*(texts[part] for part in PARTS), " / "),
        "key": pa.array([key.hex() for key in table["key"].to_pylist()], pa.string()),
    }
    for part, parameter in (("generator", "k"), ("aggregator", "m")):
        values = texts[part].to_pylist()
        known = {
            text: getattr(FAMILIES[part].resolve(text), parameter, None)
            for text in set(values)
        }
        columns[parameter] = pa.array([known[text] for text in values], pa.int32())
    fields = [
        pa.field(c, columns[c].type, metadata={"description": text})
        for c, text in MEANINGS.items()
    ]
    return pa.table({c: columns[c] for c in MEANINGS}, schema=pa.schema(fields))
