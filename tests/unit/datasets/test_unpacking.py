"""Reading takes memory in proportion to the file, whatever the file states or unpacks to."""

import gzip
import io
import subprocess
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from imprint import datasets
from imprint.core.errors import FileError, UnreadableInput
from imprint.core.files import unpacking
from imprint.core.files.unpacking import MIN_UNPACKED_BYTES

LIMIT_MB = 400  # of a process that imports imprint and pyarrow, and refuses a file
LOAD = """
import sys
from imprint import datasets
from imprint.core.errors import ImprintError
from imprint.core.memory import peak_memory
try:
    split = datasets.load(sys.argv[1], "train")
    print(len({id(text) for text in split.inputs}))
except ImprintError as e:
    print(e)
print(peak_memory() >> 20)
"""


def load_in_process(path):
    """What another process prints about the file, and the memory that it needs, in MB."""
    words = [sys.executable, "-c", LOAD, path]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    answer, memory = done.stdout.splitlines()
    return answer, int(memory)


def npz_bomb(path):
    """400 MB of zeros in 400 kB."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in (
            ("X.npy", np.zeros((100_000, 1000), np.float32)),
            ("y.npy", np.zeros(100_000, np.int64)),
        ):
            with archive.open(name, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array)


def csv_bomb(path):
    with gzip.open(path, "wb", compresslevel=1) as f:
        f.write(b"text,label\n")
        for _ in range(200):
            f.write(b"x" * 999_990 + b",a\n")


def jsonl_bomb(path):
    with gzip.open(path, "wb", compresslevel=1) as f:
        for _ in range(200):
            f.write(b'{"text": "' + b"x" * 999_990 + b'", "label": "a"}\n')


def parquet_bomb(path):
    texts = [letter * 50_000_000 for letter in "abcdefgh"]
    table = pa.table({"text": texts, "label": list("abababab")})
    pq.write_table(table, path, compression="zstd")


def large_string_bomb(path):
    """One stored text that stands for 5,000, in the type that polars writes."""
    long = pa.DictionaryArray.from_arrays(
        pa.array([0] * 5_000, pa.int32()),
        pa.array(["x" * (1 << 20)], pa.large_string()),
    )
    lists = pa.array([["a"]] * 5_000)
    pq.write_table(pa.table({"text": long, "label": lists}), path)


def workbook_bomb(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/sharedStrings.xml", b" " * 400_000_000)


BOMBS = {
    "a.npz": npz_bomb,
    "a.csv.gz": csv_bomb,
    "a.jsonl.gz": jsonl_bomb,
    "a.parquet": parquet_bomb,
    "a.xlsx": workbook_bomb,
}


@pytest.mark.skipif(sys.platform != "linux", reason="memory is in kilobytes on Linux")
@pytest.mark.parametrize("name", BOMBS)
def test_a_decompression_bomb_is_refused_in_little_memory(tmp_path, name):
    BOMBS[name](tmp_path / name)
    assert (tmp_path / name).stat().st_size < 3_000_000
    answer, memory = load_in_process(tmp_path / name)
    assert "unpacks to over" in answer
    assert memory < LIMIT_MB


@pytest.mark.skipif(sys.platform != "linux", reason="memory is in kilobytes on Linux")
def test_a_text_that_polars_stored_once_is_in_memory_once(tmp_path):
    large_string_bomb(tmp_path / "a.parquet")
    answer, memory = load_in_process(tmp_path / "a.parquet")
    assert answer == "1"
    assert memory < LIMIT_MB


def image_archive(path, content):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("a/1.png", "b/1.png"):
            archive.writestr(name, content)


def test_a_large_file_in_a_small_archive_is_unreadable(tmp_path):
    image_archive(tmp_path / "a.zip", bytes(MIN_UNPACKED_BYTES + 1))
    split = datasets.load(tmp_path / "a.zip", "train")
    with pytest.raises(
        UnreadableInput, match=r"it unpacks to over 67 MB.*; unpack the"
    ):
        split.inputs[0]


def test_an_archive_that_understates_its_files_is_damaged(tmp_path):
    """The size in the directory of the archive is a claim."""
    path = tmp_path / "a.zip"
    image_archive(path, bytes(1_000_000))
    raw = path.read_bytes().replace(
        (1_000_000).to_bytes(4, "little"), (1_000).to_bytes(4, "little")
    )
    path.write_bytes(raw)
    with pytest.raises(UnreadableInput):
        datasets.load(path, "train").inputs[0]


@pytest.mark.parametrize("compress", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_header_that_states_another_size_is_damage_not_a_lack_of_memory(
    tmp_path, compress
):
    header = io.BytesIO()
    facts = {"descr": "<f4", "fortran_order": False, "shape": (10**13, 4)}
    np.lib.format.write_array_header_1_0(header, facts)
    with zipfile.ZipFile(tmp_path / "a.npz", "w", compress) as archive:
        archive.writestr("X.npy", header.getvalue() + bytes(100))
        archive.writestr("y.npy", header.getvalue() + bytes(100))
    with pytest.raises(
        FileError, match=r"is not a readable pack .the size of an array"
    ):
        datasets.load(tmp_path / "a.npz", "train")
    (tmp_path / "y.npy").write_bytes(header.getvalue() + bytes(100))
    np.save(tmp_path / "X.npy", np.eye(4, dtype=np.float32))
    with pytest.raises(FileError, match=r"y\.npy is not a readable .npy file"):
        datasets.load(tmp_path / "X.npy", "train", labels=tmp_path / "y.npy")


def test_large_files_may_unpack_to_a_multiple_of_their_size(tmp_path, monkeypatch):
    monkeypatch.setattr(unpacking, "MIN_UNPACKED_BYTES", 1000)
    rng = np.random.default_rng(0)
    X = np.where(rng.random((200, 100)) < 0.1, rng.normal(size=(200, 100)), 0)
    np.savez_compressed(tmp_path / "a.npz", X=X.astype(np.float32), y=np.arange(200))
    assert len(datasets.load(tmp_path / "a.npz", "train").inputs) == 200
    with gzip.open(tmp_path / "a.csv.gz", "wt") as f:
        f.write("text,label\n")
        f.writelines(f"message number {i},{'ab'[i % 2]}\n" for i in range(2000))
    assert len(datasets.load(tmp_path / "a.csv.gz", "train").inputs) == 2000
