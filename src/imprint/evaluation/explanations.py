"""The training input that contributed most to a prediction, if the training data still contain it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from imprint.core.errors import UnreadableInput
from imprint.core.types import Array
from imprint.datasets import Split
from imprint.imprinter import Embedded, Imprinter

PROXIES = 20
TOLERANCE = 1e-2
"""Maximum relative distance between an embedding computed again and the one in the model file."""

Key = tuple[Any, str]
"""The label and the name of a training input."""


def closest_training_inputs(model: Imprinter, X: Array, answers: Sequence[Any]) -> list[Key | None]:
    """For each row, the training input next to the proxy that contributes most to the answer."""
    keys: list[Key | None] = []
    for row, answer in zip(X, answers):
        reasons = model.why(Embedded(row[None, :], ["row"], ()), PROXIES)
        named = [(r.label, r.picture) for r in reasons if r.label == answer and r.picture is not None]
        keys.append(named[0] if named else None)
    return keys


def read_training_inputs(model: Imprinter, keys: Sequence[Key], training: Split) -> dict[Key, Any]:
    """Read these pictures or texts from the training data.

    An input with the same name may be another one, so it is used only if its embedding equals the one in the model.
    """
    if training.kind != model.embedder.kind:
        return {}
    index = {name: i for i, name in enumerate(training.captions)}
    inputs: dict[Key, Any] = {}
    for label, name in dict.fromkeys(keys):
        if name in index:
            try:
                inputs[label, name] = training.inputs[index[name]]
            except UnreadableInput:
                continue
    if not inputs:
        return {}
    embedded = model.look(list(inputs.values())).X
    stored = np.stack([_stored_embedding(model, label, name) for label, name in inputs])
    same = np.linalg.norm(embedded - stored, axis=1) <= TOLERANCE * np.linalg.norm(stored, axis=1)
    return {key: value for (key, value), equal in zip(inputs.items(), same) if equal}


def _stored_embedding(model: Imprinter, label: Any, name: str) -> Array:
    exemplars = model.learnt.shelves[label]
    return np.asarray(exemplars.X[exemplars.names.index(name)])
