"""Named data sets: their records in `records.json`, and how a split is loaded.

Published files are downloaded once. Pictures are converted into one pack, texts are read as published.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from imprint.core.errors import FileError, reporting_damage
from imprint.core.family import unknown
from imprint.core.files.atomic import atomic_write, home
from imprint.datasets.numpy_files import load_pack
from imprint.datasets.split import SPLITS, Joined, RowNames, Split, classes_of, plain_labels

DownloadProgress: TypeAlias = Callable[[str, int, int | None], None]
"""Called as `progress(file, bytes_so_far, bytes_in_total)`; the last is None if the server does not state it."""
COMBIDIGITS = ("mnist", "mnistm", "svhn", "usps")
ADVICE = "; delete it to download it again"
EVERY = 5  # within each class of `digits`, every fifth row is `test`


@dataclass(frozen=True, kw_only=True)
class PublishedFile:
    """One published file: its addresses, and the checksum and size that it must have."""

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
    shape: tuple[int, ...] = ()  # of one picture; empty if pictures differ in size or inputs are texts
    class_names: tuple[str, ...] = ()  # what the integer labels mean, unless they are digits
    sources: tuple[PublishedFile, ...] = ()
    note: str = ""
    about: str = ""


@cache
def records() -> dict[str, DatasetRecord]:
    """The record of every named data set."""
    stored = json.loads((Path(__file__).parent / "records.json").read_text("utf-8"))
    return {name: _parse(values) for name, values in stored.items()}


def _parse(values: dict[str, Any]) -> DatasetRecord:
    sources = tuple(PublishedFile(**{**source, "urls": tuple(source["urls"])}) for source in values.pop("sources", ()))
    plain: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
    return DatasetRecord(**plain, sources=sources)


def record(name: str) -> DatasetRecord:
    """The record of a named data set, without loading it.

    >>> record("usps").train
    7291
    """
    if name not in records():
        raise unknown("dataset", name, records())
    return records()[name]


def load_named(name: str, split: str, progress: DownloadProgress | None = None) -> Split:
    """One split of a named data set."""
    if name == "digits":
        return _load_digits(split)
    if name == "imagenet":
        return _load_imagenet(split)
    if name == "combidigits":
        return _load_combidigits(split, progress)
    return (_load_texts if record(name).modality == "text" else _load_pictures)(name, split, progress)


def _load_pictures(name: str, split: str, progress: DownloadProgress | None) -> Split:
    from imprint.datasets.download import fetch
    from imprint.datasets.published import READERS

    pack = home() / "data" / f"{name}.npz"
    if not pack.exists():
        folder = pack.parent / "raw" / name
        hint = f", or the whole pack at {pack}"
        files = {source.file: fetch(source, folder, progress, hint=hint) for source in record(name).sources}
        arrays: dict[str, Any] = {}
        with reporting_damage(folder, f"copy of {name}", ADVICE):
            for part in SPLITS:
                images, labels = READERS[name](files, part)
                arrays[f"{part}_images"] = images.astype(np.uint8, casting="same_kind")
                arrays[f"{part}_labels"] = labels.astype(np.uint8)
        with atomic_write(pack) as f:
            np.savez_compressed(f, **arrays)
    return load_pack(pack, split, name=name)


def _load_texts(name: str, split: str, progress: DownloadProgress | None) -> Split:
    from imprint.datasets.download import fetch
    from imprint.datasets.published import READERS

    folder = home() / "data" / "text" / name
    files = {source.file: folder / source.file for source in record(name).sources}
    for source in record(name).sources:
        if not files[source.file].exists():
            fetch(source, folder, progress)
    with reporting_damage(folder, f"copy of {name}", ADVICE):
        texts, labels = READERS[name](files, split)
    y = plain_labels(labels)
    return Split(tuple(texts), y, RowNames(f"{name}/{split}/", range(len(texts))), classes_of(y), "text")


def _load_digits(split: str) -> Split:
    from sklearn.datasets import load_digits

    data = load_digits()
    labels = data.target.astype(np.int64)
    rank = np.empty_like(labels)  # of a row within its class
    for label in np.unique(labels):
        members = labels == label
        rank[members] = np.arange(members.sum())
    rows = (rank % EVERY == EVERY - 1) == (split == "test")
    images = np.rint(data.images[rows] * 255 / 16).astype(np.uint8)
    return Split(images, labels[rows], RowNames(f"digits/{split}/", range(len(images))), classes_of(labels), "image")


def _load_imagenet(split: str) -> Split:
    from imprint.datasets.folder import load_folder

    folder = home() / "data" / "imagenet"
    for part in ("train", "val"):
        if not (folder / part).is_dir():
            raise FileError(
                f"imagenet must be downloaded by hand from {record('imagenet').homepage}: put or link it so that "
                f"{folder / part} has one sub-folder per class."
            )
    return load_folder(folder, split, tree=False)


def _load_combidigits(split: str, progress: DownloadProgress | None) -> Split:
    parts = [load_named(name, split, progress) for name in COMBIDIGITS]
    labels = np.concatenate([part.labels for part in parts])
    inputs, names = Joined([part.inputs for part in parts]), Joined([part.names for part in parts])
    source = np.repeat(COMBIDIGITS, [len(part) for part in parts])
    return Split(inputs, labels, names, classes_of(labels), "image", source)
