"""From out-of-fold predictions to a calibration: temperature, expected accuracy and conformal p-values."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from imprint.calibration.conformal import ConformalScore, conformal_score
from imprint.calibration.temperature import fit_temperature, scale
from imprint.core.types import Array

NORMAL_QUANTILE = 1.959964  # two-sided, 95 %
DEPENDENCE = 2.25
"""The variance of the accuracy over five folds compared with independent rows: 1 + 5 n_test / n_train (Nadeau and
Bengio, 2003)."""
LEARNING_POWER = 0.4
FLATTENS_AT = 2
"""The power by which the error falls with the rows of a class; above this number of rows, it falls more slowly."""

ENOUGH_NEW_ROWS = 100
"""The number of held-out rows without near copies above which the p-values are computed from these alone."""


class OutOfFold(NamedTuple):
    """Predictions of many rows, each by a model that was fitted without the row's fold.

    If a class has no row outside a fold, the model of that fold lacks the class: its score is -inf and its share 0. The
    rows of the class in that fold are then not `assessed`.
    """

    classes: Array  # (C,) labels, sorted
    true: Array  # (n,) the index of each row's label in `classes`
    fold: Array  # (n,) the fold whose model did not see the row
    scores: Array  # (n, C)
    shares: Array  # (n, C) the aggregator's probabilities, not calibrated
    doubt: Array | None  # (n,)
    assessed: Array  # (n,)
    weight: Array  # (n,) the number of rows of its class that each row represents
    deviation: float  # the prior standard deviation of the logarithm of the temperature
    near_copy: Array  # (n,) whether a row of the same class in another fold is almost equal

    @property
    def winners(self) -> Array:
        """The index in `classes` of every row's largest score.  # (n,)"""
        return np.asarray(self.scores.argmax(axis=1))

    @property
    def correct(self) -> Array:
        """Whether the largest score is that of the row's class.  # (n,)"""
        return np.asarray(self.winners == self.true)

    def probabilities(self) -> Array:
        """Calibrated probabilities of every row.  # (n, C)"""
        return np.asarray(calibrate(self).probabilities(self.shares))


@dataclass(frozen=True, eq=False)
class Calibration:
    """The calibration of a model by out-of-fold predictions. `expected_accuracy` is NaN if no row was assessed."""

    temperature: float
    floor: float
    expected_accuracy: float
    expected_interval: tuple[float, float]
    conformal: ConformalScore

    def probabilities(self, P: Any) -> Any:
        """Probabilities of the aggregator, calibrated.  # (n, C) float64"""
        return scale(P, self.temperature, self.floor)

    def p_values(self, S: Array, doubt: Array | None) -> Array:
        """The conformal p-value that each query belongs to one of the classes, in (0, 1].  # (n,)"""
        return self.conformal.p_values(S, doubt)


def calibrate(answers: OutOfFold) -> Calibration:
    """The calibration from out-of-fold predictions."""
    rows = answers.assessed
    shares, true, weight = answers.shares[rows], answers.true[rows], answers.weight[rows]
    temperature, floor = fit_temperature(shares, true, weight, answers.deviation)
    return Calibration(temperature, floor, *_expected_accuracy(answers), _conformal_score(answers))


def _conformal_score(answers: OutOfFold) -> ConformalScore:
    """The score with its values on the assessed rows; near copies are left out if enough other rows remain.

    New inputs are seldom near copies of training rows.
    """
    new = answers.assessed & ~answers.near_copy
    rows = new if new.sum() >= ENOUGH_NEW_ROWS else answers.assessed
    doubt = None if answers.doubt is None else answers.doubt[rows]
    sizes = np.bincount(answers.true, answers.weight)[answers.true]
    return conformal_score(answers.scores[rows], doubt, answers.weight[rows], sizes[rows])


def _expected_accuracy(answers: OutOfFold) -> tuple[float, tuple[float, float]]:
    """The accuracy to expect and its 95 % interval after Wilson, with fewer effective rows than there are because the
    fold models share most of their training rows.

    The error of the fold models is extrapolated to the full model along its learning curve, except for the lower end of
    the interval. Rows that were not assessed count as wrong for the lower end and as correct for the upper end. With
    one class the accuracy is unknown.
    """
    weight, assessed = answers.weight, answers.assessed
    if len(answers.classes) < 2 or not assessed.any():
        return float("nan"), (0.0, 1.0)
    size = float(weight.sum() ** 2 / (weight**2).sum()) / DEPENDENCE
    wrong = weight * (assessed & ~answers.correct)
    extrapolated = wrong * _learning_curve(np.bincount(answers.true, weight))[answers.true]
    right = float(weight[assessed & answers.correct].sum() / weight.sum())
    low, high = wilson(right, size)[0], wilson(1 - float(extrapolated.sum() / weight.sum()), size)[1]
    expected = 1 - float(extrapolated.sum() / weight[assessed].sum())
    return expected, (max(low, 0.0), min(high, 1.0))


def _learning_curve(rows: Array) -> Array:
    """The ratio of the error of a model with these numbers of rows per class to that of its fold models.  # (C,)

    The error falls with a power of few rows and flattens with more: measured with 2 to 20 rows per class on 24 packs.
    """
    n = np.maximum(rows, 2)
    remaining = np.minimum(1 - 1 / n, 0.8)  # of the rows of a class, outside one of five folds
    return np.asarray(remaining ** (LEARNING_POWER * np.minimum(1, FLATTENS_AT / n)))


def wilson(share: float, size: float) -> tuple[float, float]:
    """The 95 % interval of a share that was measured on `size` rows."""
    z = NORMAL_QUANTILE
    middle = share + z**2 / (2 * size)
    half = z * (share * (1 - share) / size + z**2 / (4 * size**2)) ** 0.5
    return (middle - half) / (1 + z**2 / size), (middle + half) / (1 + z**2 / size)
