"""The pages of `imprint evaluate`, `check` and `suggest`: one HTML file each, without
external resources.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from imprint.active import Suggestions
from imprint.core.arrays import Array
from imprint.core.errors import ParameterError, UnreadableInput, count, printable
from imprint.core.label_sets import as_text
from imprint.datasets import Split
from imprint.evaluation.evaluation import Evaluation, Label, reliability
from imprint.evaluation.inspection import Inspection
from imprint.evaluation.labelled_rows import LabelledRows
from imprint.evaluation.page.document import (
    Item,
    Items,
    content,
    document,
    shortened,
    with_contents,
)
from imprint.evaluation.tags import TagEvaluation
from imprint.imprinter import Embedded, Imprinter
from imprint.kernels.rows import unit_rows

__all__ = ["evaluation_page", "inspection_page", "suggestion_page"]

# How many rows a page shows is a matter of taste: what a person looks through at once.
MAX_MISTAKES = 100
MAX_PLACES = 60  # mistakes that show where; each takes about 0.2 s
MAX_PASSES = 40  # of the network for one mistake: words of a text, and no image
MAX_PER_CELL = 12  # rows shown for one cell of the confusion matrix
MAX_MISLABELLED = 120
MAX_GROUPS = 60  # of duplicates
MAX_COPIES = 6  # of one group
MAX_OUTLIERS = 60
MAX_POINTS = 2000  # on one map, taken evenly from all rows
MAX_NAME = 60  # characters of the name of a class
MAX_GUESSES = 3  # most probable classes of a suggested input
MAX_PROXIES = 20  # among which the closest training input is searched
# maximum relative distance between an embedding computed again and the one in the model
# file
TOLERANCE = 1e-2

Projection: TypeAlias = Callable[[Array], Array]


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
    wrong = result.wrong[:MAX_MISTAKES]
    correct = result.truth == result.predicted
    cells = _cells(result, correct)
    facts: Items = {}
    for i in [*wrong, *chain.from_iterable(cells.values())]:
        facts[i] = {
            "predicted": printable(result.classes[result.predicted[i]]),
            "probability": round(float(result.confidence[i]), 4),
        }
    if model is not None:
        reasons = _reasons(model, rows, result, training)
        for i, reason in reasons.items():
            facts[i] |= reason
    plane = _plane(rows, model)
    data = {
        "classes": [printable(label, MAX_NAME) for label in result.classes],
        "unknown": [printable(label, MAX_NAME) for label in result.unknown],
        "rows": result.rows,
        "confusion": result.confusion,
        "per_class": [[c.rows, c.recall, c.precision] for c in result.per_class],
        "calibration_error": result.calibration_error,
        "levels": [[level.level, level.accuracy] for level in result.levels],
        "reliability": reliability(result.confidence, correct),
        "mistakes": wrong,
        "all_mistakes": len(result.mistakes),
        "cells": cells,
        "map": _map_points(plane, rows.X, result.truth, ~correct),
        **_page_items(rows, facts),
    }
    return document(title, result.summary(), "evaluate", data)


def _reasons(
    model: Imprinter,
    rows: LabelledRows,
    result: Evaluation,
    training: Split | None,
) -> Items:
    """For the mistakes that a page shows: what speaks for the predicted class, and the
    closest training input.
    """
    wrong = result.wrong[:MAX_MISTAKES]
    reasons: Items = {i: {} for i in wrong}
    places = _places(model, rows, result, wrong[:MAX_PLACES])
    for i, where in places.items():
        reasons[i] |= where
    if training is not None:
        answers = {i: result.classes[result.predicted[i]] for i in wrong}
        closest = _closest_inputs(model, rows, answers, training)
        for i, exemplar in closest.items():
            reasons[i]["because"] = exemplar
    return reasons


def _places(
    model: Imprinter, rows: LabelledRows, result: Evaluation, wrong: Sequence[int]
) -> Items:
    """For mistakes: what speaks for the predicted class and against the right one.

    `where` is a transparent image, `words` are the words of a text with their strength
    from -1 to 1.
    """
    places: Items = {}
    if model.embedder.kind != rows.kind or not rows.kind.needs_backbone:
        return places
    for i in wrong:
        classes = result.classes[result.predicted[i]], result.classes[result.truth[i]]
        # the model may lack the class, and the file may have been deleted since
        with suppress(ParameterError, UnreadableInput):
            explanation = model.explain_read(
                rows.inputs(i),
                label=classes[0],
                against=classes[1],
                max_passes=MAX_PASSES,
            )
            if explanation.image is not None:
                places[i] = {"where": explanation.overlay_uri()}
            elif rows.kind.typed:
                strengths = explanation.strengths.round(2).tolist()
                words = [printable(name, MAX_NAME) for name in explanation.names]
                places[i] = {"words": [list(pair) for pair in zip(words, strengths)]}
    return places


def _plane(rows: LabelledRows, model: Imprinter | None) -> Projection:
    """The plane of a map: that of a model's exemplars, or of the rows."""
    if model is None or not model.state.exemplars:
        return project(rows.X, rows.y)
    parts = [exemplars.X for exemplars in model.state.exemplars.values()]
    sizes = [len(part) for part in parts]
    classes = np.repeat(np.arange(len(parts)), sizes)
    return project(np.concatenate(parts), classes)


