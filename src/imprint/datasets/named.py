"""Named data sets: their records in `records.json`, the formats in which they are
published, and how they are loaded.

Published files are downloaded once and checked by their digests. Images are converted
into one pack; texts are read as published.
"""

import bz2
import gzip
import json
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from imprint.core.arrays import Array
from imprint.core.errors import FileError, reporting_damage, unknown
from imprint.core.extras import import_extra
from imprint.core.files.atomic import atomic_write, home
from imprint.datasets.folder import load_folder
from imprint.datasets.numpy_files import load_pack
from imprint.datasets.split import SPLITS, Joined, Split, classes_of, plain_labels
from imprint.datasets.tables import load_table

DownloadProgress: TypeAlias = Callable[[str, int, int | None], None]
"""Called as `progress(file, bytes_so_far, bytes_in_total)`; the last is None if the
server does not state it.
"""
Files: TypeAlias = Mapping[str, Path]  # the published files of a data set, by file name
COMBIDIGITS = ("mnist", "mnistm", "svhn", "usps")
TEST_INTERVAL = 5  # within each class of `digits`, every fifth row is `test`


@dataclass(frozen=True, kw_only=True)
class PublishedFile:
    """One published file: its addresses, and the checksum and size that it must
    have.
    """

    urls: tuple[str, ...]
    sha256: str = ""
    md5: str = ""
    size: int | None = None  # bytes, where published

    @property
    def file(self) -> str:
        """The name of the file, the last part of its address."""
        return self.urls[0].rsplit("/", 1)[1]


@dataclass(frozen=True, kw_only=True)
class DatasetRecord:
    """Title, sizes, source, licence and citation of a data set.

    `train` and `test` count the rows of the published set; a pack may hold fewer.
    """

    title: str
    modality: str
    classes: int
    train: int
    test: int
    homepage: str
    licence: str
    citation: str
    # of one image; empty if images differ in size or inputs are texts
    shape: tuple[int, ...] = ()
    # what the integer labels mean, unless they are digits
    class_names: tuple[str, ...] = ()
    sources: tuple[PublishedFile, ...] = ()
    note: str = ""
    about: str = ""


@cache
def records() -> dict[str, DatasetRecord]:
    """The record of every named data set."""
    parsed = {}
    for name, values in json.loads(
        (Path(__file__).parent / "records.json").read_text("utf-8")
    ).items():
        sources = tuple(
            PublishedFile(**s | {"urls": tuple(s["urls"])})
            for s in values.pop("sources", ())
        )
        plain: dict[str, Any] = {
            key: tuple(v) if isinstance(v, list) else v for key, v in values.items()
        }
        parsed[name] = DatasetRecord(**plain, sources=sources)
    return parsed


def record(name: str) -> DatasetRecord:
    """The record of a named data set, without loading it."""
    if name not in records():
        raise unknown("dataset", name, records())
    return records()[name]


def load_named(
    name: str, split: str, progress: DownloadProgress | None = None
) -> Split:
    """One split of a named data set."""
    if name == "digits":
        return _load_digits(split)
    if name == "imagenet":
        return _load_imagenet(split)
    if name == "combidigits":
        return _load_combidigits(split, progress)
    return (_load_texts if record(name).modality == "text" else _load_images)(
        name, split, progress
    )


def _load_images(name: str, split: str, progress: DownloadProgress | None) -> Split:
    from imprint.datasets.download import fetch

    pack = home() / "data" / f"{name}.npz"
    if not pack.exists():
        folder, hint = pack.parent / "raw" / name, f", or the whole pack at {pack}"
        files = {
            source.file: fetch(source, folder, progress, hint=hint)
            for source in record(name).sources
        }
        arrays: dict[str, Any] = {}
        for part in SPLITS:
            images, labels = _read(name, files, part)
            arrays[f"{part}_images"] = images.astype(np.uint8, casting="same_kind")
            arrays[f"{part}_labels"] = labels.astype(np.uint8)
        with atomic_write(pack) as f:
            np.savez_compressed(f, **arrays)
    images = load_pack(pack, split)
    return replace(images, names=[f"{name}/{split}/{i}" for i in range(len(images))])


def _load_texts(name: str, split: str, progress: DownloadProgress | None) -> Split:
    from imprint.datasets.download import fetch

    folder = home() / "data" / "text" / name
    paths = {source: folder / source.file for source in record(name).sources}
    files = {
        path.name: path if path.exists() else fetch(source, folder, progress)
        for source, path in paths.items()
    }
    texts, labels = _read(name, files, split)
    y = plain_labels(labels)
    names = [f"{name}/{split}/{i}" for i in range(len(texts))]
    return Split(tuple(texts), y, names, classes_of(y), "text")


