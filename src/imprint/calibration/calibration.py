"""From out-of-fold predictions to a calibration: temperature, expected accuracy and
conformal p-values.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from imprint.calibration.estimates import (
    Estimates,
    fit_conformal,
    wilson_interval,
)
from imprint.calibration.held import FOLDS
from imprint.core.arrays import Array, is_torch, namespace
from imprint.core.errors import require
from imprint.kernels.scores import softmax

CORRELATION_OF_FOLDS = 0.2
"""The correlation of the errors of two fold models, n_test / (n_test + n_train) after
Nadeau and Bengio (2003). With the binomial variance v of one fold, the mean of J folds
has the variance v (c + (1 - c) / J), which is 1 + (J - 1) c times that of as many
independent rows.
"""
LEARNING_POWER = 0.4  # the power by which the error falls with the rows of a class,
FLATTENING_ROWS = 2  # and the number of rows above which it falls more slowly
# with more held-out rows without near copies, only these determine the p-values
MIN_NEW_ROWS = 100
# smaller ones are raised to it before their logarithm is taken; float32 can represent
# it
MIN_PROBABILITY = 1e-37
MAX_FLOOR = 0.99
FLOOR_WITHOUT_ROWS = 0.5
# the beta prior of the floor, as rows for it and rows against it
UNEXPLAINED_ROWS = 0.1
EXPLAINED_ROWS = 20
LOG_TEMPERATURE_RANGE = (-3.0, 3.0)  # of the fit
TEMPERATURE_RANGE = (1e-6, 1e6)  # in a file


class OutOfFold(NamedTuple):
    """Predictions of many rows, each by a model that was fitted without the row's fold.

    If a class has no row outside a fold, the model of that fold lacks the class: its
    score is -inf and its share 0. The rows of the class in that fold are then not
    `assessed`.
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
    # (n,) whether a row of the same class in another fold is almost equal
    near_copy: Array
    gain: float = 0.0  # see `calibration.gain`

    @property
    def winners(self) -> Array:
        """The predicted class of every row, as an index into `classes`.  # (n,)"""
        return np.asarray(self.scores.argmax(axis=1))

    @property
    def correct(self) -> Array:
        """Whether the predicted class of each row is its label.  # (n,)"""
        return np.asarray(self.winners == self.true)

    @property
    def new(self) -> Array:
        """The assessed rows that determine the p-values: those without near copies, if
        there are enough of them. New inputs are seldom near copies of training rows.
        # (n,)
        """
        new = self.assessed & ~self.near_copy
        return new if new.sum() >= MIN_NEW_ROWS else self.assessed

    def probabilities(self) -> Array:
        """Calibrated probabilities of every row.  # (n, C)"""
        return np.asarray(calibrate(self).probabilities(self.shares))


class Outcomes(NamedTuple):
    """Whether held-out rows are predicted correctly by the model without their fold."""

    true: Array  # (n,) the index of the class of each row
    weight: Array  # (n,) the number of rows of its class that each row represents
    assessed: Array  # (n,)
    correct: Array  # (n,)
    folds: int  # the number of models that predicted them

    @classmethod
    def of(cls, predictions: OutOfFold, folds: int = FOLDS) -> "Outcomes":
        """The outcomes of out-of-fold predictions by the models of some folds."""
        return cls(
            predictions.true,
            predictions.weight,
            predictions.assessed,
            predictions.correct & predictions.assessed,
            folds,
        )


@dataclass(frozen=True, eq=False)
class Calibration(Estimates):
    """The calibration of a model by out-of-fold predictions: P^(1 / temperature), mixed
    with a uniform floor.
    """

    prefix: ClassVar[str] = "calibration/"
    temperature: float
    floor: float

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            TEMPERATURE_RANGE[0] <= self.temperature <= TEMPERATURE_RANGE[1]
            and 0 <= self.floor <= 1
        )

    def probabilities(self, P: Any) -> Any:
        """Calibrated probabilities from those of the aggregator.  # (n, C) float64"""
        P = P.double() if is_torch(P) else np.asarray(P, dtype=np.float64)
        logs = namespace(P).log(P.clip(MIN_PROBABILITY))
        return (1 - self.floor) * softmax(
            logs / self.temperature
        ) + self.floor / P.shape[1]


def calibrate(predictions: OutOfFold, outcomes: Outcomes | None = None) -> Calibration:
    """The calibration from out-of-fold predictions.

    Parameters
    ----------
    predictions : OutOfFold
        They determine the temperature and the p-values.
    outcomes : Outcomes, optional
        They determine the expected accuracy: the predictions of more rows. By default,
        those of `predictions`.
    """
    temperature, floor = _fit_temperature(predictions)
    rows = predictions.new
    p_values = fit_conformal(
        predictions.scores[rows],
        None if predictions.doubt is None else predictions.doubt[rows],
        predictions.weight[rows],
        predictions.gain,
    )
    return Calibration(
        *_expected_accuracy(outcomes or Outcomes.of(predictions)),
        **p_values,
        temperature=temperature,
        floor=floor,
    )


