"""From out-of-fold answers to what they tell: true probabilities, an accuracy to expect, and what is not known."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from imprint.conformal import Familiarity, familiarity
from imprint.core.arrays import is_torch
from imprint.core.types import Array
from imprint.kernels.softmax import softmax

SMALLEST = 1e-37  # a probability is no smaller before its logarithm is taken; float32 still has it
MOST_FLOOR = 0.99
NOTHING_TOLD = 0.5  # the floor where no row was assessed
UNEXPLAINED = 0.25  # of a row that no class explains, counted with the others
TEMPERATURES = (-3.0, 3.0)  # of their logarithm
NORMAL = 1.959964  # two-sided, 95 %
DEPENDENCE = 2.25
"""How much more answers of five folds vary than independent ones: 1 + 5 n_test / n_train, after Nadeau and Bengio."""


class OutOfFold(NamedTuple):
    """What models that have not seen a row say about it, for many rows.

    Where a fold leaves no row of a class, its model does not know the class: it scores -inf there and has the share 0,
    and a row of that class is not `assessed`.
    """

    classes: Array  # (C,) labels, sorted
    own: Array  # (n,) of every row, its label's place in classes
    fold: Array  # (n,) whose model has not seen it
    scores: Array  # (n, C)
    shares: Array  # (n, C) the probabilities of the aggregator itself
    doubt: Array | None  # (n,)
    assessed: Array  # (n,)
    weight: Array  # (n,) for how many rows of its class each stands

    @property
    def winners(self) -> Array:
        """The place in `classes` of every row's largest score.  # (n,)"""
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
    """What out-of-fold answers tell about a model. `expected_accuracy` is NaN where they tell nothing about it."""

    temperature: float
    floor: float
    expected_accuracy: float
    expected_interval: tuple[float, float]
    familiarity: Familiarity

    def probabilities(self, P: Any) -> Any:
        """Probabilities to the power 1 / temperature, over their sum, mixed with the floor.  # (n, C) float64"""
        logs = P.double().clamp(SMALLEST).log() if is_torch(P) else np.log(np.maximum(P, SMALLEST, dtype=np.float64))
        return (1 - self.floor) * softmax(logs / self.temperature) + self.floor / P.shape[1]

    def p_values(self, S: Array, doubt: Array | None) -> Array:
        """For every query the share of known rows that look no more familiar, in (0, 1].  # (n,)"""
        return self.familiarity.p_values(S, doubt)


class Assessor(Protocol):
    """What is learnt beside a head in order to say how good it is; `imprint.folds` has it."""

    @property
    def calibration(self) -> Calibration: ...
    @property
    def answers(self) -> OutOfFold: ...
    def learn(self, X: Array, y: Array) -> Self: ...
    def forget(self, label: Any) -> Self: ...


def calibrate(answers: OutOfFold) -> Calibration:
    """Temperature and floor that make the answers likeliest, the accuracy among them, and how familiar they look."""
    temperature, floor = _Likelihood(answers).best()
    expected, interval = _accuracy(answers)
    return Calibration(temperature, floor, expected, interval, _familiarity(answers))


def calibration_error(P: Array, own: Array, bins: int = 15) -> float:
    """How far probabilities of winners are from the share that is right, in `bins` equal ranges, weighted by rows.

    >>> calibration_error(np.array([[0.9, 0.1], [0.9, 0.1]]), np.array([0, 1]))
    0.4
    """
    largest, right = P.max(axis=1).astype(np.float64), P.argmax(axis=1) == own
    place = np.minimum((largest * bins).astype(int), bins - 1)
    gaps = np.bincount(place, right - largest, minlength=bins)
    return float(np.round(np.abs(gaps).sum() / len(P), 12))


class _Likelihood:
    """How likely the labels of assessed rows are.

    So that few rows do not make a model sure of itself, a quarter of a row more counts that no class explains, and the
    logarithm of the temperature is expected about 0, give or take 1.
    """

    def __init__(self, answers: OutOfFold):
        rows = answers.assessed
        self.logs = np.log(np.maximum(answers.shares[rows], SMALLEST))
        self.own, self.uniform = answers.own[rows], 1 / len(answers.classes)
        self.weight = answers.weight[rows] * (rows.sum() / max(answers.weight[rows].sum(), 1))

    def best(self) -> tuple[float, float]:
        """The temperature and the floor of the largest likelihood."""
        from scipy.optimize import minimize_scalar

        if not len(self.own):
            return 1.0, NOTHING_TOLD
        found = minimize_scalar(lambda t: self._loss(t)[0], bounds=TEMPERATURES, method="bounded")
        return float(np.exp(found.x)), self._loss(found.x)[1]

    def _loss(self, log_temperature: float) -> tuple[float, float]:
        given = softmax(self.logs / np.exp(log_temperature))[np.arange(len(self.own)), self.own]
        floor = self._floor(given)
        likely = np.log((1 - floor) * given + floor * self.uniform)
        return log_temperature**2 / 2 - float(self.weight @ likely) - UNEXPLAINED * np.log(floor), floor

    def _floor(self, given: Array) -> float:
        """The best floor for given shares of the own classes, where its slope is zero; the slope falls."""
        low, high = 0.0, MOST_FLOOR
        for _ in range(40):
            middle = (low + high) / 2
            rise = (self.uniform - given) / ((1 - middle) * given + middle * self.uniform)
            low, high = (middle, high) if self.weight @ rise + UNEXPLAINED / middle > 0 else (low, middle)
        return high


def _familiarity(answers: OutOfFold) -> Familiarity:
    rows = answers.assessed
    doubt = None if answers.doubt is None else answers.doubt[rows]
    return familiarity(answers.scores[rows], doubt, answers.own[rows], answers.weight[rows])


def _accuracy(answers: OutOfFold) -> tuple[float, tuple[float, float]]:
    """The share of right answers among assessed rows, and Wilson's interval around it, for fewer rows than there are:
    the models of the folds learnt from much the same rows, so that their answers depend on each other.

    Rows that were not assessed count as wrong for its lower end and as right for its upper end. One class alone leaves
    nothing to tell apart, and no accuracy to expect.
    """
    weight, assessed = answers.weight, answers.assessed
    if len(answers.classes) < 2 or not assessed.any():
        return float("nan"), (0.0, 1.0)
    size = float(weight.sum() ** 2 / (weight**2).sum()) / DEPENDENCE
    share = float(weight[assessed & answers.right].sum() / weight.sum())
    open_ = float(weight[~assessed].sum() / weight.sum())
    ends = max(_wilson(share, size)[0], 0.0), min(_wilson(share + open_, size)[1], 1.0)
    return share / (1 - open_), ends


def _wilson(share: float, size: float) -> tuple[float, float]:
    middle = share + NORMAL**2 / (2 * size)
    half = NORMAL * (share * (1 - share) / size + NORMAL**2 / (4 * size**2)) ** 0.5
    return (middle - half) / (1 + NORMAL**2 / size), (middle + half) / (1 + NORMAL**2 / size)