def _load_digits(split: str) -> Split:
    from sklearn.datasets import load_digits

    data = load_digits()
    labels = data.target.astype(np.int64)
    # in its class, from 1
    rank = np.cumsum(labels[:, None] == np.arange(10), axis=0)[
        np.arange(len(labels)), labels
    ]
    rows = (rank % TEST_INTERVAL == 0) == (split == "test")
    images = np.rint(data.images[rows] * 255 / 16).astype(np.uint8)
    names = [f"digits/{split}/{i}" for i in range(len(images))]
    return Split(images, labels[rows], names, classes_of(labels), "image")


def _load_imagenet(split: str) -> Split:
    folder = home() / "data" / "imagenet"
    for part in ("train", "val"):
        if not (folder / part).is_dir():
            advice = (
                f"put or link it so that {folder / part} has one sub-folder per class"
            )
            raise FileError(
                "imagenet must be downloaded by hand from"
                f" {record('imagenet').homepage}: {advice}."
            )
    return load_folder(folder, split, tree=False)


def _load_combidigits(split: str, progress: DownloadProgress | None) -> Split:
    parts = [load_named(name, split, progress) for name in COMBIDIGITS]
    labels = np.concatenate([part.labels for part in parts])
    inputs, names = (
        Joined([part.inputs for part in parts]),
        Joined([part.names for part in parts]),
    )
    source = np.repeat(COMBIDIGITS, [len(part) for part in parts])
    return Split(inputs, labels, names, classes_of(labels), "image", source)


def _read(name: str, files: Files, split: str) -> tuple[Any, Any]:
    """The inputs and labels of one split in the published files."""
    folder = next(iter(files.values())).parent
    with reporting_damage(
        folder, f"copy of {name}", "; delete it to download it again"
    ):
        return READERS[name](files, split)


def _read_idx(path: Path) -> Array:
    """The uint8 array in a gzipped IDX file, the format of MNIST: a magic number, the
    sizes, then the bytes.
    """
    with gzip.open(path) as f:
        raw = f.read()
    sizes = np.frombuffer(raw, ">u4", count=raw[3], offset=4)
    return np.frombuffer(raw, np.uint8, offset=4 + sizes.nbytes).reshape(sizes.tolist())


def _mnist(files: Files, split: str) -> tuple[Array, Array]:
    prefix = "train" if split == "train" else "t10k"
    return _read_idx(files[f"{prefix}-images-idx3-ubyte.gz"]), _read_idx(
        files[f"{prefix}-labels-idx1-ubyte.gz"]
    )


def _cifar10(files: Files, split: str) -> tuple[Array, Array]:
    """Records of a label, then the red, green and blue planes."""
    names = (
        [f"data_batch_{i}.bin" for i in range(1, 6)]
        if split == "train"
        else ["test_batch.bin"]
    )
    with tarfile.open(files["cifar-10-binary.tar.gz"], "r:gz") as tar:
        members: list[Any] = [
            tar.extractfile(f"cifar-10-batches-bin/{name}") for name in names
        ]
        rows = np.frombuffer(
            b"".join(member.read() for member in members), np.uint8
        ).reshape(-1, 1 + 3 * 32 * 32)
    return (
        np.ascontiguousarray(rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)),
        rows[:, 0],
    )


def _mnistm(files: Files, split: str) -> tuple[Array, Array]:
    torch = import_extra("torch", "torch", "Converting mnistm")
    with tarfile.open(files[f"mnist_m_{split}.pt.tar.gz"], "r:gz") as tar:
        (member,) = (m for m in tar if m.isfile() and m.name.endswith(".pt"))
        file: Any = tar.extractfile(member)
        images, labels = torch.load(file, map_location="cpu", weights_only=True)
    return images.numpy().reshape(-1, 28, 28, 3), labels.numpy()


def _svhn(files: Files, split: str) -> tuple[Array, Array]:
    """MATLAB files in which the label of a zero is 10."""
    from scipy.io import loadmat

    table = loadmat(files[f"{split}_32x32.mat"], variable_names=["X", "y"])
    # (n, 32, 32, 3), (n,)
    return (
        np.ascontiguousarray(table["X"].transpose(3, 0, 1, 2)),
        table["y"].ravel() % 10,
    )


def _usps(files: Files, split: str) -> tuple[Array, Array]:
    """Lines such as `7 1:-1 2:-0.5 ...`: the digit plus one, then 256 numbered values
    from -1 to 1.
    """
    with bz2.open(
        files["usps.bz2" if split == "train" else "usps.t.bz2"], "rt", encoding="ascii"
    ) as f:
        table = np.array(
            [line.replace(":", " ").split() for line in f if line.strip()],
            dtype=np.float64,
        )
    return ((table[:, 2::2] + 1) / 2 * 255).astype(np.uint8).reshape(-1, 16, 16), table[
        :, 0
    ] - 1


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
    lines = [
        line.split(" ", 1)
        for line in path.read_text("latin-1").split("\n")
        if line.strip()
    ]
    return [text.strip() for _, text in lines], [
        kind.split(":")[0] for kind, _ in lines
    ]


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
