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
"""The power by which the error falls with the rows of a class, and from how many rows on it falls more slowly."""

ENOUGH_NEW_ROWS = 100
"""The number of held-out rows that are not near copies from which on the p-values are computed from these alone."""


class OutOfFold(NamedTuple):
    """Predictions of many rows, each by a model that was fitted without the row's fold.

    Where a class has no row outside a fold, the fold's model lacks the class: its score is -inf, its share 0, and the
    rows of that class in that fold are not `assessed`.
    """

    classes: Array  # (C,) labels, sorted
    own: Array  # (n,) the index of each row's label in `classes`
    fold: Array  # (n,) the fold whose model did not see the row
    scores: Array  # (n, C)
    shares: Array  # (n, C) the aggregator's probabilities, not calibrated
    doubt: Array | None  # (n,)
    assessed: Array  # (n,)
    weight: Array  # (n,) how many rows of its class each row represents
    deviation: float  # of the logarithm of the temperature, a priori
    near_copy: Array  # (n,) whether a row of the same class in another fold is almost equal

    @property
    def winners(self) -> Array:
        """The index in `classes` of every row's largest score.  # (n,)"""
        return np.asarray(self.scores.argmax(axis=1))

    @property
    def right(self) -> Array:
        """Whether the largest score is that of the row's own class.  # (n,)"""
        return np.asarray(self.winners == self.own)

    def probabilities(self) -> Array:
        """Calibrated probabilities of every row.  # (n, C)"""
        return np.asarray(calibrate(self).probabilities(self.shares))


@dataclass(frozen=True, eq=False)
class Calibration:
    """What out-of-fold predictions tell about a model. `expected_accuracy` is NaN where no row was assessed."""

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
    """Everything that out-of-fold predictions tell."""
    rows = answers.assessed
    shares, own, weight = answers.shares[rows], answers.own[rows], answers.weight[rows]
    temperature, floor = fit_temperature(shares, own, weight, answers.deviation)
    return Calibration(temperature, floor, *_expected_accuracy(answers), _conformal_score(answers))


def _conformal_score(answers: OutOfFold) -> ConformalScore:
    """From the assessed rows; without near copies where enough others remain, because new inputs are seldom copies."""
    new = answers.assessed & ~answers.near_copy
    rows = new if new.sum() >= ENOUGH_NEW_ROWS else answers.assessed
    doubt = None if answers.doubt is None else answers.doubt[rows]
    sizes = np.bincount(answers.own, answers.weight)[answers.own]
    return conformal_score(answers.scores[rows], doubt, answers.weight[rows], sizes[rows])


def _expected_accuracy(answers: OutOfFold) -> tuple[float, tuple[float, float]]:
    """The accuracy to expect and its 95 % interval after Wilson, with fewer effective rows than there are because the
    fold models share most of their training rows.

    The error of the fold models is extrapolated to the full model along its learning curve. The lower end of the
    interval does not trust this. Rows that were not assessed count as wrong for the lower end and as right for the
    upper end. With one class there is no accuracy to expect.
    """
    weight, assessed = answers.weight, answers.assessed
    if len(answers.classes) < 2 or not assessed.any():
        return float("nan"), (0.0, 1.0)
    size = float(weight.sum() ** 2 / (weight**2).sum()) / DEPENDENCE
    wrong = weight * (assessed & ~answers.right)
    extrapolated = wrong * _learning_curve(np.bincount(answers.own, weight))[answers.own]
    right = float(weight[assessed & answers.right].sum() / weight.sum())
    low, high = wilson(right, size)[0], wilson(1 - float(extrapolated.sum() / weight.sum()), size)[1]
    expected = 1 - float(extrapolated.sum() / weight[assessed].sum())
    return expected, (max(low, 0.0), min(high, 1.0))


def _learning_curve(rows: Array) -> Array:
    """The error of a model with so many rows of a class over that of models without one fold of them.  # (C,)

    It falls with a power of few rows and flattens with more: measured with 2 to 20 rows of a class on 24 packs.
    """
    n = np.maximum(rows, 2)
    remaining = np.minimum(1 - 1 / n, 0.8)  # of the rows of a class, outside one of five folds
    return np.asarray(remaining ** (LEARNING_POWER * np.minimum(1, FLATTENS_AT / n)))


def wilson(share: float, size: float) -> tuple[float, float]:
    """The 95 % interval of a share of so many rows."""
    z = NORMAL_QUANTILE
    middle = share + z**2 / (2 * size)
    half = z * (share * (1 - share) / size + z**2 / (4 * size**2)) ** 0.5
    return (middle - half) / (1 + z**2 / size), (middle + half) / (1 + z**2 / size)
