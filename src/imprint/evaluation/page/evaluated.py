"""The page of `imprint evaluate`."""

from typing import Any

import numpy as np

from imprint.core.printable import printable
from imprint.core.types import Array
from imprint.evaluation.evaluation import Evaluation, all_labels
from imprint.evaluation.page.document import document
from imprint.evaluation.page.flat import flat_map
from imprint.evaluation.page.shown import Shown
from imprint.evaluation.projection import Projection
from imprint.evaluation.reliability import reliability
from imprint.evaluation.rows import Rows

SCRIPTS = ("dom", "numbers", "cards", "bars", "confusion", "reliability", "map", "evaluate")
MISTAKES = 100
"""Mistakes that are shown one by one."""
PER_FIELD = 12
"""Rows behind one field of the confusion matrix that are shown."""


def evaluation_page(
    title: str,
    found: Evaluation,
    rows: Rows,
    P: Array,
    classes: Array,
    projection: Projection,
    because: dict[int, dict[str, Any]],
) -> str:
    """One HTML file. `because` has, for rows that are mistakes, the training input that decided."""
    labels = all_labels(classes, rows.y)
    truth, answers = np.searchsorted(labels, rows.y), np.searchsorted(labels, classes[P.argmax(axis=1)])
    sure = P.max(axis=1)

    def facts(i: int) -> dict[str, Any]:
        answer = {"predicted": printable(labels[answers[i]]), "probability": round(float(sure[i]), 4)}
        return {**answer, "because": because[i]} if i in because else answer

    shown = Shown(rows, facts)
    mistakes = [shown.place(i) for i in most_sure(truth, answers, sure)]
    fields = {f"{i},{j}": [shown.place(r) for r in picked] for (i, j), picked in _fields(truth, answers, sure).items()}
    data = {
        "classes": [printable(label, 60) for label in labels.tolist()],
        "unknown": [printable(label, 60) for label in found.unknown],
        "rows": found.rows,
        "confusion": found.confusion,
        "per_class": [[c.rows, c.recall, c.precision] for c in found.per_class],
        "calibration_error": found.calibration_error,
        "reliability": reliability(sure, truth == answers),
        "items": shown.items,
        "mistakes": mistakes,
        "all_mistakes": len(found.mistakes),
        "fields": fields,
        "unreadable": [{k: printable(v) for k, v in one.items()} for one in found.unreadable],
        "map": flat_map(projection, rows.X, truth, truth != answers),
    }
    return document(title, _lead(found), SCRIPTS, data)


def most_sure(truth: Array, answers: Array, sure: Array) -> list[int]:
    """The mistakes that are shown: the surest first."""
    wrong = np.flatnonzero(truth != answers)
    order: list[int] = wrong[np.argsort(-sure[wrong], kind="stable")][:MISTAKES].tolist()
    return order


def _fields(truth: Array, answers: Array, sure: Array) -> dict[tuple[int, int], list[int]]:
    """The rows to show behind every field: mistakes before right answers, of mistakes the surest."""
    keys = np.stack([truth, answers], axis=1)
    fields, index = np.unique(keys, axis=0, return_inverse=True)
    picked: dict[tuple[int, int], list[int]] = {}
    for f in sorted(range(len(fields)), key=lambda f: fields[f, 0] == fields[f, 1]):
        rows = np.flatnonzero(index.ravel() == f)
        i, j = fields[f].tolist()
        order = rows[np.argsort(sure[rows] if i == j else -sure[rows], kind="stable")]
        picked[i, j] = order[:PER_FIELD].tolist()
    return picked


def _lead(found: Evaluation) -> str:
    right = found.rows - len(found.mistakes)
    return f"{right:,} of {found.rows:,} right: {100 * found.accuracy:.1f} %"
