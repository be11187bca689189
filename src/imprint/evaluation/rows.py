"""Labelled embeddings together with what they were made from."""

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from imprint import datasets
from imprint.core.errors import ImprintError, ParameterError
from imprint.core.types import Array
from imprint.datasets import Split
from imprint.datasets.files import FileInputs
from imprint.embeddings import EmbeddingProgress, Skipped
from imprint.imprinter import Embedded, Imprinter


class Rows(NamedTuple):
    """Embeddings, labels, paths and inputs of everything that can be read, and what cannot."""

    X: Array  # (n, d)
    y: Array  # (n,)
    paths: list[str]
    skipped: tuple[Skipped, ...]
    inputs: Callable[[int], Any]
    """The picture, text, sound or embedding behind a row."""
    modality: str

    def embedded(self) -> Embedded:
        """The rows as an `Imprinter` takes them."""
        return Embedded(self.X, self.paths, (), self.y)


def test_split(data: str, **options: Any) -> tuple[Split, Split]:
    """What to evaluate on and what may have been trained on: the test split where there is one, else all for both."""
    whole = datasets.load(data, "train", **options)
    return (datasets.load(data, "test", **options), whole) if "test" in whole.parts else (whole, whole)


def all_splits(data: str, **options: Any) -> list[Split]:
    """Every split of the data."""
    whole = datasets.load(data, "train", **options)
    return [whole, datasets.load(data, "test", **options)] if "test" in whole.parts else [whole]


def gather(
    model: Imprinter, splits: Sequence[Split], progress: Callable[[EmbeddingProgress], object] | None = None
) -> Rows:
    """Embed splits with the model's backbone; paths are as a person would open them."""
    parts = [_gather(model, split, progress) for split in splits]
    ends = np.cumsum([len(part.X) for part in parts])

    def inputs(i: int) -> Any:
        part = int(np.searchsorted(ends, i, side="right"))
        return parts[part].inputs(i - (int(ends[part - 1]) if part else 0))

    if not ends[-1]:
        first = parts[0].skipped[0]
        raise ImprintError(f"Nothing can be read; the first failure is {first.name}: {first.reason}.")
    X, y = (np.concatenate([getattr(part, name) for part in parts]) for name in ("X", "y"))
    paths, skipped = [p for part in parts for p in part.paths], tuple(s for part in parts for s in part.skipped)
    return Rows(X, y, paths, skipped, inputs, splits[0].modality)


def _gather(model: Imprinter, split: Split, progress: Callable[[EmbeddingProgress], object] | None) -> Rows:
    if not len(split.labels):
        raise ParameterError("The data have no labels, so there is nothing to compare with.")
    rows = model.look(split, progress)
    kept = np.delete(np.arange(len(split)), [s.index for s in rows.skipped])
    skipped = tuple(Skipped(s.index, path_of(split, s.index), s.reason) for s in rows.skipped)
    paths = [path_of(split, i) for i in kept.tolist()]
    return Rows(rows.X, split.labels[kept], paths, skipped, lambda i: split.inputs[int(kept[i])], split.modality)


def path_of(split: Split, i: int) -> str:
    """Where a person finds an input: the path of its file, or the name of its row."""
    return os.path.join(split.inputs.root, split.names[i]) if isinstance(split.inputs, FileInputs) else split.names[i]
