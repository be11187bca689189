"""The formats in which named data sets are published."""

import bz2
import gzip
import json
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from imprint.core.errors import FileError
from imprint.core.extras import missing
from imprint.core.types import Array
from imprint.datasets.tables import load_table

Files = Mapping[str, Path]
"""The published files of a data set, by file name."""


def read_idx(path: Path) -> Array:
    """The uint8 array in a gzipped IDX file, the format of MNIST: a magic number, the sizes, then the bytes."""
    with gzip.open(path) as f:
        raw = f.read()
    head = np.frombuffer(raw, ">u4", count=1 + raw[3] if len(raw) > 3 else 0)
    if len(raw) < 8 or raw[:3] != b"\0\0\x08" or len(raw) != head.nbytes + np.prod(head[1:], dtype=np.int64):
        raise FileError(f"{path} is not a whole IDX file of bytes.")
    return np.frombuffer(raw, np.uint8, offset=head.nbytes).reshape(head[1:].tolist())


def _mnist(files: Files, split: str) -> tuple[Array, Array]:
    prefix = "train" if split == "train" else "t10k"
    return read_idx(files[f"{prefix}-images-idx3-ubyte.gz"]), read_idx(files[f"{prefix}-labels-idx1-ubyte.gz"])


def _cifar10(files: Files, split: str) -> tuple[Array, Array]:
    """Records of a label, then the red, green and blue planes."""
    names = [f"data_batch_{i}.bin" for i in range(1, 6)] if split == "train" else ["test_batch.bin"]
    with tarfile.open(files["cifar-10-binary.tar.gz"], "r:gz") as tar:
        members: list[Any] = [tar.extractfile(f"cifar-10-batches-bin/{name}") for name in names]
        rows = np.frombuffer(b"".join(member.read() for member in members), np.uint8).reshape(-1, 1 + 3 * 32 * 32)
    return np.ascontiguousarray(rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)), rows[:, 0]


def _mnistm(files: Files, split: str) -> tuple[Array, Array]:
    try:
        import torch
    except ImportError:
        raise missing("torch", "Converting mnistm needs torch") from None
    with tarfile.open(files[f"mnist_m_{split}.pt.tar.gz"], "r:gz") as tar:
        (member,) = (m for m in tar if m.isfile() and m.name.endswith(".pt"))
        file: Any = tar.extractfile(member)
        images, labels = torch.load(file, map_location="cpu", weights_only=True)
    return images.numpy().reshape(-1, 28, 28, 3), labels.numpy()


def _svhn(files: Files, split: str) -> tuple[Array, Array]:
    """MATLAB files in which the label of a zero is 10."""
    from scipy.io import loadmat

    table = loadmat(files[f"{split}_32x32.mat"], variable_names=["X", "y"])
    return np.ascontiguousarray(table["X"].transpose(3, 0, 1, 2)), table["y"].ravel() % 10  # (n, 32, 32, 3), (n,)


def _usps(files: Files, split: str) -> tuple[Array, Array]:
    """Lines such as `7 1:-1 2:-0.5 ...`: the digit plus one, then 256 numbered values from -1 to 1."""
    path = files["usps.bz2" if split == "train" else "usps.t.bz2"]
    with bz2.open(path, "rt", encoding="ascii") as f:
        table = np.array([line.replace(":", " ").split() for line in f if line.strip()], dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != 513 or (table[:, 1::2] != np.arange(1, 257)).any():
        raise FileError(f"{path} does not hold 256 numbered values per line.")
    grey, labels = table[:, 2::2], table[:, 0] - 1
    if abs(grey).max() > 1 or not np.isin(labels, range(10)).all():
        raise FileError(f"{path} must have values from -1 to 1 and labels from 1 to 10.")
    return ((grey + 1) / 2 * 255).astype(np.uint8).reshape(-1, 16, 16), labels.astype(np.uint8)


def _banking77(files: Files, split: str) -> tuple[Any, Array]:
    table = load_table(files[f"{split}.csv"], None)
    return table.inputs, table.labels


def _clinc150(files: Files, split: str) -> tuple[list[str], list[str]]:
    with open(files["data_full.json"], encoding="utf-8") as f:
        rows = json.load(f)[split]
    return [str(text) for text, _ in rows], [str(label) for _, label in rows]


def _trec(files: Files, split: str) -> tuple[list[str], list[str]]:
    """Lines such as `NUM:dist How far is it from Denver to Aspen ?`."""
    path = files["train_5500.label" if split == "train" else "TREC_10.label"]
    lines = [line.split(" ", 1) for line in path.read_text("latin-1").split("\n") if line.strip()]
    return [text.strip() for _, text in lines], [kind.split(":")[0] for kind, _ in lines]


READERS: dict[str, Callable[[Files, str], tuple[Any, Any]]] = {
    "mnist": _mnist,
    "fashionmnist": _mnist,
    "cifar10": _cifar10,
    "mnistm": _mnistm,
    "svhn": _svhn,
    "usps": _usps,
    "banking77": _banking77,
    "clinc150": _clinc150,
    "trec": _trec,
}
"""How to read the inputs and labels of one split."""
