"""The pages of `imprint evaluate`, `check` and `suggest`: one HTML file each, without external resources."""

from pathlib import Path
from typing import Any

import numpy as np

from imprint.active import Suggestions
from imprint.core.errors import printable
from imprint.core.files.atomic import atomic_write
from imprint.core.types import Array
from imprint.datasets import Split
from imprint.evaluation.evaluation import Evaluation, all_labels, reliability
from imprint.evaluation.explanations import closest_training_inputs, read_training_inputs
from imprint.evaluation.inspection import Inspection
from imprint.evaluation.labelled_rows import LabelledRows
from imprint.evaluation.page.document import document
from imprint.evaluation.page.items import MAX_CONTENTS, PageItems, content, shortened
from imprint.evaluation.projection import Projection, project, project_model
from imprint.imprinter import Imprinter

__all__ = ["evaluation_page", "inspection_page", "write_evaluation", "write_inspection", "write_suggestions"]

EVALUATION_SCRIPTS = ("dom", "numbers", "cards", "bars", "confusion", "reliability", "map", "evaluate")
INSPECTION_SCRIPTS = ("dom", "numbers", "cards", "map", "check")
SUGGESTION_SCRIPTS = ("dom", "numbers", "cards", "suggest")
MAX_MISTAKES = 100
MAX_PER_CELL = 12
"""Rows shown for one cell of the confusion matrix."""
MAX_MISLABELLED, MAX_GROUPS, MAX_COPIES, MAX_OUTLIERS = 120, 60, 6, 60


def write_evaluation(
    path: Path, title: str, result: Evaluation, model: Imprinter, rows: LabelledRows, P: Array, training: Split
) -> None:
    """Write the page of an evaluation; the closest training inputs are read from `training`."""
    classes = model.classes_
    answers = classes[P.argmax(axis=1)]
    closest = _closest(model, rows, _most_confident_mistakes(rows.y, answers, P.max(axis=1)), answers, training)
    text = evaluation_page(title, result, rows, P, classes, project_model(model, rows.X, rows.y), closest)
    with atomic_write(path) as f:
        f.write(text.encode())


def write_inspection(path: Path, title: str, result: Inspection, rows: LabelledRows) -> None:
    """Write the page of an inspection."""
    with atomic_write(path) as f:
        f.write(inspection_page(title, result, rows).encode())


def write_suggestions(path: Path, title: str, pool: Split, suggestions: Suggestions) -> None:
    """Write one HTML file with the suggested inputs, the most useful first."""
    items = []
    for place, (i, reason) in enumerate(zip(suggestions.tolist(), suggestions.reasons)):
        item = {"name": shortened(pool.names[i]), "reason": printable(reason, 120)}
        items.append({**item, **(content(pool.inputs[i], pool.modality) if place < MAX_CONTENTS else {})})
    unreadable = [{"path": printable(s.name), "reason": printable(s.reason)} for s in suggestions.unreadable]
    lead = f"{len(items):,} of {len(pool):,} inputs, the most useful first"
    with atomic_write(path) as f:
        f.write(document(title, lead, SUGGESTION_SCRIPTS, {"items": items, "unreadable": unreadable}).encode())


def evaluation_page(
    title: str,
    result: Evaluation,
    rows: LabelledRows,
    P: Array,
    classes: Array,
    projection: Projection,
    closest: dict[int, dict[str, Any]],
) -> str:
    """The HTML of an evaluation. `closest` holds, for misclassified rows, the training input that decided."""
    labels = all_labels(classes, rows.y)
    truth, answers = np.searchsorted(labels, rows.y), np.searchsorted(labels, classes[P.argmax(axis=1)])
    confidence = P.max(axis=1)

    def facts(i: int) -> dict[str, Any]:
        answer = {"predicted": printable(labels[answers[i]]), "probability": round(float(confidence[i]), 4)}
        return {**answer, "because": closest[i]} if i in closest else answer

    items = PageItems(rows, facts)
    mistakes = [items.index(i) for i in _most_confident_mistakes(truth, answers, confidence)]
    cells = _rows_of_cells(truth, answers, confidence)
    data = {
        "classes": [printable(label, 60) for label in labels.tolist()],
        "unknown": [printable(label, 60) for label in result.unknown],
        "rows": result.rows,
        "confusion": result.confusion,
        "per_class": [[c.rows, c.recall, c.precision] for c in result.per_class],
        "calibration_error": result.calibration_error,
        "reliability": reliability(confidence, truth == answers),
        "mistakes": mistakes,
        "all_mistakes": len(result.mistakes),
        "cells": {f"{i},{j}": [items.index(row) for row in of_cell] for (i, j), of_cell in cells.items()},
        "items": items.items,
        "unreadable": _unreadable(rows),
        "map": projection.as_json(rows.X, truth, truth != answers),
    }
    correct = result.rows - len(result.mistakes)
    lead = f"Accuracy {100 * result.accuracy:.1f} %: {correct:,} of {result.rows:,} correct"
    return document(title, lead, EVALUATION_SCRIPTS, data)