def _cells(result: Evaluation, correct: Array) -> dict[str, list[int]]:
    """The rows to show for each cell of the confusion matrix: the most confident
    mistakes, the least confident correct ones.
    """
    confidence = result.confidence
    interest = np.where(correct, confidence, -confidence)
    cells: dict[str, list[int]] = {}
    for i in np.lexsort((interest, correct)).tolist():
        cell = f"{result.truth[i]},{result.predicted[i]}"
        rows_of_cell = cells.setdefault(cell, [])
        if len(rows_of_cell) < MAX_PER_CELL:
            rows_of_cell.append(i)
    return cells


def _tag_page(
    title: str,
    result: TagEvaluation,
    rows: LabelledRows,
) -> str:
    """The HTML of an evaluation of tags."""
    facts: Items = {}
    row_of = _row_of(rows)
    for mistake in result.mistakes[:MAX_MISTAKES]:
        facts[row_of[mistake.path]] = {
            "label": printable(as_text(mistake.labels)) or "no label",
            "predicted": printable(as_text(mistake.predicted)) or "no label",
        }
    per_label = []
    for label, *figures in result.per_label:
        per_label.append([printable(label, MAX_NAME), *figures])
    data = {
        "figures": [
            result.mean_average_precision,
            result.macro_f1,
            result.micro_f1,
            result.calibration_error,
        ],
        "per_label": per_label,
        "mistakes": list(facts),
        "all_mistakes": len(result.mistakes),
        "reliability": result.reliability,
        **_page_items(rows, facts),
    }
    return document(title, f"{result.summary()}, {result.rows:,} rows", "tags", data)


def _row_of(rows: LabelledRows) -> dict[str, int]:
    """The position of each row, by its path."""
    return {path: i for i, path in enumerate(rows.paths)}


def inspection_page(
    title: str,
    result: Inspection,
    rows: LabelledRows,
) -> str:
    """The HTML of an inspection."""
    row_of = _row_of(rows)
    labels, groups = np.unique(rows.y, return_inverse=True)
    suspects = [row_of[suspect.path] for suspect in result.mislabelled]
    mislabelled = []
    for i, suspect in zip(suspects, result.mislabelled[:MAX_MISLABELLED]):
        suggested = printable(suspect.suggested)
        mislabelled.append({"item": i, "suggested": suggested, "score": suspect.score})
    duplicates = []
    copies: list[int] = []
    for group in result.duplicates[:MAX_GROUPS]:
        items = [row_of[path] for path in group[:MAX_COPIES]]
        copies += items
        duplicates.append({"items": items, "all": len(group)})
    outliers = [row_of[path] for path in result.outliers[:MAX_OUTLIERS]]
    shown: Items = {}
    for i in [*suspects[:MAX_MISLABELLED], *copies, *outliers]:
        shown[i] = {}
    is_suspect = np.isin(np.arange(len(groups)), suspects)
    data = {
        "classes": [printable(label, MAX_NAME) for label in labels.tolist()],
        "mislabelled": mislabelled,
        "duplicates": duplicates,
        "outliers": outliers,
        "totals": [
            len(result.mislabelled),
            len(result.duplicates),
            len(result.outliers),
            len(result.unreadable),
        ],
        "map": _map_points(project(rows.X, rows.y), rows.X, groups, is_suspect),
        **_page_items(rows, shown),
    }
    classes = count(len(labels), "class")
    if rows.tags is not None:
        classes = count(len(rows.tags), "label")
    return document(title, f"{count(len(rows.y), 'row')} of {classes}", "check", data)


