"""The training inputs that contributed most to predictions."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from imprint.core.errors import UnreadableInput, printable
from imprint.core.types import Array
from imprint.datasets import Split
from imprint.evaluation.labelled_rows import LabelledRows
from imprint.evaluation.page.document import content, shortened
from imprint.imprinter import Embedded, Imprinter

PROXIES = 20
TOLERANCE = 1e-2
"""Maximum relative distance between an embedding computed again and the one in the model file."""
Key = tuple[Any, str]  # the label and the name of a training input


def closest_training_inputs(
    model: Imprinter, rows: LabelledRows, indices: Sequence[int], answers: Array, training: Split
) -> dict[int, dict[str, Any]]:
    """For each of these rows, the training input next to the proxy that contributes most to the answer.

    The result holds the name and label of the input, and its content if `training` contains it.
    """
    keys: dict[int, Key] = {}
    for i in indices:
        reasons = model.why(Embedded(rows.X[i : i + 1], ["row"], ()), PROXIES)
        named = [(r.label, r.picture) for r in reasons if r.label == answers[i] and r.picture is not None]
        if named:
            keys[i] = named[0]
    contents = {key: content(item, rows.modality) for key, item in _read(model, keys.values(), training).items()}
    return {i: {"name": shortened(k[1]), "label": printable(k[0]), **contents.get(k, {})} for i, k in keys.items()}


def _read(model: Imprinter, keys: Iterable[Key], training: Split) -> dict[Key, Any]:
    """The inputs with these names whose embedding equals the one in the model, so that no other input is shown."""
    index = {name: i for i, name in enumerate(training.captions)} if training.kind == model.embedder.kind else {}
    inputs: dict[Key, Any] = {}
    for label, name in dict.fromkeys(keys):
        if name in index:
            try:
                inputs[label, name] = training.inputs[index[name]]
            except UnreadableInput:
                continue
    if not inputs:
        return {}
    exemplars = [(model.state.exemplars[label], name) for label, name in inputs]
    stored = np.stack([exemplar.X[exemplar.names.index(name)] for exemplar, name in exemplars])
    distances = np.linalg.norm(model.look(list(inputs.values())).X - stored, axis=1)
    same = distances <= TOLERANCE * np.linalg.norm(stored, axis=1)
    return {key: item for (key, item), equal in zip(inputs.items(), same) if equal}
