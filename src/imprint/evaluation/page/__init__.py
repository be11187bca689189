"""The pages of `imprint evaluate`, `check` and `suggest`: one HTML file each, without external resources."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from imprint.active import Suggestions
from imprint.core.errors import UnreadableInput, printable
from imprint.core.files.atomic import atomic_write
from imprint.core.types import Array
from imprint.datasets import Split
from imprint.evaluation.evaluation import Evaluation, reliability
from imprint.evaluation.inspection import Inspection
from imprint.evaluation.labelled_rows import LabelledRows
from imprint.evaluation.page.document import MAX_CONTENTS, PageItems, content, document, shortened
from imprint.evaluation.projection import Projection, project, project_model
from imprint.imprinter import Embedded, Imprinter

__all__ = ["evaluation_page", "inspection_page", "write_evaluation", "write_inspection", "write_suggestions"]

EVALUATION_SCRIPTS = ("dom", "numbers", "cards", "bars", "confusion", "reliability", "map", "evaluate")
INSPECTION_SCRIPTS = ("dom", "numbers", "cards", "map", "check")
SUGGESTION_SCRIPTS = ("dom", "numbers", "cards", "suggest")
MAX_MISTAKES = 100
MAX_PER_CELL = 12
"""Rows shown for one cell of the confusion matrix."""
PROXIES = 20
"""Number of proxies among which the closest training input is looked for."""
TOLERANCE = 1e-2
"""Maximum relative distance between an embedding computed again and the one in the model file."""
MAX_MISLABELLED, MAX_GROUPS, MAX_COPIES, MAX_OUTLIERS = 120, 60, 6, 60


def write_evaluation(
    path: Path, title: str, result: Evaluation, model: Imprinter, rows: LabelledRows, training: Split
) -> None:
    """Write the page of an evaluation; the closest training inputs are read from `training`."""
    predicted = {i: result.classes[result.predicted[i]] for i in result.wrong[:MAX_MISTAKES]}
    closest = _closest_training_inputs(model, rows, predicted, training)
    _write(path, evaluation_page(title, result, rows, project_model(model, rows.X, rows.y), closest))


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
    projection: Projection,
    closest: Mapping[int, dict[str, Any]],
) -> str:
    """The HTML of an evaluation. `closest` holds, for misclassified rows, the training input that contributed most."""
    labels = [printable(label, 60) for label in result.classes]
    truth, predicted, confidence = result.truth, result.predicted, result.confidence

    def facts(i: int) -> dict[str, Any]:
        label = printable(result.classes[predicted[i]])
        answer = {"predicted": label, "probability": round(float(confidence[i]), 4)}
        return {**answer, "because": closest[i]} if i in closest else answer

    items = PageItems(rows, facts)
    mistakes = [items.index(i) for i in result.wrong[:MAX_MISTAKES]]
    cells = _rows_of_cells(truth, predicted, confidence)
    data = {
        "classes": labels,
        "unknown": [printable(label, 60) for label in result.unknown],
        "rows": result.rows,
        "confusion": result.confusion,
        "per_class": [[c.rows, c.recall, c.precision] for c in result.per_class],
        "calibration_error": result.calibration_error,
        "levels": [[one.level, one.accuracy] for one in result.levels],
        "reliability": reliability(confidence, truth == predicted),
        "mistakes": mistakes,
        "all_mistakes": len(result.mistakes),
        "cells": {f"{i},{j}": [items.index(row) for row in of_cell] for (i, j), of_cell in cells.items()},
        "items": items.items,
        "unreadable": _unreadable((rows.relative(s.name), s.reason) for s in rows.skipped),
        "map": projection.as_json(rows.X, truth, truth != predicted),
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


def _rows_of_cells(truth: Array, predicted: Array, confidence: Array) -> dict[tuple[int, int], list[int]]:
    """The rows to show for each cell: the most confident mistakes, then the least confident correct answers."""
    cells: dict[tuple[int, int], list[int]] = {}
    wrong = truth != predicted
    for row in np.lexsort((np.where(wrong, -confidence, confidence), ~wrong)).tolist():
        cell = cells.setdefault((int(truth[row]), int(predicted[row])), [])
        cell.extend([row] if len(cell) < MAX_PER_CELL else [])
    return cells


def _closest_training_inputs(
    model: Imprinter, rows: LabelledRows, predicted: Mapping[int, Any], training: Split
) -> dict[int, dict[str, Any]]:
    """For each row in `predicted`, the training input nearest to the proxy that contributes most to the prediction.

    The result holds the name and label of the input, and its content if `training` contains it.
    """
    keys: dict[int, tuple[Any, str]] = {}  # the label and the name of a training input
    for i, label in predicted.items():
        reasons = model.why(Embedded(rows.X[i : i + 1], ["row"], ()), PROXIES)
        named = [(r.label, r.picture) for r in reasons if r.label == label and r.picture is not None]
        if named:
            keys[i] = named[0]
    contents = {key: content(item, rows.modality) for key, item in _same_inputs(model, keys.values(), training).items()}
    return {i: {"name": shortened(k[1]), "label": printable(k[0]), **contents.get(k, {})} for i, k in keys.items()}


def _same_inputs(model: Imprinter, keys: Iterable[tuple[Any, str]], training: Split) -> dict[tuple[Any, str], Any]:
    """The inputs with these names whose embedding equals the one in the model, so that no other input is shown."""
    index = {name: i for i, name in enumerate(training.captions)} if training.kind == model.embedder.kind else {}
    inputs: dict[tuple[Any, str], Any] = {}
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