def suggestion_page(
    title: str,
    pool: Split,
    suggestions: Suggestions,
    rows: Embedded | None = None,
    model: Imprinter | None = None,
    captions: Sequence[str] | None = None,
) -> str:
    """The HTML of suggested inputs, the most useful first.

    With the embedded `rows` of the pool, it has a map of them; with a fitted model, the
    most probable classes of each input.
    """
    captions = pool.names if captions is None else captions
    chosen = suggestions.tolist()
    items: Items = {}
    for i, reason in zip(chosen, suggestions.reasons):
        items[i] = {
            "name": shortened(captions[i]),
            "reason": printable(reason, 120),
        }
    contents = with_contents(items, pool.inputs.__getitem__, pool.kind)
    unreadable = []
    for item in suggestions.unreadable:
        reason = printable(item.reason)
        unreadable.append({"path": shortened(item.name), "reason": reason})
    data = {
        "items": list(contents.values()),
        "pool": len(pool),
        "unreadable": unreadable,
        "classes": [],
    }
    if rows is not None and len(rows.X):
        data |= _pool_facts(rows, chosen, model, contents)
    lead = f"{len(items):,} of {pool.kind.count(len(pool))}, the most useful first"
    return document(title, lead, "suggest", data)


def _pool_facts(
    rows: Embedded,
    chosen: Sequence[int],
    model: Imprinter | None,
    items: Items,
) -> Item:
    """The map of a pool, in the colours of the predicted classes; the most probable
    classes of the chosen inputs are added to their items.
    """
    groups = np.zeros(len(rows.X), dtype=np.intp)
    classes = ["input"]
    row_of = {number: row for row, number in enumerate(rows.readable.tolist())}
    if model is not None and model.fitted:
        head = model.state.head
        labels, probabilities = head.class_probabilities(rows.X)
        groups = probabilities.argmax(axis=1)
        classes = [printable(label, MAX_NAME) for label in labels]
        for number in chosen:
            shares = probabilities[row_of[number]]
            order = np.argsort(-shares, kind="stable")[:MAX_GUESSES].tolist()
            # Four digits are finer than a page shows.
            top = [[classes[c], round(float(shares[c]), 4)] for c in order]
            items[number]["top"] = top
    marked = np.zeros(len(rows.X), dtype=bool)
    marked[[row_of[number] for number in chosen]] = True
    plane = project(rows.X, groups)
    return {"classes": classes, "map": _map_points(plane, rows.X, groups, marked)}


def _page_items(rows: LabelledRows, facts: Mapping[int, Item]) -> Item:
    """The rows that a page shows, each with its name, label, content and facts; and the
    unreadable inputs.
    """
    items: Items = {}
    for i, more in facts.items():
        items[i] = {
            "name": shortened(rows.relative(rows.paths[i])),
            "label": printable(rows.y[i]),
            **more,
        }
    unreadable = []
    for item in rows.skipped:
        path = shortened(rows.relative(item.name))
        unreadable.append({"path": path, "reason": printable(item.reason)})
    return {
        "items": with_contents(items, rows.inputs, rows.kind),
        "unreadable": unreadable,
    }


