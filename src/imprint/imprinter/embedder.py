"""From data of any kind to rows of embeddings: by a backbone, or as they are where they are embeddings already."""

import os
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from imprint import backbones, datasets
from imprint.core.errors import FileError, ImprintError, ParameterError
from imprint.core.types import Array
from imprint.datasets import Split
from imprint.datasets.sounds import SUFFIXES
from imprint.datasets.split import Numbered, plain_labels
from imprint.embeddings import EmbeddingProgress, embed
from imprint.imprinter.items import Embedded, embed_items, labelled_items

Report = Callable[[EmbeddingProgress], object]
ROWS = "embeddings"
"""In the place of a backbone's name: inputs are embeddings already."""
KINDS = {"image": "pictures", "text": "texts", "sound": "sounds", "embedding": "embeddings"}


class Deferred:
    """What is known of a backbone before it is loaded; anything else loads it.

    Where all inputs have been seen before, their embeddings are remembered under the fingerprint, and nothing is.
    """

    def __init__(self, record: backbones.Record, fingerprint: str, load: Callable[[], backbones.Backbone]):
        self.record, self.fingerprint, self._load = record, fingerprint, load
        self.width, self.modality = record.width, record.modality

    def __getattr__(self, name: str) -> Any:
        return getattr(self._load(), name)


class Embedder:
    """A backbone by name, loaded when first needed. None stands for the default of whatever data come first."""

    def __init__(self, spec: str | None, cache: bool | str | os.PathLike[str], device: str, threads: int | None):
        self.spec, self.cache, self.device, self.threads = spec, cache, device, threads

    @cached_property
    def backbone(self) -> backbones.Backbone:
        """The loaded backbone."""
        if self.spec is None or self.spec == ROWS:
            raise ParameterError("This model takes embeddings as they are; it has no backbone.")
        return backbones.load(self.spec, self.device, self.threads)

    @cached_property
    def reader(self) -> Any:
        """The backbone, loaded only when something has to be embedded where its record already says who it is."""
        fingerprint = backbones.stated_fingerprint(self.spec, self.device) if self.spec else None
        if fingerprint is None or "backbone" in self.__dict__:
            return self.backbone
        return Deferred(backbones.record(str(self.spec)), fingerprint, lambda: self.backbone)

    @property
    def modality(self) -> str:
        """What it reads: `image`, `text`, `sound` or `embedding`."""
        return "embedding" if self.spec == ROWS else str(self.reader.modality)

    def choose(self, modality: str) -> None:
        """Take the default for a kind of data where none was named; refuse data of another kind than it reads."""
        if self.spec is None:
            self.spec = ROWS if modality == "embedding" else backbones.default(modality)
        if self.modality != modality:
            named = "This model" if self.spec == ROWS else self.reader.record.name
            raise ParameterError(f"{named} reads {KINDS[self.modality]} and the data are {KINDS[modality]}.")

    def origin(self) -> dict[str, Any]:
        """What a model file says of the backbone: how it is named, its fingerprint and its record."""
        network = self.backbone
        return {"spec": self.spec, "fingerprint": network.fingerprint, "record": network.record.as_json()}

    def check_origin(self, path: str | os.PathLike[str], spec: str, made_with: str, named: bool) -> None:
        """Refuse a model file whose backbone is not this one.

        Nothing is imported or downloaded because a file says so: where only the loaded backbone can tell its
        fingerprint, it must have been `named` by the user.
        """
        try:
            here = backbones.stated_fingerprint(str(self.spec), self.device)
            if here is None and not named:
                raise FileError(
                    f"{path} says it was made with the backbone {spec}, which has to be loaded before it can be "
                    f"trusted; if you want that, name it: backbone={spec!r}, --backbone {spec} on the command line."
                )
            here = here or self.backbone.fingerprint
        except FileError as e:
            where = "say where it lies now: backbone='...', --backbone on the command line"
            raise e if str(path) in str(e) else FileError(f"{str(e).rstrip('.')}. {path} needs it; {where}.") from None
        if here != made_with:
            raise FileError(
                f"{path} was made with the backbone {spec} of fingerprint {made_with[:8]}; {self.spec} has {here[:8]} "
                f"here, so its embeddings differ: fit the model again, or use the imprint that made it."
            )

    def labelled(self, data: Any, progress: Report | None = None) -> Embedded:
        """The rows of labelled data: a path or name, a `Split`, or a pair (items, labels)."""
        if isinstance(data, tuple):
            return self._pair(*data) if len(data) == 2 else _no_pair()
        split = data if isinstance(data, Split) else datasets.load(data, "train")
        self.choose(split.modality)
        rows = self._split(split, progress)
        _complete(rows, split.classes)
        return rows

    def unlabelled(self, items: Any, progress: Report | None = None) -> Embedded:
        """The rows of items: pictures or sounds as paths or arrays, texts, or a matrix of embeddings."""
        if isinstance(items, Embedded):
            return items
        if isinstance(items, Split):
            self.choose(items.modality)
            return self._split(items, progress)
        if self.modality == "embedding":
            return Embedded(_matrix(items), Numbered("row", len(items)), ())
        return embed_items(self.backbone, items, progress)

    def _pair(self, items: Any, labels: Any) -> Embedded:
        if isinstance(items, np.ndarray) and items.ndim == 2 and items.dtype.kind == "f":
            self.choose("embedding")
        elif self.spec is None:
            self.choose(_kind_of(list(items)[:10]))
        if self.modality != "embedding":
            rows = labelled_items(self.backbone, items, labels)
            _complete(rows, np.unique(np.asarray(labels)).tolist())
            return rows
        X, y = _matrix(items), plain_labels(labels)
        if len(X) != len(y):
            raise ParameterError(f"fit((items, labels)): {len(X)} items and {len(y)} labels; they must be as many.")
        return Embedded(X, Numbered("row", len(X)), (), y)

    def _split(self, split: Split, progress: Report | None) -> Embedded:
        y = split.labels if len(split.labels) else None
        if split.modality == "embedding":
            return Embedded(_matrix(split.inputs), split.names, (), y)
        found = embed(
            self.reader,
            split,
            folder=None if isinstance(self.cache, bool) else Path(self.cache),
            progress=progress,
            remember=self.cache is not False,
        )
        kept = found.index.tolist()
        return Embedded(found.X, [split.names[i] for i in kept], found.skipped, None if y is None else y[found.index])


