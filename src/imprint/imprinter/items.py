"""Pictures, texts and sounds, from wherever they are, as rows of embeddings."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from imprint.backbones import Backbone
from imprint.core.errors import ParameterError, UnreadableInput
from imprint.core.types import Array
from imprint.datasets.files import FileInputs
from imprint.datasets.sounds import read_sound
from imprint.datasets.split import plain_labels
from imprint.embeddings import EmbeddingProgress, Skipped

BATCH = 64


class Embedded(NamedTuple):
    """Embeddings in memory; `y` holds the labels of what was labelled, and what could not be read has no row."""

    X: Array  # (n, d) float32
    names: Sequence[str]
    skipped: tuple[Skipped, ...]
    y: Array | None = None  # (n,)


def embed_items(
    backbone: Backbone, items: Any, progress: Callable[[EmbeddingProgress], object] | None = None
) -> Embedded:
    """Embed pictures (paths, or uint8 arrays), texts, or sounds (paths, or samples), in batches; nothing is stored.

    What cannot be read is listed in `skipped`; `progress` hears of every batch.
    """
    given = _listed(backbone, items)
    known = [_name(backbone, item, i) for i, item in enumerate(given)]
    rows: list[Array] = [np.empty((0, backbone.width), np.float32)]
    kept: list[str] = []
    skipped: list[Skipped] = []
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for first in range(0, len(given), BATCH):
            batch = []
            for i, found in enumerate(_prepared(pool, backbone, given[first : first + BATCH]), start=first):
                if isinstance(found, UnreadableInput):
                    skipped.append(Skipped(i, known[i], found.reason))
                else:
                    batch.append(found)
                    kept.append(known[i])
            if batch:
                rows.append(backbone.embed(np.stack(batch) if isinstance(batch[0], np.ndarray) else batch))
            if progress is not None:
                progress(EmbeddingProgress(min(first + BATCH, len(given)), len(given), len(skipped)))
    return Embedded(np.concatenate(rows), kept, tuple(skipped))


def labelled_items(backbone: Backbone, items: Any, labels: Any) -> Embedded:
    """Embed pictures or texts that come with one label each."""
    given, y = _listed(backbone, items), plain_labels(labels)
    if len(given) != len(y):
        raise ParameterError(f"fit((items, labels)): {len(given)} items and {len(y)} labels; they must be as many.")
    found = embed_items(backbone, given)
    kept = np.delete(np.arange(len(y)), [s.index for s in found.skipped])
    return found._replace(y=y[kept])


def _listed(backbone: Backbone, items: Any) -> Any:
    if isinstance(items, str | os.PathLike):
        raise ParameterError(f"{os.fspath(items)!r} is one item; give a list of them: [{os.fspath(items)!r}].")
    given = items if isinstance(items, np.ndarray) else list(items)
    if isinstance(given, np.ndarray) and given.ndim < 3 and backbone.modality == "image":
        raise ParameterError(f"Pictures in one array must be (n, height, width[, 3]), not of shape {given.shape}.")
    return given


def _prepared(pool: ThreadPoolExecutor, backbone: Backbone, items: Sequence[Any]) -> Iterator[Any]:
    def prepare(item: Any) -> Any:
        try:
            return backbone.prepare(_read(backbone, item))
        except UnreadableInput as e:
            return e

    return pool.map(prepare, items)


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
    found = f"{item.dtype} array" if isinstance(item, np.ndarray) else type(item).__name__
    raise ParameterError(f"A picture must be a path or a uint8 array (height, width[, 3]), not a {found}.")


def _name(backbone: Backbone, item: Any, i: int) -> str:
    is_path = isinstance(item, os.PathLike) or (isinstance(item, str) and backbone.modality != "text")
    return os.fspath(item) if is_path else str(i)