def inspection_page(title: str, result: Inspection, rows: LabelledRows) -> str:
    """The HTML of an inspection."""
    row_of = {path: i for i, path in enumerate(rows.paths)}
    items = PageItems(rows)
    labels, groups = np.unique(rows.y, return_inverse=True)
    marked = np.zeros(len(rows.y), dtype=bool)
    marked[[row_of[s.path] for s in result.mislabelled]] = True
    suspects = [
        {"item": items.index(row_of[s.path]), "suggested": printable(s.suggested), "score": s.score}
        for s in result.mislabelled[:MAX_MISLABELLED]
    ]
    copies = [[items.index(row_of[p]) for p in group[:MAX_COPIES]] for group in result.duplicates[:MAX_GROUPS]]
    data: dict[str, Any] = {
        "classes": [printable(label, 60) for label in labels.tolist()],
        "counts": np.bincount(groups).tolist(),
        "rows": len(rows.y),
        "mislabelled": suspects,
        "duplicates": [{"items": c, "all": len(g)} for c, g in zip(copies, result.duplicates)],
        "outliers": [items.index(row_of[p]) for p in result.outliers[:MAX_OUTLIERS]],
        "totals": [len(result.mislabelled), len(result.duplicates), len(result.outliers), len(result.unreadable)],
        "unreadable": _unreadable(rows),
        "items": items.items,
        "map": project(rows.X, rows.y).as_json(rows.X, groups, marked),
    }
    return document(title, f"{len(rows.y):,} rows of {len(labels):,} classes", INSPECTION_SCRIPTS, data)


def _unreadable(rows: LabelledRows) -> list[dict[str, str]]:
    return [{"path": shortened(rows.relative(s.name)), "reason": printable(s.reason)} for s in rows.skipped]


def _closest(
    model: Imprinter, rows: LabelledRows, wrong: list[int], answers: Array, training: Split
) -> dict[int, dict[str, Any]]:
    """The closest training input of each misclassified row: its name, and its content where it can be read."""
    keys = closest_training_inputs(model, rows.X[wrong], [answers[i] for i in wrong])
    inputs = read_training_inputs(model, [key for key in keys if key is not None], training)
    closest = {}
    for i, key in zip(wrong, keys):
        if key is not None:
            names = {"name": shortened(key[1]), "label": printable(key[0])}
            closest[i] = {**names, **(content(inputs[key], rows.modality) if key in inputs else {})}
    return closest


def _most_confident_mistakes(truth: Array, answers: Array, confidence: Array) -> list[int]:
    """The mistakes that the page shows, the most confident first."""
    wrong = np.flatnonzero(truth != answers)
    order: list[int] = wrong[np.argsort(-confidence[wrong], kind="stable")][:MAX_MISTAKES].tolist()
    return order


def _rows_of_cells(truth: Array, answers: Array, confidence: Array) -> dict[tuple[int, int], list[int]]:
    """The rows to show for each cell: the most confident mistakes, then the least confident correct answers."""
    cells, index = np.unique(np.stack([truth, answers], axis=1), axis=0, return_inverse=True)
    rows_of: dict[tuple[int, int], list[int]] = {}
    for cell in sorted(range(len(cells)), key=lambda c: cells[c, 0] == cells[c, 1]):
        rows = np.flatnonzero(index.ravel() == cell)
        i, j = cells[cell].tolist()
        order = rows[np.argsort(confidence[rows] if i == j else -confidence[rows], kind="stable")]
        rows_of[i, j] = order[:MAX_PER_CELL].tolist()
    return rows_of
