"""The pages of `imprint evaluate`, `check` and `suggest`: one HTML file each, without
external resources.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import chain
from typing import Any

import numpy as np

from imprint.active import Suggestions
from imprint.core.arrays import Array
from imprint.core.errors import UnreadableInput, count, printable
from imprint.core.label_sets import as_text
from imprint.datasets import Split
from imprint.evaluation.evaluation import Evaluation, reliability
from imprint.evaluation.inspection import Inspection
from imprint.evaluation.labelled_rows import LabelledRows
from imprint.evaluation.page.document import content, document, shortened, with_contents
from imprint.evaluation.tags import TagEvaluation
from imprint.imprinter import Embedded, Imprinter
from imprint.kernels.rows import unit_rows

__all__ = ["evaluation_page", "inspection_page", "suggestion_page"]

MAX_MISTAKES = 100
MAX_PER_CELL = 12  # rows shown for one cell of the confusion matrix
MAX_MISLABELLED, MAX_GROUPS, MAX_COPIES, MAX_OUTLIERS = 120, 60, 6, 60
MAX_POINTS = 2000  # on one map, taken evenly from all rows
MAX_PROXIES = 20  # among which the closest training input is searched
# maximum relative distance between an embedding computed again and the one in the model
# file
TOLERANCE = 1e-2


def evaluation_page(
    title: str,
    result: Evaluation | TagEvaluation,
    rows: LabelledRows,
    model: Imprinter | None = None,
    training: Split | None = None,
) -> str:
    """The HTML of an evaluation.

    With a model, the map is that of its exemplars, and mistakes have the closest
    training inputs, read from `training`.
    """
    if isinstance(result, TagEvaluation):
        return _tag_page(title, result, rows)
    truth, predicted, confidence, wrong = (
        result.truth,
        result.predicted,
        result.confidence,
        result.wrong[:MAX_MISTAKES],
    )
    correct = truth == predicted
    # the rows to show: the most confident mistakes, the least confident correct ones
    cells: dict[str, list[int]] = {}
    for i in np.lexsort((np.where(correct, confidence, -confidence), correct)).tolist():
        rows_of_cell = cells.setdefault(f"{truth[i]},{predicted[i]}", [])
        if len(rows_of_cell) < MAX_PER_CELL:
            rows_of_cell.append(i)
    facts: dict[int, dict[str, Any]] = {
        i: {
            "predicted": printable(result.classes[predicted[i]]),
            "probability": round(float(confidence[i]), 4),
        }
        for i in [*wrong, *chain(*cells.values())]
    }
    X, y = rows.X, rows.y
    if model is not None and training is not None:
        answers = {i: result.classes[predicted[i]] for i in wrong}
        for i, exemplar in _closest_inputs(model, rows, answers, training).items():
            facts[i]["because"] = exemplar
    if model is not None and (
        parts := [exemplars.X for exemplars in model.state.exemplars.values()]
    ):
        X, y = (
            np.concatenate(parts),
            np.repeat(np.arange(len(parts)), list(map(len, parts))),
        )
    data = {
        "classes": [printable(label, 60) for label in result.classes],
        "unknown": [printable(label, 60) for label in result.unknown],
        "rows": result.rows,
        "confusion": result.confusion,
        "per_class": [[c.rows, c.recall, c.precision] for c in result.per_class],
        "calibration_error": result.calibration_error,
        "levels": [[level.level, level.accuracy] for level in result.levels],
        "reliability": reliability(confidence, correct),
        "mistakes": wrong,
        "all_mistakes": len(result.mistakes),
        "cells": cells,
        "map": _map_points(project(X, y), rows.X, truth, ~correct),
        **_page_items(rows, facts),
    }
    return document(title, result.summary(), "evaluate", data)


def _tag_page(title: str, result: TagEvaluation, rows: LabelledRows) -> str:
    facts = {}
    row_of = {path: i for i, path in enumerate(rows.paths)}
    for mistake in result.mistakes[:MAX_MISTAKES]:
        label, predicted = (
            printable(as_text(tags)) or "no label"
            for tags in (mistake.labels, mistake.predicted)
        )
        facts[row_of[mistake.path]] = {"label": label, "predicted": predicted}
    data = {
        "figures": [
            result.mean_average_precision,
            result.macro_f1,
            result.micro_f1,
            result.calibration_error,
        ],
        "per_label": [
            [printable(label, 60), *figures] for label, *figures in result.per_label
        ],
        "mistakes": list(facts),
        "all_mistakes": len(result.mistakes),
        "reliability": result.reliability,
        **_page_items(rows, facts),
    }
    return document(title, f"{result.summary()}, {result.rows:,} rows", "tags", data)


def inspection_page(title: str, result: Inspection, rows: LabelledRows) -> str:
    """The HTML of an inspection."""
    row_of = {path: i for i, path in enumerate(rows.paths)}
    labels, groups = np.unique(rows.y, return_inverse=True)
    suspects = {row_of[suspect.path]: suspect for suspect in result.mislabelled}
    listed = [
        {"item": i, "suggested": printable(s.suggested), "score": s.score}
        for i, s in suspects.items()
    ]
    copies = [
        [row_of[path] for path in group[:MAX_COPIES]]
        for group in result.duplicates[:MAX_GROUPS]
    ]
    outliers = [row_of[path] for path in result.outliers[:MAX_OUTLIERS]]
    shown = [*list(suspects)[:MAX_MISLABELLED], *chain(*copies), *outliers]
    data = {
        "classes": [printable(label, 60) for label in labels.tolist()],
        "mislabelled": listed[:MAX_MISLABELLED],
        "duplicates": [
            {"items": items, "all": len(group)}
            for items, group in zip(copies, result.duplicates)
        ],
        "outliers": outliers,
        "totals": [
            len(result.mislabelled),
            len(result.duplicates),
            len(result.outliers),
            len(result.unreadable),
        ],
        "map": _map_points(
            project(rows.X, rows.y),
            rows.X,
            groups,
            np.isin(np.arange(len(groups)), list(suspects)),
        ),
        **_page_items(rows, {i: {} for i in shown}),
    }
    classes = (
        count(len(labels), "class")
        if rows.tags is None
        else count(len(rows.tags), "label")
    )
    return document(title, f"{count(len(rows.y), 'row')} of {classes}", "check", data)


def suggestion_page(title: str, pool: Split, suggestions: Suggestions) -> str:
    """The HTML of suggested inputs, the most useful first."""
    chosen = zip(suggestions.tolist(), suggestions.reasons)
    items = {
        i: {"name": shortened(pool.names[i]), "reason": printable(reason, 120)}
        for i, reason in chosen
    }
    unreadable = [
        {"path": shortened(s.name), "reason": printable(s.reason)}
        for s in suggestions.unreadable
    ]
    data = {
        "items": [*with_contents(items, pool.inputs.__getitem__, pool.kind).values()],
        "unreadable": unreadable,
    }
    return document(
        title,
        f"{len(items):,} of {len(pool):,} inputs, the most useful first",
        "suggest",
        data,
    )


def _page_items(
    rows: LabelledRows, facts: Mapping[int, dict[str, Any]]
) -> dict[str, Any]:
    """The rows that a page shows, each with its name, label, content and facts; and the
    unreadable inputs.
    """
    names = {i: shortened(rows.relative(rows.paths[i])) for i in facts}
    items = {
        i: {"name": names[i], "label": printable(rows.y[i]), **more}
        for i, more in facts.items()
    }
    unreadable = [
        {"path": shortened(rows.relative(s.name)), "reason": printable(s.reason)}
        for s in rows.skipped
    ]
    return {
        "items": with_contents(items, rows.inputs, rows.kind),
        "unreadable": unreadable,
    }


def _map_points(
    plane: Callable[[Array], Array], X: Array, groups: Array, marked: Array
) -> dict[str, Any]:
    """Rows as [x, y, group], the marked ones last so that they are drawn on top;
    `groups` count from 0.
    """
    others = np.flatnonzero(~marked)
    size = min(max(MAX_POINTS - int(marked.sum()), 0), len(others))
    sample = np.linspace(0, len(others) - 1, size).round().astype(np.intp)
    rows = np.concatenate([others[sample], np.flatnonzero(marked)])
    points = [
        [float(f"{x:.4g}"), float(f"{y:.4g}"), int(groups[i])]
        for (x, y), i in zip(plane(X[rows]), rows)
    ]
    return {"points": points, "marked": int(marked.sum())}


def project(X: Array, y: Array) -> Callable[[Array], Array]:
    """A function from rows (n, d) to positions (n, 2) in the plane in which the class
    means are farthest apart.

    The axes are the principal axes of the class means, completed by those of the rows
    if there are fewer than three classes. The largest entry of each axis is positive.
    """
    U = unit_rows(X.astype(np.float64))
    labels, index = np.unique(y, return_inverse=True)
    means = np.zeros((len(labels), U.shape[1]))
    np.add.at(means, index, U)
    means /= np.bincount(index)[:, None]
    centre, axes = means.mean(axis=0), np.empty((U.shape[1], 0))
    for rows in (means, U):
        if missing := 2 - axes.shape[1]:
            residuals = rows - centre
            residuals = residuals - residuals @ axes @ axes.T
            _, values, vectors = np.linalg.svd(
                residuals - residuals.mean(axis=0), full_matrices=False
            )
            new = vectors[:missing][
                values[:missing] > 1e-9 * max(1.0, float(values[0]))
            ]
            largest = np.abs(new).argmax(axis=1)
            axes = np.concatenate(
                [axes, new.T * np.sign(new[np.arange(len(new)), largest])], axis=1
            )
    axes = np.pad(axes, ((0, 0), (0, 2 - axes.shape[1])))
    return lambda Q: np.asarray((unit_rows(Q.astype(np.float64)) - centre) @ axes)


def _closest_inputs(
    model: Imprinter, rows: LabelledRows, predicted: Mapping[int, Any], training: Split
) -> dict[int, dict[str, Any]]:
    """For each row in `predicted`, the training input nearest to the proxy that
    contributes most to the prediction.

    The result holds the name and label of the input, and its content if `training`
    contains an input of this name whose embedding equals the one in the model: no other
    input is shown.
    """
    keys: dict[int, tuple[Any, str]] = {}  # the label and the name of a training input
    for i, label in predicted.items():
        reasons = model.why(Embedded(rows.X[i : i + 1], ["row"], ()), MAX_PROXIES)
        if named := [
            (r.label, r.picture)
            for r in reasons
            if r.label == label and r.picture is not None
        ]:
            keys[i] = named[0]
    index = (
        {name: i for i, name in enumerate(training.captions)}
        if training.kind == rows.kind
        else {}
    )
    inputs: dict[tuple[Any, str], Any] = {}
    contents: dict[tuple[Any, str], dict[str, str]] = {}
    for key in dict.fromkeys(keys.values()):
        with suppress(KeyError, UnreadableInput):
            inputs[key] = training.inputs[index[key[1]]]
    if inputs:
        exemplars = [(model.state.exemplars[label], name) for label, name in inputs]
        stored = np.stack(
            [exemplar.X[exemplar.names.index(name)] for exemplar, name in exemplars]
        )
        distances = np.linalg.norm(model.look(list(inputs.values())).X - stored, axis=1)
        same = distances <= TOLERANCE * np.linalg.norm(stored, axis=1)
        contents = {
            key: content(item, rows.kind)
            for (key, item), equal in zip(inputs.items(), same)
            if equal
        }
    return {
        i: {"name": shortened(k[1]), "label": printable(k[0]), **contents.get(k, {})}
        for i, k in keys.items()
    }
