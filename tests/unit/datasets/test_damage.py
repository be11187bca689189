"""Damaged files of every kind are read or refused in one sentence, without raw exceptions."""

import gzip
import io
import json
import random
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from imprint.core.errors import ImprintError
from imprint.datasets import load

X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
Y = [f"c{i % 4}" for i in range(20)]
TEXTS = [("text", "label"), *((f"hello {i} ü", y) for i, y in enumerate(Y))]


def workbook(path, compression):
    """Write TEXTS as a workbook with the given compression."""
    book, raw = pytest.importorskip("openpyxl").Workbook(), io.BytesIO()
    for row in TEXTS:
        book.active.append(row)
    book.save(raw)
    with (
        zipfile.ZipFile(raw) as source,
        zipfile.ZipFile(path, "w", compression) as target,
    ):
        for name in source.namelist():
            target.writestr(name, source.read(name))


def damaged_member(whole: bytes, rng: random.Random) -> bytes:
    """An archive with one damaged member and valid checksums."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(whole)) as source,
        zipfile.ZipFile(out, "w") as target,
    ):
        chosen = rng.choice(source.namelist())
        for name in source.namelist():
            content = source.read(name)
            target.writestr(name, damaged(content, rng) if name == chosen else content)
    return out.getvalue()


WRITERS = {
    "a.csv": lambda p: p.write_text(
        "a,b,c,label\n" + "".join(f"{a},{b},{c},{y}\n" for (a, b, c), y in zip(X, Y))
    ),
    "texts.csv": lambda p: p.write_text(
        "text,label\n" + "".join(f'"hello, {i} ü",{y}\n' for i, y in enumerate(Y))
    ),
    "a.jsonl": lambda p: p.write_text(
        "".join(json.dumps({"e": x, "label": y}) + "\n" for x, y in zip(X.tolist(), Y))
    ),
    "a.parquet": lambda p: pq.write_table(pa.table({"a": X[:, 0], "label": Y}), p),
    "lists.parquet": lambda p: pq.write_table(pa.table({"e": list(X), "label": Y}), p),
    "a.npz": lambda p: np.savez(
        p, train=X, train_labels=np.array(Y), train_names=np.array(Y)
    ),
    "small.npz": lambda p: np.savez_compressed(p, train=X, train_labels=np.array(Y)),
    "a.npy": lambda p: np.save(p, X),
    "a.feather": lambda p: feather.write_feather(
        pa.table({"a": X[:, 0], "label": Y}), str(p)
    ),
    "a.json": lambda p: p.write_text(
        json.dumps([{"e": x, "label": y} for x, y in zip(X.tolist(), Y)])
    ),
    "a.csv.gz": lambda p: p.write_bytes(
        gzip.compress("".join(f"{a},{b}\n" for a, b in TEXTS).encode())
    ),
    "a.jsonl.gz": lambda p: p.write_bytes(
        gzip.compress("".join(f'{{"text": "{y}"}}\n' for y in Y).encode())
    ),
    "packed.xlsx": lambda p: workbook(p, zipfile.ZIP_DEFLATED),
    "plain.xlsx": lambda p: workbook(p, zipfile.ZIP_STORED),
}
UNLABELLED = ("a.npy", "a.jsonl.gz")
PIECES = [
    b",",
    b"\n",
    b'"',
    b"[",
    b"(",
    b"nan",
    b"1e400",
    b"\xff",
    b"\0",
    b";",
    b"{}",
    b"null",
    b"true",
    b"9" * 30,
]


def damaged(whole: bytes, rng: random.Random) -> bytes:
    raw = bytearray(whole)
    for _ in range(rng.choice([1, 1, 2, 5])):
        kind, at = rng.random(), rng.randrange(len(raw) or 1)
        if kind < 0.5 and raw:
            raw[at] ^= 1 << rng.randrange(8)
        elif kind < 0.7:
            del raw[at : at + rng.randrange(1, 20)]
        elif kind < 0.9:
            raw[at:at] = rng.choice(PIECES)
        else:
            del raw[at:]
    return bytes(raw)


@pytest.mark.parametrize("name", WRITERS)
def test_no_damage_raises_a_raw_error(tmp_path, name):
    WRITERS[name](tmp_path / name)
    whole, rng, refused = (tmp_path / name).read_bytes(), random.Random(0), []
    for i in range(120):
        damage = damaged_member if name.endswith(".xlsx") and i % 2 else damaged
        (tmp_path / name).write_bytes(damage(whole, rng))
        try:
            split = load(tmp_path / name, labelled=name not in UNLABELLED)
            assert split.modality == "text" or np.isfinite(split.inputs).all()
        except ImprintError as e:
            refused.append(str(e))
    assert len(refused) > 20
    assert not [message for message in refused if "\n" in message or len(message) > 400]
