"""Lists of pictures, texts and sounds as input to the embedding pipeline."""

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from imprint.backbones import Backbone
from imprint.core.errors import ParameterError
from imprint.core.types import Array
from imprint.datasets.files import FileInputs
from imprint.datasets.sounds import read_sound
from imprint.datasets.split import plain_labels
from imprint.embeddings import EmbeddingProgress, Skipped, embed


class Embedded(NamedTuple):
    """Embeddings in memory; `y` holds the labels of labelled inputs, and unreadable inputs have no row."""

    X: Array  # (n, d) float32
    names: Sequence[str]
    skipped: tuple[Skipped, ...]
    y: Array | None = None  # (n,)


def embed_items(
    backbone: Backbone, items: Any, progress: Callable[[EmbeddingProgress], object] | None = None
) -> Embedded:
    """Embed pictures (paths, or uint8 arrays), texts, or sounds (paths, or samples) without storing anything."""
    data = ListedInputs(backbone, items)
    result = embed(backbone, data, progress=progress, remember=False)
    return Embedded(result.X, [data.names[i] for i in result.index.tolist()], result.skipped)


def labelled_items(backbone: Backbone, items: Any, labels: Any) -> Embedded:
    """Embed pictures or texts that come with one label each."""
    y = plain_labels(labels)
    count = len(items) if hasattr(items, "__len__") else len(items := list(items))
    if count != len(y):
        raise ParameterError(f"fit((items, labels)): {count} items and {len(y)} labels; they must be as many.")
    rows = embed_items(backbone, items)
    return rows._replace(y=np.delete(y, [s.index for s in rows.skipped]))


class ListedInputs:
    """Items that a caller gave in a list or an array, read one by one."""

    def __init__(self, backbone: Backbone, items: Any):
        if isinstance(items, str | os.PathLike):
            raise ParameterError(f"{os.fspath(items)!r} is one item; give a list of them: [{os.fspath(items)!r}].")
        self.backbone = backbone
        self.items = items if isinstance(items, np.ndarray) else list(items)
        if isinstance(self.items, np.ndarray) and self.items.ndim < 3 and backbone.modality == "image":
            raise ParameterError(
                f"Pictures in one array must be (n, height, width[, 3]), not of shape {self.items.shape}."
            )
        self.names = [_name(backbone, item, i) for i, item in enumerate(self.items)]

    @property
    def inputs(self) -> "ListedInputs":
        return self

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, i: int) -> Any:
        return _read(self.backbone, self.items[i])


def _read(backbone: Backbone, item: Any) -> Any:
    if backbone.modality == "text":
        if not isinstance(item, str):
            raise ParameterError(f"{backbone.record.name} reads texts, not {type(item).__name__}.")
        return item
    is_path = isinstance(item, str | os.PathLike)
    if backbone.modality == "sound":
        return FileInputs("", (os.fspath(item),), read_sound)[0] if is_path else item
    if is_path:
        from imprint.datasets.pictures import read_picture

        return read_picture(item)
    if isinstance(item, np.ndarray) and item.dtype == np.uint8:
        return item
    kind = f"{item.dtype} array" if isinstance(item, np.ndarray) else type(item).__name__
    raise ParameterError(f"A picture must be a path or a uint8 array (height, width[, 3]), not a {kind}.")


def _name(backbone: Backbone, item: Any, i: int) -> str:
    is_path = isinstance(item, os.PathLike) or (isinstance(item, str) and backbone.modality != "text")
    return os.fspath(item) if is_path else str(i)
