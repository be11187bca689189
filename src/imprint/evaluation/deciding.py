"""The training input that counted most for an answer, if it can still be found."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from imprint.core.errors import UnreadableInput
from imprint.core.types import Array
from imprint.datasets import Split
from imprint.imprinter import Embedded, Imprinter

REASONS = 20
TOLERANCE = 1e-2
"""How far, relatively, an embedding made anew may lie from the one the model keeps."""


def deciding(model: Imprinter, X: Array, answers: Sequence[Any]) -> list[tuple[Any, str] | None]:
    """For every row the label and name of the training input beside the proxy that counts most for the answer."""
    found: list[tuple[Any, str] | None] = []
    for row, answer in zip(X, answers):
        reasons = model.why(Embedded(row[None, :], ["row"], ()), REASONS)
        named = [(r.label, r.picture) for r in reasons if r.label == answer and r.picture is not None]
        found.append(named[0] if named else None)
    return found


def training_inputs(model: Imprinter, names: Sequence[tuple[Any, str]], training: Split) -> dict[tuple[Any, str], Any]:
    """The pictures or texts of training data that the model remembers, by label and name.

    A name alone proves nothing: an input is taken only where its embedding is the one that the model keeps.
    """
    if training.modality not in ("image", "text") or training.modality != model.modality:
        return {}
    place = {name: i for i, name in enumerate(training.names)}
    inputs: dict[tuple[Any, str], Any] = {}
    for label, name in dict.fromkeys(names):
        if name in place:
            try:
                inputs[label, name] = training.inputs[place[name]]
            except UnreadableInput:
                continue
    if not inputs:
        return {}
    made = model.look(list(inputs.values())).X
    kept = np.stack([_kept(model, label, name) for label, name in inputs])
    same = np.linalg.norm(made - kept, axis=1) <= TOLERANCE * np.linalg.norm(kept, axis=1)
    return {key: value for (key, value), right in zip(inputs.items(), same) if right}


def _kept(model: Imprinter, label: Any, name: str) -> Array:
    shelf = model.learnt.shelves[label]
    return np.asarray(shelf.X[shelf.names.index(name)])
