"""Predictions of held-out rows by the models of the folds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from imprint.calibration.calibration import Outcomes, OutOfFold
from imprint.calibration.held import HeldRows, folds_of
from imprint.core.arrays import Array
from imprint.core.errors import TooFewProxiesError
from imprint.core.labels import positions
from imprint.head import Head


class HeldOut(NamedTuple):
    """Rows that models of folds predict, of several classes."""

    X: Array  # (n, d)
    true: Array  # (n,) the index of the class of each row
    fold: Array  # (n,) the fold whose model predicts the row
    weight: Array  # (n,) the number of rows of its class that each row represents

    @classmethod
    def of(cls, held: Sequence[HeldRows], chosen: Sequence[Array]) -> "HeldOut":
        """Some of the held rows of each class, which represent all its rows."""
        X = list[Array]()
        fold = list[Array]()
        weight = list[Array]()
        for of_class, index in zip(held, chosen):
            X.append(of_class.rows[index])
            fold.append(of_class.fold[index])
            weight.append(_scaled(of_class.weight[index], of_class.total))
        return cls._joined(X, fold, weight)

    @classmethod
    def _joined(
        cls,
        X: list[Array],
        fold: list[Array],
        weight: list[Array],
    ) -> "HeldOut":
        """The rows of several classes."""
        sizes = [len(rows) for rows in X]
        return cls(
            np.concatenate(X),
            np.repeat(np.arange(len(X)), sizes),
            np.concatenate(fold),
            np.concatenate(weight),
        )

    @classmethod
    def all_of(
        cls,
        held: Mapping[Any, HeldRows],
        seed: int,
        folds: int,
        dtype: Any,
    ) -> "HeldOut":
        """Every row of the first folds that the classes still have, further rows
        included.
        """
        X = list[Array]()
        fold = list[Array]()
        weight = list[Array]()
        for label in sorted(held):
            of_class = held[label]
            X_of_class = of_class.rows
            fold_of_class = of_class.fold
            weight_of_class = of_class.weight
            if of_class.further is not None:
                further = of_class.further
                every_fold = folds_of(seed, label, len(of_class.digests))
                X_of_class = np.concatenate([X_of_class, further.rows(dtype)])
                fold_of_class = np.concatenate(
                    [fold_of_class, every_fold[further.number]]
                )
                weight_of_class = np.concatenate([weight_of_class, further.weight])
            predicted = fold_of_class < folds
            X.append(X_of_class[predicted])
            fold.append(fold_of_class[predicted])
            weight.append(_scaled(weight_of_class[predicted], of_class.total))
        return cls._joined(X, fold, weight)


def _scaled(weight: Array, total: float) -> Array:
    """Weights with the same proportions and this total."""
    return np.asarray(weight * (total / weight.sum()))


class FoldPredictions:
    """Out-of-fold predictions, which `add` fills in fold by fold."""

    def __init__(self, rows: HeldOut, classes: Array) -> None:
        self.rows = rows
        self.classes = classes
        shape = len(rows.X), len(classes)
        self.scores = np.full(shape, -np.inf)
        self.shares = np.zeros(shape)
        self.assessed = np.zeros(len(rows.X), dtype=bool)
        self.doubt: Array | None = None
        self.deviation = 1.0

    def add(self, head: Head, f: int) -> None:
        """Predict the rows of fold `f` by the model that was fitted without them."""
        rows = np.flatnonzero(self.rows.fold == f)
        self.deviation = head.aggregator.temperature_deviation
        S = scores_of(head, self.rows.X[rows])
        if S is None:
            return
        columns = positions(head.classes, self.classes.tolist())
        self.scores[np.ix_(rows, columns)] = S
        shares = head.aggregator.probabilities(S, head.prepared)
        self.shares[np.ix_(rows, columns)] = shares
        self.assessed[rows] = np.isin(self.rows.true[rows], columns)
        doubt = head.doubt(self.rows.X[rows])
        if doubt is not None:
            if self.doubt is None:
                self.doubt = np.zeros(len(self.rows.X))
            self.doubt[rows] = doubt

    def result(self) -> OutOfFold:
        """The predictions so far."""
        return OutOfFold(
            self.classes,
            self.rows.true,
            self.rows.fold,
            self.scores,
            self.shares,
            self.doubt,
            self.assessed,
            self.rows.weight,
            self.deviation,
            np.zeros(len(self.rows.X), dtype=bool),
        )


class FoldOutcomes:
    """Whether rows are predicted correctly, which `add` fills in fold by fold."""

    def __init__(
        self,
        rows: HeldOut,
        classes: Array,
        folds: int,
    ) -> None:
        self.rows = rows
        self.classes = classes
        self.folds = folds
        self.assessed = np.zeros(len(rows.X), dtype=bool)
        self.correct = np.zeros(len(rows.X), dtype=bool)

    def add(self, head: Head, f: int) -> None:
        """Predict the rows of fold `f` by the model that was fitted without them."""
        rows = np.flatnonzero(self.rows.fold == f)
        S = scores_of(head, self.rows.X[rows])
        if S is None:
            return
        columns = np.asarray(positions(head.classes, self.classes.tolist()))
        true = self.rows.true[rows]
        self.assessed[rows] = np.isin(true, columns)
        self.correct[rows] = columns[S.argmax(axis=1)] == true

    def result(self) -> Outcomes:
        """The outcomes so far."""
        return Outcomes(
            self.rows.true,
            self.rows.weight,
            self.assessed,
            self.correct,
            self.folds,
        )


def scores_of(head: Head, X: Array) -> Array | None:
    """The class scores of rows; None if there are no rows, or the head cannot
    decide.
    """
    if not len(X) or not len(head):
        return None
    try:
        return np.asarray(head.scores(X))
    except TooFewProxiesError:
        return None


def predict_out_of_fold(
    heads: Iterable[Head],
    X: Array,
    true: Array,
    fold: Array,
    classes: Array,
    weight: Array,
) -> OutOfFold:
    """The predictions of every head for the rows of its fold."""
    predictions = FoldPredictions(HeldOut(X, true, fold, weight), classes)
    for f, head in enumerate(heads):
        # the copy frees its preparation, which may be large
        predictions.add(replace(head), f)
    return predictions.result()
