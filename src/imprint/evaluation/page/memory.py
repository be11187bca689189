"""What a model remembers of its training data, for its page."""

from typing import Any

import numpy as np

from imprint.core.printable import printable
from imprint.core.types import Array
from imprint.datasets import Split
from imprint.evaluation.deciding import deciding, training_inputs
from imprint.evaluation.page.shown import content, shortened
from imprint.evaluation.projection import Projection, project
from imprint.evaluation.rows import Rows
from imprint.imprinter import Imprinter


def reasons(
    model: Imprinter, rows: Rows, wrong: list[int], answers: Array, training: Split
) -> dict[int, dict[str, Any]]:
    """For rows that got a wrong answer the training input that decided: its name, and itself where it is at hand."""
    found = deciding(model, rows.X[wrong], [answers[i] for i in wrong])
    inputs = training_inputs(model, [one for one in found if one is not None], training)
    because = {}
    for i, one in zip(wrong, found):
        if one is not None:
            said = {"name": shortened(one[1]), "label": printable(one[0])}
            because[i] = {**said, **(content(inputs[one]) if one in inputs else {})}
    return because


def own_projection(model: Imprinter, rows: Rows) -> Projection:
    """The map of the training rows that the model keeps; of the given rows where it keeps none."""
    shelves = model.learnt.shelves
    if not shelves:
        return project(rows.X, rows.y)
    labels = list(shelves)
    X = np.concatenate([shelves[label].X for label in labels])
    return project(X, np.repeat(np.arange(len(labels)), [len(shelves[label].X) for label in labels]))
