"""Where the embeddings of a study come from: opened by name, in every worker, without copies."""

import json
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from imprint.core.digest import digest
from imprint.core.errors import FileError
from imprint.core.family import unknown
from imprint.core.home import home
from imprint.core.types import Array
from imprint.embeddings import read_pack

ARRAYS = ("X", "y", "X_test", "y_test")


class Data(NamedTuple):
    """The embeddings of a data set by a backbone; `fingerprint` is a digest of their content."""

    X: Array  # (n, d) float32
    y: Array  # (n,)
    X_test: Array  # (t, d)
    y_test: Array  # (t,)
    fingerprint: str


class Source(Protocol):
    """Anything that opens embeddings by name. It travels to workers, so it must be picklable."""

    def open(self, backbone: str, dataset: str) -> Data:
        """The embeddings, or an error that says what there is."""
        ...


@dataclass(frozen=True)
class Packs:
    """A folder of packs `BACKBONE-DATASET.npz`, unpacked once into a cache and memory-mapped from there."""

    folder: str
    cache: str = ""

    def open(self, backbone: str, dataset: str) -> Data:
        path = Path(self.folder) / f"{backbone}-{dataset}.npz"
        if not path.is_file():
            raise unknown("pack", path.name, sorted(p.name for p in Path(self.folder).glob("*-*.npz")))
        place = self._place(path)
        if not place.exists():
            _unpack(path, place)
        X, y, X_test, y_test = (np.load(place / f"{name}.npy", mmap_mode="r") for name in ARRAYS)
        return Data(X, y, X_test, y_test, json.loads((place / "fingerprint.json").read_text()))

    def _place(self, path: Path) -> Path:
        """Where this very file is unpacked: a changed file gets another place."""
        state = path.stat()
        root = Path(self.cache) if self.cache else home() / "packs"
        return root / digest([str(path.resolve()), str(state.st_size), str(state.st_mtime_ns)])[:32]


def _unpack(path: Path, place: Path) -> None:
    """Make the folder of plain arrays, whole or not at all; of two that try, one wins and both are right."""
    pack = read_pack(path)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=place.parent, prefix=f".{place.name}."))
    except OSError as e:
        raise FileError(f"Cannot write {place.parent}: {e.strerror}.") from None
    try:
        for name, array in zip(ARRAYS, pack[:4]):
            np.save(made / f"{name}.npy", array)
        (made / "fingerprint.json").write_text(json.dumps(pack.fingerprint))
        with suppress(OSError):  # another process was first
            os.rename(made, place)
    finally:
        shutil.rmtree(made, ignore_errors=True)


@dataclass(frozen=True, eq=False)
class Held:
    """Embeddings held in memory: `Held({("tinynet", "mnist"): (X, y, X_test, y_test)})`."""

    arrays: dict[tuple[str, str], tuple[Array, Array, Array, Array]]
    _prints: dict[tuple[str, str], str] = field(default_factory=dict, repr=False)

    def open(self, backbone: str, dataset: str) -> Data:
        key = backbone, dataset
        if key not in self.arrays:
            raise unknown("pair of backbone and data set", "-".join(key), map("-".join, self.arrays))
        if key not in self._prints:
            self._prints[key] = digest(np.asarray(a) for a in self.arrays[key])
        X, y, X_test, y_test = map(np.asarray, self.arrays[key])
        return Data(X, y, X_test, y_test, self._prints[key])
