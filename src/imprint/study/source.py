"""Where the embeddings of a study come from: opened by name, in every worker, without copies."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from imprint.core.digest import digest
from imprint.core.errors import ParameterError
from imprint.core.family import unknown
from imprint.core.files.atomic import home
from imprint.core.types import Array
from imprint.embeddings.pack import open_unpacked


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
        name = f"{backbone}-{dataset}.npz"
        path = Path(self.folder) / name
        if path.name != name or "\\" in name or "\0" in name:
            raise ParameterError(f"Packs({self.folder!r}): {backbone}-{dataset} cannot be a file in this folder.")
        if not path.is_file():
            raise unknown("pack", name, sorted(p.name for p in Path(self.folder).glob("*-*.npz")))
        X, y, X_test, y_test, fingerprint = open_unpacked(path, Path(self.cache) if self.cache else home() / "packs")
        return Data(X, y, X_test, y_test, fingerprint)


@dataclass(frozen=True, eq=False)
class Held:
    """Embeddings held in memory: `Held({("tinynet", "mnist"): (X, y, X_test, y_test)})`."""

    arrays: dict[tuple[str, str], tuple[Array, Array, Array, Array]]
    _prints: dict[tuple[str, str], str] = field(default_factory=dict, repr=False)

    def open(self, backbone: str, dataset: str) -> Data:
        key = backbone, dataset
        if key not in self.arrays:
            raise unknown("pair of backbone and data set", "-".join(key), map("-".join, self.arrays))
        X, y, X_test, y_test = map(np.asarray, self.arrays[key])
        if key not in self._prints:
            self._prints[key] = digest((X, y, X_test, y_test))
        return Data(X, y, X_test, y_test, self._prints[key])
