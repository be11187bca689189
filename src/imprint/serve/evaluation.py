"""Evaluation of the model on its own items by cross-validation, computed in the background."""

import time
from collections.abc import Callable
from concurrent.futures import Future
from threading import Event
from typing import NamedTuple

import numpy as np

from imprint.calibration import Calibration, CrossValidation, OutOfFold, predict_out_of_fold
from imprint.core.tree import LabelTree
from imprint.core.types import Array
from imprint.evaluation import Evaluation
from imprint.evaluation import evaluation as evaluation_of
from imprint.evaluation.inspection import duplicates
from imprint.kernels.softmax import keep_winners
from imprint.serve.labelled import LabelledItem
from imprint.serve.model import EmbeddingTable, ServedModel, changed_labels, fitted_items, refitted_folds, rows_of
from imprint.serve.workers import SupervisedThread

PAUSE, MAX_WAIT = 0.25, 2.0  # an evaluation waits for a pause between changes, for a maximum time, in seconds
UNCALIBRATED_IMPORT = "The imported model was fitted without calibration, and it has no examples to calibrate it from."
TOO_FEW = "Two classes with two examples each are needed."


class PredictedItems(NamedTuple):
    """Labels, and the probabilities from a model that was fitted without these items."""

    items: tuple[LabelledItem, ...]  # empty for the training rows of an imported model, which come without their inputs
    y: Array  # (n,)
    P: Array  # (n, C)
    classes: Array  # (C,)

    def evaluation(self, flat: bool, names: list[str] | None = None) -> Evaluation:
        """Accuracy, confusion matrix and mistakes. Items are named by their numbers by default; flat is not a tree."""
        names = names or [str(item.id) for item in self.items] or [""] * len(self.y)
        tree = LabelTree.of(self.classes.tolist(), flat=flat)
        return evaluation_of(self.P, self.classes, self.y, names, tree=tree)


class ModelEvaluation(NamedTuple):
    """Out-of-fold predictions of a model's items, and what follows from them."""

    model: ServedModel
    folds: CrossValidation | None = None
    items: tuple[LabelledItem, ...] = ()  # in the order of the predictions; empty for an imported model
    predictions: OutOfFold | None = None
    duplicates: tuple[tuple[int, ...], ...] = ()  # groups of items that are nearly the same, by their numbers
    held_out: PredictedItems | None = None  # None if no item is held out, or there is no model

    @property
    def calibration(self) -> Calibration | None:
        """Temperature, expected accuracy and p-values; None if there are too few items."""
        return self.folds.calibration if self.folds is not None and self.predictions is not None else None

    @property
    def why_uncalibrated(self) -> str:
        """The reason why there is no calibration, as a sentence."""
        is_imported = self.model.history.labelled.model is not None
        return UNCALIBRATED_IMPORT if is_imported and self.model.basis.folds is None else TOO_FEW

    def cross_validated(self) -> PredictedItems | None:
        """The out-of-fold predictions with calibrated probabilities; None if the model is not calibrated."""
        predictions, calibration = self.predictions, self.calibration
        if predictions is None or calibration is None or not np.isfinite(calibration.expected_accuracy):
            return None
        rows = np.flatnonzero(predictions.assessed)
        P = keep_winners(calibration.probabilities(predictions.shares[rows]), predictions.scores[rows])
        items = tuple(self.items[n] for n in rows) if self.items else ()
        return PredictedItems(items, predictions.classes[predictions.true[rows]], P, predictions.classes)


def calibrated(model: ServedModel, evaluation: ModelEvaluation) -> ServedModel:
    """A model with the newest calibration that fits it: the evaluation may be some changes older than the model."""
    head, folds, predictions = model.head, model.folds, evaluation.predictions
    if head is not None and folds is None and predictions is not None:
        folds = evaluation.folds if predictions.classes.tolist() == head.classes.tolist() else None
    return model if head is None or folds is None else model._replace(head=head.with_folds(folds))


def evaluate(model: ServedModel, before: ModelEvaluation, rows: EmbeddingTable) -> ModelEvaluation:
    """Predict every item by a model that was fitted without it: fitted ones by cross-validation, then held-out ones."""
    evaluation = _cross_validated(model, before, rows)
    items = tuple(i for i in model.history.labelled.items.values() if i.held_out and i.digest in rows)
    head = calibrated(model, evaluation).head
    if not items or head is None or model.tags is not None:
        return evaluation
    X, y = rows_of(items, rows)
    P = head.probabilities(head.scores(X.astype(head.dtype)))
    return evaluation._replace(held_out=PredictedItems(items, y, P, head.classes))


def _cross_validated(model: ServedModel, before: ModelEvaluation, rows: EmbeddingTable) -> ModelEvaluation:
    """Out-of-fold predictions; only classes that have changed are fitted again."""
    labelled, basis = model.history.labelled, model.basis
    if labelled.model is not None and basis.folds is None:
        return ModelEvaluation(model)
    folds = model.folds
    if folds is None and before.folds is not None and before.model.basis is basis:
        changed = changed_labels(before.model.history.labelled, labelled)
        folds = refitted_folds(before.folds, model, rows, changed)
    folds = folds or refitted_folds(None, model, rows, labelled.classes)
    items = fitted_items(labelled, labelled.classes, rows)
    X, y = rows_of(items, rows)
    groups = tuple(tuple(items[n].id for n in group) for group in duplicates(X))
    if labelled.model is not None:
        return ModelEvaluation(model, folds, (), folds.answers if folds.held else None, groups)
    if len(folds.held) < 2 or len(items) <= len(folds.held):
        return ModelEvaluation(model, folds, duplicates=groups)
    classes, index = np.unique(y, return_inverse=True)
    predictions = predict_out_of_fold(folds.heads, X, index, folds.folds_of(X, y), classes, np.ones(len(items)))
    return ModelEvaluation(model, folds, tuple(items), predictions, groups)


class Evaluator:
    """A thread that keeps the newest evaluation. It takes at most half of the time and never delays a change."""

    def __init__(self, rows: EmbeddingTable, empty: ServedModel, model: Callable[[], ServedModel]):
        self.evaluation, self._rows, self._model = ModelEvaluation(empty), rows, model
        self._changed_at, self._rested_at, self._hurry, self._closing = 0.0, 0.0, Event(), False
        self.thread = SupervisedThread("evaluate", self._evaluate, 10_000)

    def submit(self, urgent: bool = False) -> "Future[ModelEvaluation]":
        """Queue an evaluation of the newest state. Unless it is urgent, it waits until changes pause."""
        self._changed_at = time.monotonic()
        if urgent:
            self._hurry.set()
        return self.thread.submit(urgent)

    def close(self) -> None:
        """Finish the running evaluation, then stop."""
        self._closing = True
        self._hurry.set()
        self.thread.close()

    def _evaluate(self, urgent: list[bool]) -> list[ModelEvaluation]:
        latest = time.monotonic() + MAX_WAIT
        while not any(urgent) and not self._hurry.is_set():
            wait = max(min(self._changed_at + PAUSE, latest), self._rested_at) - time.monotonic()
            if wait <= 0:
                break
            self._hurry.wait(wait)
        if not self._closing:
            self._hurry.clear()
            model, started = self._model(), time.monotonic()
            if self.evaluation.model is not model:
                evaluation = evaluate(model, self.evaluation, self._rows)
                evaluation.calibration  # noqa: B018 - computed here, not when the first answer needs it
                self.evaluation = evaluation
                self._rested_at = 2 * time.monotonic() - started  # as long as the evaluation took
        return [self.evaluation] * len(urgent)