def _expected_accuracy(outcomes: Outcomes) -> tuple[float | None, float, float]:
    """The expected accuracy and its 95 % Wilson interval; None without an estimate, as
    with one class.

    The fold models share most of their training rows, so fewer rows than there are
    count as independent. Their error is extrapolated to the full model along its
    learning curve, except for the lower end of the interval. Rows that were not
    assessed count as wrong for the lower end and as correct for the upper end.
    """
    true, weight, assessed, correct, folds = outcomes
    rows_of_class = np.bincount(true, weight)
    if len(rows_of_class) < 2 or not assessed.any():
        return None, 0.0, 1.0
    total = float(weight.sum())
    effective_rows = total**2 / float((weight**2).sum())
    inflation = 1 + (folds - 1) * CORRELATION_OF_FOLDS
    size = effective_rows / inflation
    wrong = weight * (assessed & ~correct)
    remaining = _learning_curve(rows_of_class)[true]
    extrapolated = float((wrong * remaining).sum())
    right = float(weight[correct].sum()) / total
    low, _ = wilson_interval(right, size)
    _, high = wilson_interval(1 - extrapolated / total, size)
    return 1 - extrapolated / float(weight[assessed].sum()), low, high


def _learning_curve(rows: Array) -> Array:
    """The ratio of the error of a model to that of its fold models, by the number of
    rows of each class.  # (C,)

    The error falls with a power of few rows and flattens with more: measured with 2 to
    20 rows per class on 24 packs.
    """
    n = np.maximum(rows, 2)
    # of the rows of a class, outside one of five folds
    remaining = np.minimum(1 - 1 / n, 0.8)
    return np.asarray(
        remaining ** (LEARNING_POWER * np.minimum(1, FLATTENING_ROWS / n))
    )


def _fit_temperature(predictions: OutOfFold) -> tuple[float, float]:
    """The temperature and floor with the largest posterior probability.

    The logarithm of the temperature has a normal prior with mean 0, and the floor a
    beta prior: few rows hardly change the aggregator's probabilities, many determine
    them.
    """
    from scipy.optimize import minimize_scalar

    rows = predictions.assessed
    if not rows.any():
        return 1.0, FLOOR_WITHOUT_ROWS
    P = predictions.shares[rows]
    true = predictions.true[rows]
    weight = predictions.weight[rows]
    logs = np.log(np.maximum(P, MIN_PROBABILITY))
    uniform = 1 / P.shape[1]
    weight = weight * (len(weight) / max(weight.sum(), 1))

    def loss(log_temperature: float) -> tuple[float, float]:
        likelihoods = softmax(logs / np.exp(log_temperature))[
            np.arange(len(true)), true
        ]
        floor = _best_floor(likelihoods, uniform, weight)
        log_likelihood = float(
            weight @ np.log((1 - floor) * likelihoods + floor * uniform)
        )
        log_prior = UNEXPLAINED_ROWS * np.log(floor) + EXPLAINED_ROWS * np.log1p(-floor)
        standardised = log_temperature / predictions.deviation
        log_prior -= standardised**2 / 2
        return -log_likelihood - log_prior, floor

    best = minimize_scalar(
        lambda t: loss(t)[0],
        bounds=LOG_TEMPERATURE_RANGE,
        method="bounded",
    ).x
    return float(np.exp(best)), loss(best)[1]


def _best_floor(
    likelihoods: Array,
    uniform: float,
    weight: Array,
) -> float:
    """The floor where the slope of the log posterior is zero, by bisection; the slope
    decreases.
    """
    low = 0.0
    high = MAX_FLOOR
    for _ in range(40):
        middle = (low + high) / 2
        slopes = (uniform - likelihoods) / (
            (1 - middle) * likelihoods + middle * uniform
        )
        slope_of_prior = UNEXPLAINED_ROWS / middle - EXPLAINED_ROWS / (1 - middle)
        slope = weight @ slopes + slope_of_prior
        low, high = (middle, high) if slope > 0 else (low, middle)
    return high


def calibration_error(
    P: Array,
    true: Array,
    bins: int = 15,
) -> float:
    """The expected calibration error: mean gap between confidence and accuracy over
    `bins` equal ranges.
    """
    confidence = P.max(axis=1).astype(np.float64)
    correct = P.argmax(axis=1) == true
    bin_of_row = (confidence * bins).astype(int)
    # a confidence of 1 belongs to the last bin
    index = np.minimum(bin_of_row, bins - 1)
    gaps = np.bincount(index, correct - confidence, minlength=bins)
    error = np.abs(gaps).sum() / len(P)
    return float(np.round(error, 12))
