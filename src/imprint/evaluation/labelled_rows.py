"""Labelled embeddings together with the inputs that they were computed from."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from imprint import datasets
from imprint.calibration import CrossValidation
from imprint.core.errors import ImprintError, ParameterError, printable
from imprint.core.label_sets import single_labels
from imprint.core.types import Array
from imprint.datasets import Split
from imprint.datasets.files import FileInputs
from imprint.embeddings import EmbeddingProgress, Skipped
from imprint.evaluation.inspection import ROUNDING
from imprint.imprinter import Embedded, Imprinter
from imprint.kernels.neighbours import nearest
from imprint.kernels.rows import unit_rows
from imprint.modalities import modality

Report = Callable[[EmbeddingProgress], object]

MAX_TEXT = 80  # characters of a text in a terminal


class LabelledRows(NamedTuple):
    """Embeddings, labels, paths and inputs of the readable rows, and a list of the unreadable ones."""

    X: Array  # (n, d)
    y: Array  # (n,)
    paths: list[str]
    skipped: tuple[Skipped, ...]
    inputs: Callable[[int], Any]
    """The picture, text, sound or embedding behind a row."""
    modality: str
    tags: tuple[Any, ...] | None = None
    """All labels, where `y` holds label sets."""
    root: str = ""
    """The data as the user named them; pages and terminals show paths relative to it."""

    @property
    def title(self) -> str:
        """The last part of `root`."""
        return os.path.basename(os.path.normpath(self.root)) if self.root else "data"

    def caption(self, path: str) -> str:
        """How a terminal shows a row: its relative path, and the words of a text."""
        kind, name = modality(self.modality), self.relative(path)
        return f"{name}: {printable(kind.show(self.inputs(self.paths.index(path))), MAX_TEXT)}" if kind.typed else name

    def relative(self, path: str) -> str:
        """A path relative to `root`; anything else, such as the name of a row, as it is."""
        folder = os.path.join(self.root, "")
        return path[len(folder) :] if self.root and path.startswith(folder) else path

    def embedded(self) -> Embedded:
        """The rows as an `Imprinter` takes them."""
        return Embedded(self.X, self.paths, (), self.y)


def all_splits(data: str, **options: Any) -> list[Split]:
    """The train split of the data, and the test split if there is one."""
    train = datasets.load(data, "train", **options)
    return [train, datasets.load(data, "test", **options)] if "test" in train.parts else [train]


def gather(model: Imprinter, splits: Sequence[Split], progress: Report | None = None, root: str = "") -> LabelledRows:
    """Embed splits with the model's backbone. Paths are as a person would open them."""
    X, y, origins, skipped = [], [], list[tuple[Split, int]](), list[Skipped]()
    for split in splits:
        if not len(split.labels):
            raise ParameterError("The data have no labels, so there is nothing to compare with.")
        rows = model.look(split, progress)
        X.append(rows.X)
        y.append(_labels(model, split)[rows.readable])
        origins += [(split, i) for i in rows.readable.tolist()]
        skipped += [replace(s, name=_path(split, s.index)) for s in rows.skipped]
    if not origins:
        raise ImprintError(f"Nothing can be read; the first failure is {skipped[0].name}: {skipped[0].reason}.")

    def inputs(i: int) -> Any:
        split, index = origins[i]
        return split.inputs[index]

    paths, modality_name = [_path(*origin) for origin in origins], splits[0].modality
    tags = tuple(sorted({label for split in splits for label in split.classes})) if splits[0].tags else None
    return LabelledRows(np.concatenate(X), np.concatenate(y), paths, tuple(skipped), inputs, modality_name, tags, root)


def _labels(model: Imprinter, split: Split) -> Array:
    """The labels of a split, as the model has them: label sets for a model of tags."""
    of_tags = model.fitted and model.state.head.tags
    if split.tags and model.fitted and not of_tags:
        raise ParameterError("The data have tags, and the model has one label per input.")
    return single_labels(split.labels.tolist()) if of_tags and not split.tags else split.labels


def _path(split: Split, i: int) -> str:
    """The path of an input's file, or the name of its row."""
    return os.path.join(split.inputs.root, split.names[i]) if isinstance(split.inputs, FileInputs) else split.names[i]


def count_training_rows(model: Imprinter, X: Array) -> tuple[int, bool]:
    """How many rows are training rows of the model, and whether that is exact.

    A model file holds only some rows of a large class, and then the number is a lower bound.
    """
    exemplars, folds = model.state.exemplars.values(), model.state.head.imprinted.folds
    held = list(folds.held.values()) if isinstance(folds, CrossValidation) else []
    parts = [*(one.X for one in exemplars), *(rows.rows for rows in held)]
    if not parts:
        return 0, False
    training = unit_rows(np.concatenate(parts).astype(np.float64))
    distances, _ = nearest(unit_rows(X.astype(np.float64)), training, 1)
    count = int(np.sum(distances[:, 0] <= ROUNDING))
    complete = bool(held) and all(rows.complete for rows in held)
    return count, complete or count == len(X)
