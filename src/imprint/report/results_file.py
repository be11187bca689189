"""The results of a study as one table for other tools, with a description of every
column in the file.
"""

import json
import os
from pathlib import Path

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

# The longest first line of a CSV file of ours is shorter: the names of all columns.
MAX_HEADER = 4096  # bytes


def export(folder: str | os.PathLike[str], path: str | os.PathLike[str]) -> pa.Table:
    """Write the results in a folder to one file.

    Parameters
    ----------
    folder : str or path
        The folder of a study, or a folder of such folders.
    path : str or path
        A `.parquet` or `.csv` file. A Parquet file has `MEANINGS` as the `description`
        of its columns, and the manifests of the study as `imprint`.

    Returns
    -------
    pyarrow.Table
        What was written.
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
    is_foreign = path.is_file() and path.stat().st_size and not _is_export(path)
    if is_foreign:
        raise FileError(
            f"Cannot write {path}: it exists and holds no results of a study; choose"
            " another --output."
        )


def _is_export(path: Path) -> bool:
    """Whether `export` wrote a file."""
    try:
        if path.suffix == ".csv":
            with path.open("rb") as f:
                header = f.readline(MAX_HEADER)
            names = header.replace(b'"', b"").strip()
            return names == ",".join(MEANINGS).encode()
        metadata = pq.read_schema(path).metadata or {}
        return b"imprint" in metadata
    except (pa.ArrowException, OSError):
        return False


def results_table(folder: str | os.PathLike[str]) -> pa.Table:
    """The results in the folder of a study, or in all such sub-folders.

    The columns are those of `MEANINGS`. The results of one study are in its order. Of
    several studies, the table has everything that is finished.
    """
    folder = Path(folder)
    if (folder / MANIFEST).exists():
        store = Store(folder)
        study = store.study()
        stores = [store]
        parts = [_plain(study.name, study.results(folder))]
    else:
        manifests = sorted(folder.glob(f"*/{MANIFEST}"))
        stores = [Store(manifest.parent) for manifest in manifests]
        parts = [_plain(store.folder.name, _finished(store)) for store in stores]
    if not stores:
        raise FileError(f"{folder}: no study has been run into this folder.")
    by_name = {store.folder.name: store.manifest() for store in stores}
    table = pa.concat_tables(parts)
    return table.replace_schema_metadata({"imprint": json.dumps(by_name)})


def _finished(store: Store) -> pa.Table:
    """Every finished experiment with the current embeddings, sorted."""
    table = store.table()
    fingerprints = store.manifest()["embeddings"]
    is_current = []
    # Results of embeddings that were computed again since remain in the store.
    for backbone, dataset, fingerprint in zip(
        table["backbone"].to_pylist(),
        table["dataset"].to_pylist(),
        table["fingerprint"].to_pylist(),
    ):
        is_current.append(fingerprints.get(f"{backbone}-{dataset}") == fingerprint)
    current = table.filter(pa.array(is_current, pa.bool_()))

    # As texts, because dictionaries are sorted by their codes.
    columns = {name: current[name].cast(pa.string()) for name in TEXT_COLUMNS}
    columns["seed"] = current["seed"]
    keys = [(name, "ascending") for name in columns]
    return current.take(pc.sort_indices(pa.table(columns), keys))


def _plain(name: str, table: pa.Table) -> pa.Table:
    """The table of a store with plain texts, and with the parameters of its components
    as columns.
    """
    columns = {column: table[column] for column in table.column_names}
    for column in (*TEXT_COLUMNS, "fingerprint"):
        columns[column] = table[column].cast(pa.string())
    parts = [columns[part] for part in PARTS]
    keys = [key.hex() for key in table["key"].to_pylist()]
    columns["study"] = pa.repeat(name, len(table))
    columns["method"] = pc.binary_join_element_wise(*parts, " / ")
    columns["key"] = pa.array(keys, pa.string())
    columns["k"] = _parameter("generator", "k", columns["generator"])
    columns["m"] = _parameter("aggregator", "m", columns["aggregator"])
    fields = []
    for column, text in MEANINGS.items():
        metadata = {"description": text}
        fields.append(pa.field(column, columns[column].type, metadata=metadata))
    ordered = {column: columns[column] for column in MEANINGS}
    return pa.table(ordered, schema=pa.schema(fields))


def _parameter(
    part: str,
    parameter: str,
    texts: pa.ChunkedArray,
) -> pa.Array:
    """A parameter of each component, given as text; null if it has none of this
    name.
    """
    values = texts.to_pylist()
    known = {}
    for text in set(values):
        component = FAMILIES[part].resolve(text)
        value = getattr(component, parameter, None)
        # k="auto" is no number
        known[text] = None if isinstance(value, str) else value
    return pa.array([known[text] for text in values], pa.int32())
