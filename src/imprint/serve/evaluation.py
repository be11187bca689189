"""Evaluation of the model on its own items by cross-validation."""

from typing import NamedTuple, cast

import numpy as np

from imprint.calibration import (
    Calibration,
    CrossValidation,
    OutOfFold,
    predict_out_of_fold,
)
from imprint.core.arrays import Array
from imprint.core.tree import LabelTree
from imprint.evaluation import Evaluation
from imprint.evaluation import evaluation as evaluation_of
from imprint.evaluation.inspection import duplicates
from imprint.kernels.scores import keep_winners
from imprint.serve.labelled import History, LabelledItem
from imprint.serve.model import (
    EmbeddingTable,
    ServedModel,
    changed_labels,
    fitted_items,
    rows_of,
)


class EvaluatedItems(NamedTuple):
    """Items, and the evaluation of a model that was fitted without them."""

    # empty for the training rows of an imported model, which come without their inputs
    items: tuple[LabelledItem, ...]
    result: Evaluation  # names the items by their paths


class ModelEvaluation(NamedTuple):
    """Out-of-fold predictions of a model's items, and what follows from them."""

    model: ServedModel
    folds: CrossValidation | None = None
    # in the order of the predictions; empty for an imported model
    items: tuple[LabelledItem, ...] = ()
    predictions: OutOfFold | None = None
    # groups of items that are nearly the same, by their numbers
    duplicates: tuple[tuple[int, ...], ...] = ()
    # None if no item is held out, or there is no model
    held_out: EvaluatedItems | None = None

    @property
    def calibration(self) -> Calibration | None:
        """Temperature, expected accuracy and p-values; None if there are too few
        items.
        """
        return (
            self.folds.calibration
            if self.folds is not None and self.predictions is not None
            else None
        )

    @property
    def why_uncalibrated(self) -> str:
        """The reason why there is no calibration, as a sentence."""
        if not self.model.basis.is_calibrated(self.model.history.labelled):
            return (
                "The imported model was fitted without calibration, and it has no"
                " examples to calibrate it from."
            )
        return "Two classes with two examples each are needed."

    def cross_validated(self) -> EvaluatedItems | None:
        """The evaluation of calibrated out-of-fold predictions; None if the model is
        not calibrated.
        """
        predictions, calibration = self.predictions, self.calibration
        if (
            predictions is None
            or calibration is None
            or not np.isfinite(calibration.expected_accuracy)
        ):
            return None
        rows = np.flatnonzero(predictions.assessed)
        P = keep_winners(
            calibration.probabilities(predictions.shares[rows]),
            predictions.scores[rows],
        )
        items = tuple(self.items[n] for n in rows) if self.items else ()
        return _evaluated(
            self.model,
            items,
            P,
            predictions.classes,
            predictions.classes[predictions.true[rows]],
        )


def calibrated(model: ServedModel, evaluation: ModelEvaluation) -> ServedModel:
    """A model with the newest calibration that fits it: the evaluation may be some
    changes older than the model.
    """
    head, predictions = model.head, evaluation.predictions
    if head is None or head.calibrated or predictions is None:
        return model
    same_classes = predictions.classes.tolist() == head.classes.tolist()
    return (
        model._replace(head=head.with_folds(evaluation.folds))
        if same_classes
        else model
    )


def evaluate(
    model: ServedModel, before: ModelEvaluation, rows: EmbeddingTable
) -> ModelEvaluation:
    """Predict every item by a model that was fitted without it: fitted ones by
    cross-validation, then held-out ones.
    """
    evaluation = _cross_validated(model, before, rows)
    items = tuple(
        i
        for i in model.history.labelled.items.values()
        if i.held_out and i.digest in rows
    )
    head = calibrated(model, evaluation).head
    if not items or head is None or model.tags is not None:
        return evaluation
    X, y = rows_of(items, rows)
    P = head.probabilities(head.scores(X))
    return evaluation._replace(held_out=_evaluated(model, items, P, head.classes, y))


def _evaluated(
    model: ServedModel,
    items: tuple[LabelledItem, ...],
    P: Array,
    classes: Array,
    y: Array,
) -> EvaluatedItems:
    """Compare the probabilities P (n, C) with the labels y (n,)."""
    names = [item.path for item in items] or [""] * len(y)
    is_tree = model.basis.empty.tree_of_labels
    tree = LabelTree.of(classes.tolist(), flat=not is_tree)
    return EvaluatedItems(items, evaluation_of(P, classes, y, names, tree=tree))


def _cross_validated(
    model: ServedModel, before: ModelEvaluation, rows: EmbeddingTable
) -> ModelEvaluation:
    """Out-of-fold predictions; only classes that have changed are fitted again."""
    labelled = model.history.labelled
    if not model.basis.is_calibrated(labelled):
        return ModelEvaluation(model)
    folds = _refitted_folds(model, before, rows)
    items = fitted_items(labelled, labelled.classes, rows)
    X, y = rows_of(items, rows)
    blocks = model.basis.empty.method.blocks
    groups = tuple(tuple(items[n].id for n in group) for group in duplicates(X, blocks))
    if labelled.origins():
        return ModelEvaluation(
            model, folds, (), folds.predictions if folds.held else None, groups
        )
    if len(folds.held) < 2 or len(items) <= len(folds.held):
        return ModelEvaluation(model, folds, duplicates=groups)
    classes, index = np.unique(y, return_inverse=True)
    predictions = predict_out_of_fold(
        folds.heads, X, index, folds.folds_of(X, y), classes, np.ones(len(items))
    )
    return ModelEvaluation(model, folds, tuple(items), predictions, groups)


def _refitted_folds(
    model: ServedModel, before: ModelEvaluation, rows: EmbeddingTable
) -> CrossValidation:
    """The cross-validation; classes that have changed are fitted again from their items
    and their imported rows.
    """
    basis, labelled = model.basis, model.history.labelled
    if model.head is not None and model.head.folds is not None:
        return cast(CrossValidation, model.head.folds)
    # there are no folds of a state that was not calibrated
    if before.model.basis is not basis or before.folds is None:
        before = ModelEvaluation(ServedModel(History(), basis))
    folds = before.folds or CrossValidation(basis.empty)
    changed = changed_labels(before.model.history.labelled, labelled)
    for label in changed:
        folds = folds.forget(label) if label in folds.held else folds
    folds = basis.with_imported(folds, labelled, changed)
    X, y = rows_of(fitted_items(labelled, changed, rows), rows)
    return folds.learn(X, y) if len(y) else folds
