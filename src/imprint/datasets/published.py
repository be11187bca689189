"""The formats in which named data sets are published: both splits of pictures, or one split of texts."""

import bz2
import gzip
import json
import pickle
import tarfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np

from imprint.core.errors import FileError, MissingExtraError
from imprint.core.extras import missing
from imprint.core.types import Array
from imprint.datasets.tables import load_table

T = TypeVar("T")
Files = Mapping[str, Path]
"""The published files of a data set, by file name."""
ImagesAndLabels = tuple[Array, Array]
DAMAGE: tuple[type[Exception], ...] = (OSError, EOFError, ValueError, LookupError, TypeError, RuntimeError)
DAMAGE += (zlib.error, tarfile.TarError, pickle.UnpicklingError)
CIFAR_ROW = 1 + 3 * 32 * 32  # bytes: a label, then the red, green and blue planes


def read_files(read: Callable[[Files], T], files: Files, folder: Path) -> T:
    """The result of `read`; damaged files are reported as such."""
    try:
        return read(files)
    except (FileError, MissingExtraError):
        raise
    except DAMAGE as e:
        reason = (str(e) or type(e).__name__).splitlines()[0].rstrip(".:")
        raise FileError(f"Cannot read the files in {folder} ({reason}): delete them to download them again.") from e


def read_idx(path: Path) -> Array:
    """The uint8 array in a gzipped IDX file, the format of MNIST: a magic number, the sizes, then the bytes."""
    with gzip.open(path) as f:
        raw = f.read()
    head = np.frombuffer(raw, ">u4", count=1 + raw[3] if len(raw) > 3 else 0)
    if len(raw) < 8 or raw[:3] != b"\0\0\x08" or len(raw) != head.nbytes + np.prod(head[1:], dtype=np.int64):
        raise FileError(f"{path} is not a whole IDX file of bytes.")
    return np.frombuffer(raw, np.uint8, offset=head.nbytes).reshape(head[1:].tolist())


def _mnist(files: Files) -> dict[str, ImagesAndLabels]:
    return {
        split: (read_idx(files[f"{p}-images-idx3-ubyte.gz"]), read_idx(files[f"{p}-labels-idx1-ubyte.gz"]))
        for split, p in (("train", "train"), ("test", "t10k"))
    }


def _cifar10(files: Files) -> dict[str, ImagesAndLabels]:
    def read(name: str) -> ImagesAndLabels:
        member = tar.extractfile(f"cifar-10-batches-bin/{name}")
        raw = np.frombuffer(member.read() if member else b"", np.uint8)
        if not raw.size or raw.size % CIFAR_ROW:
            raise FileError(f"{name} does not consist of records of {CIFAR_ROW} bytes.")
        rows = raw.reshape(-1, CIFAR_ROW)
        return np.ascontiguousarray(rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)), rows[:, 0]

    with tarfile.open(files["cifar-10-binary.tar.gz"], "r:gz") as tar:
        batches = [read(f"data_batch_{i}.bin") for i in range(1, 6)]
        images, labels = (np.concatenate(part) for part in zip(*batches))
        return {"train": (images, labels), "test": read("test_batch.bin")}


def _mnistm(files: Files) -> dict[str, ImagesAndLabels]:
    try:
        import torch
    except ImportError:
        raise missing("torch", "Converting mnistm needs torch") from None

    def read(path: Path) -> ImagesAndLabels:
        with tarfile.open(path, "r:gz") as tar:
            members = [m for m in tar if m.isfile() and m.name.endswith(".pt")]
            file = tar.extractfile(members[0]) if len(members) == 1 else None
            if file is None:
                raise FileError(f"{path} must hold one .pt file.")
            images, labels = torch.load(file, map_location="cpu", weights_only=True)
        return images.numpy().reshape(-1, 28, 28, 3), labels.numpy()

    return {split: read(files[f"mnist_m_{split}.pt.tar.gz"]) for split in ("train", "test")}


def _svhn(files: Files) -> dict[str, ImagesAndLabels]:
    """MATLAB files in which the label of a zero is 10."""
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    def read(path: Path) -> ImagesAndLabels:
        try:
            table = loadmat(path, variable_names=["X", "y"])
        except MatReadError as e:
            raise FileError(f"{path} is not a MATLAB file: {e}.") from None
        images = np.ascontiguousarray(table["X"].transpose(3, 0, 1, 2))  # (n, 32, 32, 3)
        return images, table["y"].ravel() % 10

    return {split: read(files[f"{split}_32x32.mat"]) for split in ("train", "test")}


def _usps(files: Files) -> dict[str, ImagesAndLabels]:
    """Lines such as `7 1:-1 2:-0.5 ...`: the digit plus one, then 256 numbered values from -1 to 1."""

    def read(path: Path) -> ImagesAndLabels:
        with bz2.open(path, "rt", encoding="ascii") as f:
            rows = [line.replace(":", " ").split() for line in f if line.strip()]
        table = np.array(rows, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] != 513 or (table[:, 1::2] != np.arange(1, 257)).any():
            raise FileError(f"{path} does not hold 256 numbered values per line.")
        grey, labels = table[:, 2::2], table[:, 0] - 1
        if abs(grey).max() > 1 or not np.isin(labels, range(10)).all():
            raise FileError(f"{path} must have values from -1 to 1 and labels from 1 to 10.")
        return ((grey + 1) / 2 * 255).astype(np.uint8).reshape(-1, 16, 16), labels.astype(np.uint8)

    return {"train": read(files["usps.bz2"]), "test": read(files["usps.t.bz2"])}


def _banking77(files: Files, split: str) -> tuple[list[str], list[str]]:
    table = load_table(files[f"{split}.csv"], None)
    return [table.inputs[i] for i in range(len(table))], table.labels.tolist()


def _clinc150(files: Files, split: str) -> tuple[list[str], list[str]]:
    with open(files["data_full.json"], encoding="utf-8") as f:
        rows = json.load(f)[split]
    return [str(text) for text, _ in rows], [str(label) for _, label in rows]


def _trec(files: Files, split: str) -> tuple[list[str], list[str]]:
    """Lines such as `NUM:dist How far is it from Denver to Aspen ?`."""
    path = files["train_5500.label" if split == "train" else "TREC_10.label"]
    lines = [line.split(" ", 1) for line in path.read_text("latin-1").split("\n") if line.strip()]
    return [text.strip() for _, text in lines], [kind.split(":")[0] for kind, _ in lines]


PICTURES = {
    "mnist": _mnist,
    "fashionmnist": _mnist,
    "cifar10": _cifar10,
    "mnistm": _mnistm,
    "svhn": _svhn,
    "usps": _usps,
}
TEXTS = {"banking77": _banking77, "clinc150": _clinc150, "trec": _trec}
