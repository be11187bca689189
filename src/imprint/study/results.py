"""The table of a study, in the study's order, from whatever shards there are."""

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from imprint.core.types import Array
from imprint.study.grid import PARTS
from imprint.study.store import Store, as_numbers, as_texts
from imprint.study.study import Study

if TYPE_CHECKING:
    import pyarrow as pa


def results(study: Study, folder: str | os.PathLike[str]) -> "pa.Table":
    """The finished cells of a study, each once, in the order in which the study names them."""
    store = Store(folder)
    prints = store.manifest()["embeddings"]
    table = store.table()
    instances = {i: n for n, i in enumerate(study.instances)}
    methods = {str(m): n for n, m in enumerate(study.methods)}
    seeds = {s: n for n, s in enumerate(study.seeds)}
    place = _codes(table, ("backbone", "dataset", "task"), lambda v: instances.get(v, -1))
    method = _codes(table, PARTS, lambda v: methods.get(" / ".join(v), -1))
    seed_values, seed_codes = np.unique(table["seed"].to_numpy(), return_inverse=True)
    seed = np.array([seeds.get(int(s), -1) for s in seed_values], dtype=np.int64)[seed_codes]
    current = _codes(table, ("backbone", "dataset", "fingerprint"), lambda v: prints.get("-".join(v[:2])) == v[2])
    wanted = np.flatnonzero((place >= 0) & (method >= 0) & (seed >= 0) & current)
    order = (place[wanted] * len(methods) + method[wanted]) * len(seeds) + seed[wanted]
    return _with_sorted_texts(table.take(wanted[np.unique(order, return_index=True)[1]]))


def _with_sorted_texts(table: "pa.Table") -> "pa.Table":
    """The same with dictionaries of the texts in use, sorted: they do not tell in what order shards were read."""
    import pyarrow as pa

    for i, name in enumerate(table.column_names):
        if pa.types.is_dictionary(table.schema.types[i]):
            column = _whole(table[name])
            codes, texts = column.indices.to_numpy(), column.dictionary.to_pylist()
            used = np.flatnonzero(np.bincount(codes, minlength=len(texts))).tolist()
            used.sort(key=texts.__getitem__)
            number = np.zeros(len(texts), dtype=np.int32)
            number[used] = np.arange(len(used), dtype=np.int32)
            renumbered, names = as_numbers(number[codes]), as_texts([texts[u] for u in used])
            table = table.set_column(i, name, pa.DictionaryArray.from_arrays(renumbered, names))
    return table


def _whole(column: "pa.ChunkedArray") -> Any:
    found = column.combine_chunks()
    return found.chunk(0) if hasattr(found, "chunk") else found


def _codes(table: "pa.Table", names: tuple[str, ...], value: Any) -> Array:
    """A number for each row from the texts in some columns, looked up once per distinct combination."""
    total = np.zeros(len(table), dtype=np.int64)
    dictionaries = []
    for name in names:
        column = _whole(table[name])
        dictionaries.append(column.dictionary.to_pylist())
        total = total * max(1, len(dictionaries[-1])) + column.indices.to_numpy()
    combined, inverse = np.unique(total, return_inverse=True)
    found = [value(_texts(int(c), dictionaries)) for c in combined]
    return np.array(found, dtype=np.int64)[inverse] if found else total


def _texts(code: int, dictionaries: list[list[str]]) -> tuple[str, ...]:
    parts = []
    for texts in reversed(dictionaries):
        code, i = divmod(code, len(texts))
        parts.append(texts[i])
    return tuple(reversed(parts))
