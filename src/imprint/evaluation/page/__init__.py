"""The pages of `imprint evaluate`, `check` and `suggest`: one HTML file each, without external resources."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from imprint.active import Suggestions
from imprint.core.errors import printable
from imprint.core.files.atomic import atomic_write
from imprint.core.types import Array
from imprint.datasets import Split
from imprint.evaluation.evaluation import Evaluation, all_labels, reliability
from imprint.evaluation.inspection import Inspection
from imprint.evaluation.labelled_rows import LabelledRows
from imprint.evaluation.page.document import MAX_CONTENTS, PageItems, content, document, shortened
from imprint.evaluation.page.training_inputs import closest_training_inputs
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
    answers = model.classes_[P.argmax(axis=1)]
    closest = closest_training_inputs(model, rows, _mistakes(result, rows), answers, training)
    _write(path, evaluation_page(title, result, rows, P, model.classes_, project_model(model, rows.X, rows.y), closest))


def write_inspection(path: Path, title: str, result: Inspection, rows: LabelledRows) -> None:
    """Write the page of an inspection."""
    _write(path, inspection_page(title, result, rows))


def write_suggestions(path: Path, title: str, pool: Split, suggestions: Suggestions) -> None:
    """Write one HTML file with the suggested inputs, the most useful first."""
    items: list[dict[str, str]] = []
    for i, reason in zip(suggestions.tolist(), suggestions.reasons):
        shown = content(pool.inputs[i], pool.modality) if len(items) < MAX_CONTENTS else {}
        items.append({"name": shortened(pool.names[i]), "reason": printable(reason, 120), **shown})
    data = {"items": items, "unreadable": _unreadable((s.name, s.reason) for s in suggestions.unreadable)}
    lead = f"{len(items):,} of {len(pool):,} inputs, the most useful first"
    _write(path, document(title, lead, SUGGESTION_SCRIPTS, data))


def _write(path: Path, page: str) -> None:
    with atomic_write(path) as f:
        f.write(page.encode())


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
    mistakes = [items.index(i) for i in _mistakes(result, rows)]
    cells = _rows_of_cells(truth, answers, confidence)
    data = {
        "classes": [printable(label, 60) for label in labels.tolist()],
        "unknown": [printable(label, 60) for label in result.unknown],
        "rows": result.rows,
        "confusion": result.confusion,
        "per_class": [[c.rows, c.recall, c.precision] for c in result.per_class],
        "calibration_error": result.calibration_error,
        "levels": [[one.level, one.accuracy] for one in result.levels],
        "reliability": reliability(confidence, truth == answers),
        "mistakes": mistakes,
        "all_mistakes": len(result.mistakes),
        "cells": {f"{i},{j}": [items.index(row) for row in of_cell] for (i, j), of_cell in cells.items()},
        "items": items.items,
        "unreadable": _unreadable((rows.relative(s.name), s.reason) for s in rows.skipped),
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
        "unreadable": _unreadable((rows.relative(s.name), s.reason) for s in rows.skipped),
        "items": items.items,
        "map": project(rows.X, rows.y).as_json(rows.X, groups, marked),
    }
    return document(title, f"{len(rows.y):,} rows of {len(labels):,} classes", INSPECTION_SCRIPTS, data)


def _unreadable(skipped: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    """Paths and reasons of inputs that cannot be read."""
    return [{"path": shortened(path), "reason": printable(reason)} for path, reason in skipped]


def _mistakes(result: Evaluation, rows: LabelledRows) -> list[int]:
    """The mistakes that the page shows, the most confident first."""
    row_of = {path: i for i, path in enumerate(rows.paths)}
    return [row_of[mistake.path] for mistake in result.mistakes[:MAX_MISTAKES]]


def _rows_of_cells(truth: Array, answers: Array, confidence: Array) -> dict[tuple[int, int], list[int]]:
    """The rows to show for each cell: the most confident mistakes, then the least confident correct answers."""
    cells: dict[tuple[int, int], list[int]] = {}
    wrong = truth != answers
    for row in np.lexsort((np.where(wrong, -confidence, confidence), ~wrong)).tolist():
        cell = cells.setdefault((int(truth[row]), int(answers[row])), [])
        cell.extend([row] if len(cell) < MAX_PER_CELL else [])
    return cells
