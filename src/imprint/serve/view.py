"""What the page shows, as JSON: the state of a project, and the evaluation of its model."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from imprint.calibration import OutOfFold
from imprint.calibration.calibration import wilson
from imprint.calibration.caveats import caveats
from imprint.core.tree import LabelTree
from imprint.core.types import Array
from imprint.evaluation.evaluation import level_accuracies
from imprint.evaluation.label_errors import label_errors
from imprint.serve.evaluation import HeldOut, ModelEvaluation, why_uncalibrated
from imprint.serve.export import picture_input
from imprint.serve.labelled import LabelledItem, LabelledSet
from imprint.serve.tags import tag_figures

if TYPE_CHECKING:
    from imprint.serve.project import Project

MOST_LISTED = 60
FEW = 5
"""Classes with fewer items are the first to need more."""


def state(project: "Project") -> dict[str, Any]:
    """The classes with their items, and what the page needs to know about the project."""
    history, modality = project.history, project.modality
    classes = [
        {
            "label": label,
            "opened": history.labelled.classes[label] is not None,
            "items": [[i.id, i.text or i.name, i.digest[:8], i.held_out, i.text is not None] for i in items],
        }
        for label, items in history.labelled.by_class().items()
    ]
    return {
        "project": project.folder.name,
        "name": project.name,
        "input": picture_input(project.backbone),
        "revision": history.revision,
        "modality": modality.name,
        "noun": modality.noun,
        "typed": modality.typed,
        "describes": project.backbone.embeds_names,
        "suffixes": sorted(modality.suffixes()),
        "backbone": project.backbone.record.name,
        "undo": history.can_undo,
        "redo": history.can_redo,
        "classes": classes,
    }


def evaluated(evaluation: ModelEvaluation, labelled: LabelledSet) -> dict[str, Any]:
    """What the page shows under Evaluate."""
    predictions, calibration = evaluation.predictions, evaluation.calibration
    twins = [list(group) for group in evaluation.duplicates[:MOST_LISTED]]
    common: dict[str, Any] = {
        "revision": evaluation.history.revision,
        "calibrated": calibration is not None,
        "duplicates": twins,
        "held_out": _held_out(evaluation.held_out, labelled) if evaluation.held_out else None,
    }
    if evaluation.model is not None and evaluation.model.tags is not None:
        return {**common, **tag_figures(evaluation.model.tags)}
    if predictions is None or calibration is None or not np.isfinite(calibration.expected_accuracy):
        basis_folds = evaluation.model.basis.folds if evaluation.model else None
        reason = why_uncalibrated(labelled, basis_folds)
        return {**common, "ready": False, "reason": reason, "advice": _advice(labelled, {}, [])}
    classes, P = predictions.classes.tolist(), calibration.probabilities(predictions.shares)
    truth, winner = (index[predictions.assessed] for index in (predictions.own, predictions.winners))
    order, counts = _confusion([classes[c] for c in truth], [classes[c] for c in winner], labelled)
    wrong = np.flatnonzero(predictions.assessed & ~predictions.right).tolist() if evaluation.items else []
    winners = predictions.winners
    mistakes = [_mistake(evaluation.items[n], classes[winners[n]], P[n, winners[n]]) for n in wrong]
    basis, rows = evaluation.model.basis if evaluation.model else None, predictions.assessed
    tree = LabelTree.of(classes, flat=basis is not None and basis.flat)
    levels = level_accuracies(P[rows], tree, predictions.classes[predictions.own[rows]].tolist())
    recall = {k: counts[c, c] / counts[c].sum() for c, k in enumerate(order) if counts[c].sum()}
    return {
        **common,
        "ready": True,
        "rows": int(predictions.assessed.sum()),
        "accuracy": calibration.expected_accuracy,
        "interval": list(calibration.expected_interval),
        "caveats": caveats(evaluation.folds, "examples") if evaluation.folds else [],
        "levels": [one._asdict() for one in levels],
        "classes": order,
        "confusion": counts.tolist(),
        "mistakes": mistakes,
        "mislabelled": _mislabelled(evaluation, predictions, P)[:MOST_LISTED] if evaluation.items else [],
        "advice": _advice(labelled, recall, mistakes),
    }


def _confusion(truth: list[str], predicted: list[str], labelled: LabelledSet) -> tuple[list[str], Array]:
    """The confusion matrix, with the classes in the order in which they were added."""
    added = {label: n for n, label in enumerate(labelled.classes)}
    classes = sorted({*truth, *predicted}, key=lambda label: (added.get(label, len(added)), label))
    index = {label: n for n, label in enumerate(classes)}
    counts = np.zeros((len(classes), len(classes)), dtype=int)
    np.add.at(counts, ([index[label] for label in truth], [index[label] for label in predicted]), 1)
    return classes, counts


def _held_out(held_out: HeldOut, labelled: LabelledSet) -> dict[str, Any]:
    """Accuracy, confusion matrix and mistakes on the items that were held out."""
    winners, best = held_out.P.argmax(axis=1), held_out.P.max(axis=1)
    predicted, truth = held_out.classes[winners].tolist(), [i.label for i in held_out.items]
    classes, counts = _confusion(truth, predicted, labelled)
    accuracy = float(np.trace(counts) / len(truth))
    wrong = [n for n, label in enumerate(truth) if predicted[n] != label]
    return {
        "rows": len(truth),
        "accuracy": accuracy,
        "interval": list(wilson(accuracy, len(truth))),
        "classes": classes,
        "confusion": counts.tolist(),
        "mistakes": [_mistake(held_out.items[n], predicted[n], best[n]) for n in wrong],
    }


def _mislabelled(evaluation: ModelEvaluation, predictions: OutOfFold, P: Array) -> list[dict[str, Any]]:
    """Items that are likely in the wrong class, the most suspect first."""
    suspects = label_errors(predictions.scores, predictions.shares, P, predictions.own, predictions.assessed)
    classes = predictions.classes.tolist()
    return [_mistake(evaluation.items[n], classes[c], P[n, c]) for n, c, _ in suspects]


def _mistake(item: LabelledItem, predicted: str, probability: Array) -> dict[str, Any]:
    return {"id": item.id, "label": item.label, "predicted": predicted, "probability": round(float(probability), 4)}


def _advice(labelled: LabelledSet, recall: Mapping[str, float], mistakes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What would help most, the first thing first: classes with few items, then classes with low recall."""
    sizes = {
        label: sum(not item.held_out for item in items)
        for label, items in labelled.by_class().items()
        if labelled.classes[label] is None
    }
    advice: list[dict[str, Any]] = [] if len(labelled.classes) > 1 else [{"kind": "class"}]
    few = sorted((n, label) for label, n in sizes.items() if n < FEW)
    advice += [{"kind": "few", "label": label, "count": n} for n, label in few[:3]]
    for label, share in sorted(recall.items(), key=lambda pair: pair[1]):
        confused = Counter(m["predicted"] for m in mistakes if m["label"] == label).most_common(1)
        if share < 0.9 and confused and sizes.get(label, 0) >= FEW:
            advice.append({"kind": "confused", "label": label, "with": confused[0][0], "recall": float(share)})
    return advice[:5]
