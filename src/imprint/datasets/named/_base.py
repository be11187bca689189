import pickle
import tarfile
import zlib
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from imprint.core.component import Component
from imprint.core.errors import FileError, MissingExtraError
from imprint.core.files.atomic import atomic_write, home
from imprint.core.types import Array
from imprint.datasets.packs import load_pack
from imprint.datasets.record import DatasetRecord, DownloadProgress
from imprint.datasets.split import Numbered, Split, classes_of, plain_labels

T = TypeVar("T")
_DAMAGE = (
    OSError,
    EOFError,
    ValueError,
    LookupError,
    TypeError,
    RuntimeError,
    zlib.error,
    tarfile.TarError,
    pickle.UnpicklingError,
)
Tables = dict[str, tuple[Array, Array]]
"""Images and labels of each split, as `{"train": (images, labels), "test": (images, labels)}`."""


@dataclass(frozen=True, kw_only=True)
class Dataset(Component):
    """A data set that is loaded by its name."""

    family: ClassVar[str] = "imprint.datasets.named"
    record: ClassVar[DatasetRecord]

    @property
    def name(self) -> str:
        return type(self).__module__.rsplit(".", 1)[1]

    @abstractmethod
    def load(self, split: str, progress: DownloadProgress | None = None) -> Split:
        """One split, `train` or `test`."""


@dataclass(frozen=True, kw_only=True)
class PackedDataset(Dataset):
    """A public data set of pictures, downloaded once and kept as one pack."""

    @abstractmethod
    def convert(self, files: Mapping[str, Path]) -> Tables:
        """Both splits from the published files, by file name."""

    def load(self, split: str, progress: DownloadProgress | None = None) -> Split:
        from imprint.datasets.download import fetch

        pack = home() / "data" / f"{self.name}.npz"
        if not pack.exists():
            folder = pack.parent / "raw" / self.name
            hint = f", or the whole pack at {pack}"
            files = {s.file: fetch(s, folder, progress, hint=hint) for s in self.record.sources}
            _write_pack(pack, read_files(lambda: self.convert(files), folder))
        return load_pack(pack, split, name=self.name)


@dataclass(frozen=True, kw_only=True)
class TextDataset(Dataset):
    """A public data set of texts, downloaded once and read as published."""

    @abstractmethod
    def read(self, files: Mapping[str, Path], split: str) -> tuple[list[str], list[str]]:
        """Texts and labels of one split."""

    def load(self, split: str, progress: DownloadProgress | None = None) -> Split:
        from imprint.datasets.download import fetch

        folder = home() / "data" / "text" / self.name
        files = {s.file: folder / s.file for s in self.record.sources}
        for source in self.record.sources:
            if not files[source.file].exists():
                fetch(source, folder, progress)
        texts, labels = read_files(lambda: self.read(files, split), folder)
        values = plain_labels(labels)
        return Split(tuple(texts), values, Numbered(f"{self.name}/{split}", len(texts)), classes_of(values), "text")


def read_files(read: Callable[[], T], folder: Path) -> T:
    """The result of `read`; damaged files are reported as such."""
    try:
        return read()
    except (FileError, MissingExtraError):
        raise
    except _DAMAGE as e:
        reason = (str(e) or type(e).__name__).splitlines()[0].rstrip(".:")
        raise FileError(f"Cannot read the files in {folder} ({reason}): delete them to download them again.") from e


def _write_pack(pack: Path, tables: Tables) -> None:
    arrays: dict[str, Any] = {
        f"{split}_{kind}": array.astype(np.uint8, casting="same_kind" if kind == "images" else "unsafe")
        for split, pair in tables.items()
        for kind, array in zip(("images", "labels"), pair)
    }
    with atomic_write(pack) as f:
        np.savez_compressed(f, **arrays)
