"""Labelled embeddings together with the inputs that they were computed from."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from imprint import datasets
from imprint.active.suggestions import ROUNDING
from imprint.calibration import CrossValidation
from imprint.core.arrays import Array
from imprint.core.errors import ImprintError, ParameterError, printable
from imprint.core.label_sets import single_labels
from imprint.datasets import Split
from imprint.datasets.files import FileInputs
from imprint.datasets.split import Inputs
from imprint.embeddings import EmbeddingProgress, Skipped
from imprint.imprinter import Embedded, Imprinter
from imprint.kernels.neighbours import nearest
from imprint.kernels.rows import unit_rows
from imprint.modalities import Modality

MAX_TEXT_LENGTH = 80  # characters of a text in a terminal


class LabelledRows(NamedTuple):
    """Embeddings, labels, paths and inputs of the readable rows, and a list of the
    unreadable ones.
    """

    X: Array  # (n, d)
    y: Array  # (n,)
    paths: Sequence[str]
    skipped: tuple[Skipped, ...]
    inputs: Callable[[int], Any]  # the image, text, sound or embedding behind a row
    kind: Modality
    tags: tuple[Any, ...] | None = None  # all labels, where `y` holds label sets
    # the data as the user named them; pages and terminals show paths relative to it
    root: str = ""
    blocks: tuple[int, ...] = ()  # the widths of the blocks of X, if it has several

    def caption(self, path: str) -> str:
        """How a terminal shows a row: its relative path, and the words of a text."""
        name = self.relative(path)
        if not self.kind.typed:
            return name
        words = str(self.inputs(self.paths.index(path))).split()
        return f"{name}: {printable(' '.join(words), MAX_TEXT_LENGTH)}"

    def relative(self, path: str) -> str:
        """A path relative to `root`; anything else, such as the name of a row, as it
        is.
        """
        return path.removeprefix(os.path.join(self.root, "")) if self.root else path


def all_splits(data: str, **options: Any) -> list[Split]:
    """The train split of the data, and the test split if there is one."""
    train = datasets.load(data, "train", **options)
    if "test" not in train.parts:
        return [train]
    return [train, datasets.load(data, "test", **options)]


def gather(
    model: Imprinter,
    splits: Sequence[Split],
    progress: Callable[[EmbeddingProgress], object] | None = None,
    root: str = "",
) -> LabelledRows:
    """The rows of some splits, embedded with the model's backbone; `paths` are those
    that a user opens.
    """
    parts: list[Embedded] = []
    skipped: list[Skipped] = []
    paths: list[str] = []
    origins: list[tuple[Inputs, int]] = []
    labels: set[Any] = set()
    for split in splits:
        rows = _embed(model, split, progress)
        parts.append(rows)
        skipped += rows.skipped
        paths += rows.names
        labels.update(split.classes)
        origins += [(split.inputs, i) for i in rows.readable.tolist()]
    if not origins:
        first = skipped[0]
        raise ImprintError(
            f"Nothing can be read; the first failure is {first.name}: {first.reason}."
        )

    def read(i: int) -> Any:
        inputs, position = origins[i]
        return inputs[position]

    return LabelledRows(
        X=np.concatenate([rows.X for rows in parts]),
        y=np.concatenate([np.asarray(rows.y) for rows in parts]),
        paths=paths,
        skipped=tuple(skipped),
        inputs=read,
        kind=splits[0].kind,
        tags=tuple(sorted(labels)) if splits[0].tags else None,
        root=root,
        blocks=parts[0].blocks,
    )


def _embed(
    model: Imprinter,
    split: Split,
    progress: Callable[[EmbeddingProgress], object] | None,
) -> Embedded:
    """The rows of a split; refuses data without labels, and tags for a model that has
    none.
    """
    has_tags = bool(model.fitted and model.state.head.tags)
    if not len(split.labels):
        raise ParameterError(
            "The data have no labels, so there is nothing to compare with."
        )
    if split.tags and model.fitted and not has_tags:
        raise ParameterError(
            "The data have tags, and the model has one label per input."
        )
    # Names that can be opened.
    folder = split.inputs.root if isinstance(split.inputs, FileInputs) else ""
    paths = [os.path.join(folder, name) for name in split.names]
    rows = model.look(replace(split, names=paths), progress)
    if has_tags and not split.tags:
        return rows._replace(y=single_labels(np.asarray(rows.y).tolist()))
    return rows


def count_training_rows(model: Imprinter, X: Array) -> tuple[int, bool]:
    """How many rows are training rows of the model, and whether that is exact.

    A model file holds only some rows of a large class, and then the number is a lower
    bound.
    """
    folds = model.state.head.imprinted.folds
    held = []
    if isinstance(folds, CrossValidation):
        held = list(folds.held.values())
    parts = [exemplars.X for exemplars in model.state.exemplars.values()]
    parts += [rows.rows for rows in held]
    if not parts:
        return 0, False
    training = unit_rows(np.concatenate(parts).astype(np.float64))
    distances, _ = nearest(unit_rows(X.astype(np.float64)), training, 1)
    count = int(np.sum(distances[:, 0] <= ROUNDING))
    complete = bool(held) and all(rows.complete for rows in held)
    return count, complete or count == len(X)
