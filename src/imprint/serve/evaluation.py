"""Evaluation of the model on its own items by cross-validation, computed in the background."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from threading import Event
from typing import Any, NamedTuple

import numpy as np

from imprint.calibration import Calibration, CrossValidation, OutOfFold, predict_out_of_fold
from imprint.calibration.calibration import wilson
from imprint.calibration.caveats import caveats
from imprint.core.tree import LabelTree
from imprint.core.types import Array
from imprint.evaluation.evaluation import level_accuracies
from imprint.evaluation.inspection import duplicates
from imprint.evaluation.label_errors import label_errors
from imprint.serve.history import History
from imprint.serve.labelled import LabelledItem, LabelledSet, changed_labels
from imprint.serve.model import EmbeddingTable, ServedModel, in_order, probabilities, refitted_folds
from imprint.serve.workers import SupervisedThread

MOST_LISTED = 60
FEW = 5
"""Classes with fewer items are the first to need more."""
QUIET = 0.25  # seconds without a change before an evaluation starts
LATEST = 2.0  # seconds after which it starts in any case
NOT_IMPORTED = "The imported model was fitted without calibration, and it has no examples to calibrate it from."
TOO_FEW = "Two classes with two examples each are needed."


class HeldOut(NamedTuple):
    """Predictions of the items that were held out."""

    items: tuple[LabelledItem, ...]
    X: Array
    P: Array
    """Probabilities of the model's classes.  # (n, C)"""
    classes: Array


class ModelEvaluation(NamedTuple):
    """Out-of-fold predictions of a model's items, and what follows from them."""

    model: ServedModel | None = None
    folds: CrossValidation | None = None
    items: tuple[LabelledItem, ...] = ()
    """The items that were evaluated, in the order of the predictions; none of an imported model."""
    predictions: OutOfFold | None = None
    duplicates: tuple[tuple[int, ...], ...] = ()
    """Groups of numbers of items that are nearly the same."""
    held_out: HeldOut | None = None
    """None where no item is held out, or there is no model."""

    @property
    def history(self) -> History:
        """The state of the project that was evaluated."""
        return self.model.history if self.model else History(revision=-1)

    @property
    def calibration(self) -> Calibration | None:
        """Temperature, expected accuracy and p-values; None where there are too few items."""
        return self.folds.calibration if self.folds is not None and self.predictions is not None else None


def calibration_for(model: ServedModel, evaluation: ModelEvaluation) -> Calibration | None:
    """The newest calibration that fits a model, which may be some changes newer than the evaluation."""
    if model.folds is not None:
        return model.folds.calibration
    classes = [] if evaluation.predictions is None else evaluation.predictions.classes.tolist()
    return evaluation.calibration if model.head is not None and classes == model.head.classes.tolist() else None


def why_uncalibrated(labelled: LabelledSet, basis_folds: CrossValidation | None) -> str:
    """The reason why there is no calibration, as a sentence."""
    return NOT_IMPORTED if labelled.model is not None and basis_folds is None else TOO_FEW


def evaluate(model: ServedModel, before: ModelEvaluation, rows: EmbeddingTable) -> ModelEvaluation:
    """Predict every item by a model that was fitted without it: fitted ones by cross-validation, then held-out ones."""
    evaluation = _cross_validated(model, before, rows)
    items = tuple(i for i in model.history.labelled.items.values() if i.held_out and i.digest in rows)
    if model.head is None or not items:
        return evaluation
    X = np.stack([rows[i.digest] for i in items]).astype(model.head.dtype)
    P = probabilities(model.head, evaluation.calibration, model.head.scores(X))
    return evaluation._replace(held_out=HeldOut(items, X, P, np.asarray(model.head.classes)))


def _cross_validated(model: ServedModel, before: ModelEvaluation, rows: EmbeddingTable) -> ModelEvaluation:
    """Out-of-fold predictions; folds of classes that did not change are kept."""
    labelled, basis = model.history.labelled, model.basis
    if labelled.model is not None and basis.folds is None:
        return ModelEvaluation(model)
    folds, same = model.folds, before.model is not None and before.model.basis is basis and before.folds is not None
    if folds is None:
        labels = changed_labels(before.history.labelled, labelled) if same else set(labelled.classes)
        folds = refitted_folds(before.folds if same else None, basis, labelled, rows, labels)
    by_class = in_order(labelled, labelled.classes, rows)
    items = tuple(item for items in by_class.values() for item in items)
    X = np.stack([rows[i.digest] for i in items]) if items else np.empty((0, 0), np.float32)
    groups = tuple(tuple(items[n].id for n in group) for group in duplicates(X))
    if labelled.model is not None:
        return ModelEvaluation(model, folds, (), folds.answers if folds.held else None, groups)
    if len(folds.held) < 2 or len(items) <= len(folds.held):
        return ModelEvaluation(model, folds, duplicates=groups)
    y = np.array([i.label for i in items])
    classes, index = np.unique(y, return_inverse=True)
    predictions = predict_out_of_fold(folds.heads, X, index, folds.folds_of(X, y), classes, np.ones(len(items)))
    return ModelEvaluation(model, folds, items, predictions, groups)


def as_json(evaluation: ModelEvaluation, labelled: LabelledSet) -> dict[str, Any]:
    """What the page shows under Evaluate."""
    predictions, calibration = evaluation.predictions, evaluation.calibration
    twins = [list(group) for group in evaluation.duplicates[:MOST_LISTED]]
    common: dict[str, Any] = {
        "revision": evaluation.history.revision,
        "calibrated": calibration is not None,
        "duplicates": twins,
        "held_out": _held_out(evaluation.held_out, labelled) if evaluation.held_out else None,
    }
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


class Evaluator:
    """A thread that keeps the newest evaluation. It takes at most half of the time and never delays a change."""

    def __init__(self, rows: EmbeddingTable, model: Callable[[], ServedModel], tell: Callable[[], object]):
        self.evaluation = ModelEvaluation()
        self._rows, self._model, self._tell = rows, model, tell
        self._last = self._rested = 0.0
        self._hurry, self._closing = Event(), False
        self.thread: SupervisedThread[bool, ModelEvaluation] = SupervisedThread("evaluate", self._evaluate, 10_000)

    def look(self) -> None:
        """Evaluate soon, because something changed."""
        self._last = time.monotonic()
        self.thread.submit(False)

    def now(self) -> "Future[ModelEvaluation]":
        """The evaluation of the newest state, without a pause."""
        self._hurry.set()
        return self.thread.submit(True)

    def close(self) -> None:
        """Finish the evaluation under way, then stop."""
        self._closing = True
        self._hurry.set()
        self.thread.close()

    def _evaluate(self, urgent: list[bool]) -> list[ModelEvaluation | Exception]:
        if not any(urgent):
            self._pause()
        if self._closing:
            return [self.evaluation] * len(urgent)
        self._hurry.clear()
        model, started = self._model(), time.monotonic()
        if self.evaluation.model is not model:
            evaluation = evaluate(model, self.evaluation, self._rows)
            evaluation.calibration  # noqa: B018 - computed here, not when the first answer needs it
            self.evaluation = evaluation
            self._rested = 2 * time.monotonic() - started
            self._tell()
        return [self.evaluation] * len(urgent)

    def _pause(self) -> None:
        """Wait until there has been no change for a moment, or somebody asks for the evaluation."""
        latest = time.monotonic() + LATEST
        while not self._hurry.is_set():
            wait = max(min(self._last + QUIET, latest), self._rested) - time.monotonic()
            if wait <= 0:
                return
            self._hurry.wait(wait)