def _matrix(rows: Any) -> Array:
    X = np.asarray(rows)
    if X.ndim != 2 or X.dtype.kind not in "fiu" or not len(X):
        raise ParameterError(f"Embeddings must be rows of numbers (n, d), not {X.dtype} of shape {X.shape}.")
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float32)
    if not np.isfinite(X).all():
        row = int(np.flatnonzero(~np.isfinite(X).all(axis=1))[0])
        raise ParameterError(f"Embeddings must be finite numbers; row {row} is not.")
    return X


def _kind_of(first: Sequence[Any]) -> str:
    """What the first of some items are, where no backbone says what it reads."""
    if all(isinstance(item, str) and not Path(item).suffix for item in first):
        return "text"
    heard = all(isinstance(item, str | os.PathLike) and Path(item).suffix.lower() in SUFFIXES for item in first)
    return "sound" if heard else "image"


def _no_pair() -> Embedded:
    raise ParameterError("fit(data): a tuple must be a pair, (pictures, labels).")


def _complete(rows: Embedded, wanted: Sequence[Any]) -> None:
    """Refuse data in which a class has no input that can be read."""
    found = set(np.unique(rows.y).tolist()) if rows.y is not None else set()
    for label in wanted:
        if label not in found:
            name, reason = rows.skipped[0].name, rows.skipped[0].reason
            raise ImprintError(f"Nothing of the class {label!r} can be read; the first failure is {name}: {reason}.")
