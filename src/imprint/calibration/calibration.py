"""From out-of-fold predictions to a calibration: temperature, expected accuracy and
conformal p-values.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from imprint.calibration.estimates import Estimates, fit_conformal, wilson_interval
from imprint.core.arrays import Array, is_torch, namespace
from imprint.core.errors import require
from imprint.kernels.scores import softmax

# five folds to independent rows: 1 + 5 n_test / n_train (Nadeau and Bengio 2003)
FOLD_VARIANCE_RATIO = 2.25
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
UNEXPLAINED_ROWS, EXPLAINED_ROWS = 0.1, 20
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

    @property
    def winners(self) -> Array:
        """The predicted class of every row, as an index into `classes`.  # (n,)"""
        return np.asarray(self.scores.argmax(axis=1))

    @property
    def correct(self) -> Array:
        """Whether the predicted class of each row is its label.  # (n,)"""
        return np.asarray(self.winners == self.true)

    def probabilities(self) -> Array:
        """Calibrated probabilities of every row.  # (n, C)"""
        return np.asarray(calibrate(self).probabilities(self.shares))


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


def calibrate(predictions: OutOfFold) -> Calibration:
    """The calibration from out-of-fold predictions.

    P-values are computed from the assessed rows without near copies if there are enough
    of them, because new inputs are seldom near copies of training rows.
    """
    assessed, weight = predictions.assessed, predictions.weight
    temperature, floor = _fit_temperature(predictions)
    new = assessed & ~predictions.near_copy
    rows = new if new.sum() >= MIN_NEW_ROWS else assessed
    doubt = None if predictions.doubt is None else predictions.doubt[rows]
    sizes = np.bincount(predictions.true, weight)[predictions.true]
    p_values = fit_conformal(predictions.scores[rows], doubt, weight[rows], sizes[rows])
    return Calibration(
        *_expected_accuracy(predictions),
        **p_values,
        temperature=temperature,
        floor=floor,
    )


def _expected_accuracy(predictions: OutOfFold) -> tuple[float | None, float, float]:
    """The expected accuracy and its 95 % Wilson interval; None without an estimate, as
    with one class.

    The fold models share most of their training rows, so fewer rows than there are
    count as independent. Their error is extrapolated to the full model along its
    learning curve, except for the lower end of the interval. Rows that were not
    assessed count as wrong for the lower end and as correct for the upper end.
    """
    weight, assessed = predictions.weight, predictions.assessed
    if len(predictions.classes) < 2 or not assessed.any():
        return None, 0.0, 1.0
    size = float(weight.sum() ** 2 / (weight**2).sum()) / FOLD_VARIANCE_RATIO
    wrong = weight * (assessed & ~predictions.correct)
    extrapolated = float(
        (
            wrong
            * _learning_curve(np.bincount(predictions.true, weight))[predictions.true]
        ).sum()
    )
    right = float(weight[assessed & predictions.correct].sum() / weight.sum())
    low, _ = wilson_interval(right, size)
    _, high = wilson_interval(1 - extrapolated / float(weight.sum()), size)
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
    P, true, weight = (
        predictions.shares[rows],
        predictions.true[rows],
        predictions.weight[rows],
    )
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
        return (
            log_temperature / predictions.deviation
        ) ** 2 / 2 - log_likelihood - log_prior, floor

    best = minimize_scalar(
        lambda t: loss(t)[0], bounds=LOG_TEMPERATURE_RANGE, method="bounded"
    ).x
    return float(np.exp(best)), loss(best)[1]


def _best_floor(likelihoods: Array, uniform: float, weight: Array) -> float:
    """The floor where the slope of the log posterior is zero, by bisection; the slope
    decreases.
    """
    low, high = 0.0, MAX_FLOOR
    for _ in range(40):
        middle = (low + high) / 2
        slopes = (uniform - likelihoods) / (
            (1 - middle) * likelihoods + middle * uniform
        )
        slope = (
            weight @ slopes + UNEXPLAINED_ROWS / middle - EXPLAINED_ROWS / (1 - middle)
        )
        low, high = (middle, high) if slope > 0 else (low, middle)
    return high


def calibration_error(P: Array, true: Array, bins: int = 15) -> float:
    """The expected calibration error: mean gap between confidence and accuracy over
    `bins` equal ranges.
    """
    confidence, correct = P.max(axis=1).astype(np.float64), P.argmax(axis=1) == true
    index = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = np.bincount(index, correct - confidence, minlength=bins)
    return float(np.round(np.abs(gaps).sum() / len(P), 12))