def _map_points(
    plane: Projection,
    X: Array,
    groups: Array,
    marked: Array,
) -> Item:
    """Rows as [x, y, group], the marked ones last so that they are drawn on top;
    `groups` count from 0.
    """
    others = np.flatnonzero(~marked)
    free = max(MAX_POINTS - int(marked.sum()), 0)
    size = min(free, len(others))
    sample = np.linspace(0, len(others) - 1, size).round().astype(np.intp)
    rows = np.concatenate([others[sample], np.flatnonzero(marked)])
    points = []
    for (x, y), i in zip(plane(X[rows]), rows):
        # Four digits are finer than a pixel.
        points.append([float(f"{x:.4g}"), float(f"{y:.4g}"), int(groups[i])])
    return {"points": points, "marked": int(marked.sum())}


def project(X: Array, y: Array) -> Projection:
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
    centre = means.mean(axis=0)
    axes = np.empty((U.shape[1], 0))
    for rows in (means, U):
        missing = 2 - axes.shape[1]
        if missing:
            new = _principal_axes(rows - centre, axes, missing)
            axes = np.concatenate([axes, new], axis=1)
    # Rows that are all equal have no axes.
    axes = np.pad(axes, ((0, 0), (0, 2 - axes.shape[1])))

    def positions(Q: Array) -> Array:
        return np.asarray((unit_rows(Q.astype(np.float64)) - centre) @ axes)

    return positions


def _principal_axes(
    rows: Array,
    axes: Array,
    number: int,
) -> Array:
    """Principal axes of rows that are orthogonal to some other axes, as columns; fewer
    than the number if the rows do not vary further.
    """
    residuals = rows - rows @ axes @ axes.T
    centred = residuals - residuals.mean(axis=0)
    _, values, vectors = np.linalg.svd(centred, full_matrices=False)
    # Rows have length one: smaller values are rounding.
    is_significant = values[:number] > 1e-9 * max(1.0, float(values[0]))
    new = vectors[:number][is_significant]
    # The sign of a singular vector is arbitrary.
    largest = np.abs(new).argmax(axis=1)
    signs = np.sign(new[np.arange(len(new)), largest])
    oriented: Array = new.T * signs
    return oriented


ExemplarKey: TypeAlias = tuple[Label, str]
"""The label and the name of a training input."""


def _closest_inputs(
    model: Imprinter,
    rows: LabelledRows,
    predicted: Mapping[int, Label],
    training: Split,
) -> Items:
    """For each row in `predicted`, the training input nearest to the proxy that
    contributes most to the prediction.

    The result holds the name and label of the input, and its content if `training`
    contains an input of this name whose embedding equals the one in the model: no other
    input is shown.
    """
    keys: dict[int, ExemplarKey] = {}
    for i, label in predicted.items():
        row = Embedded(rows.X[i : i + 1], ["row"], ())
        for reason in model.why(row, MAX_PROXIES):
            if reason.label == label and reason.image is not None:
                keys[i] = (reason.label, reason.image)
                break
    contents: dict[ExemplarKey, dict[str, str]] = {}
    if training.kind == rows.kind:
        contents = _training_contents(
            model, list(dict.fromkeys(keys.values())), training
        )
    closest: Items = {}
    for i, key in keys.items():
        label, name = key
        text = {"name": shortened(name), "label": printable(label)}
        closest[i] = {**text, **contents.get(key, {})}
    return closest


def _training_contents(
    model: Imprinter,
    keys: Sequence[ExemplarKey],
    training: Split,
) -> dict[ExemplarKey, dict[str, str]]:
    """The contents of training inputs whose embeddings equal those in the model."""
    index = {name: i for i, name in enumerate(training.captions)}
    inputs: dict[ExemplarKey, Any] = {}
    for key in keys:
        _, name = key
        # An input may have been deleted since.
        with suppress(KeyError, UnreadableInput):
            inputs[key] = training.inputs[index[name]]
    if not inputs:
        return {}
    rows = []
    for label, name in inputs:
        exemplars = model.state.exemplars[label]
        rows.append(exemplars.X[exemplars.names.index(name)])
    stored = np.stack(rows)
    computed = model.look(list(inputs.values())).X
    distances = np.linalg.norm(computed - stored, axis=1)
    is_equal = distances <= TOLERANCE * np.linalg.norm(stored, axis=1)
    contents = {}
    for (key, item), equal in zip(inputs.items(), is_equal):
        if equal:
            contents[key] = content(item, training.kind)
    return contents
