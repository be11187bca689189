"""Thresholds, calibrated probabilities and p-values of tags, from leave-one-out
predictions.

A Gaussian process predicts each of its rows without that row in closed form. With the
posterior mean f and variance v at a row of noise N and target y, removing the row gives
the mean (f - v y / N) / (1 - v / N) and the variance v / (1 - v / N). No model is
fitted again and no row is held out of the model.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from imprint.calibration.estimates import (
    MIN_SPREAD,
    Estimates,
    fit_conformal,
    wilson_interval,
)
from imprint.core.arrays import Array, is_torch, like, to_numpy
from imprint.core.errors import require
from imprint.gaussian_process.cholesky import SLICE_ROWS
from imprint.gaussian_process.gaussian import kernel_rows, lift_queries
from imprint.gaussian_process.nystroem import Nystroem
from imprint.gaussian_process.posterior import Posterior
from imprint.kernels.rows import squared_norms

if TYPE_CHECKING:
    from imprint.tags.head import TagHead

# Proxies that are predicted by the model without them. A matter of taste: the p-values
# of 8,192 rows are steps of 0.00012.
MAX_ASSESSED_PROXIES = 8192
# macro F1 on GoEmotions (600, 1,500 and 4,000 rows) is lower with 1, 2, 3, 5 or no
# limit
MAX_PREDICTED_RATIO = 1.5
# 1 / (1 + exp(-15)) is 1 - 3e-7. The steps of float32 are 6e-8 there, so that
# probabilities stay below 1.
MAX_LOGIT = 15.0
# A matter of taste: near the solution each step doubles the number of correct digits.
NEWTON_STEPS = 30
# pulls the slope of standardised scores towards 1 where a label has few rows
RIDGE = 0.1
RESOLUTION = 1e-8
"""Differences of scores, relative to the largest, and of F1 that count as ties.

Rounding errors of the solved system are smaller: in the scores of 10 to 1,000 rows in
two orders, half of them copies, up to 9e-14 with noise 1 and 7e-9 with noise 1e-3.
"""
MIN_SLOPE = 1e-3  # probabilities rise with scores


class LeaveOneOut(NamedTuple):
    """Predictions of proxies, each by the model without the proxy and its copies."""

    scores: Array  # (n, labels)
    doubt: Array  # (n,)
    targets: Array  # (n, labels)
    weight: Array  # (n,) the number of rows that each represents
    rows: Array  # (n,) which proxies they are


@dataclass(frozen=True, eq=False)
class TagCalibration(Estimates):
    """The calibration of a model of tags by leave-one-out predictions.

    The expected accuracy is the share of rows all of whose labels are predicted
    correctly.
    """

    prefix: ClassVar[str] = "tags/"
    thresholds: Array  # (labels,) of scores
    slopes: Array  # (labels,)
    offsets: Array  # (labels,)
    average_precision: Array  # (labels,)
    f1: Array  # (labels,)

    def __post_init__(self) -> None:
        super().__post_init__()
        for array in self._by_label().values():
            require(array.dtype == np.float64)
            require(array.ndim == 1)
            require(array.shape == self.f1.shape)
            if array is self.thresholds:
                # infinity for a label that is never predicted
                require((array > -np.inf).all())
            else:
                require(np.isfinite(array).all())

    def reordered(self, order: Sequence[int]) -> "TagCalibration":
        """The calibration of the labels in another order."""
        columns: dict[str, Any] = {}
        for name, array in self._by_label().items():
            columns[name] = array[order]
        return replace(self, **columns)

    def probabilities(self, S: Array) -> Array:
        """One probability per label, in (0, 1).  # (n, labels)"""
        scores = to_numpy(S).astype(np.float64)
        P = sigmoid(scores * self.slopes + self.offsets)
        return like(P, S)

    def _by_label(self) -> dict[str, Array]:
        """The arrays that have one element for each label."""
        return {
            "thresholds": self.thresholds,
            "slopes": self.slopes,
            "offsets": self.offsets,
            "average_precision": self.average_precision,
            "f1": self.f1,
        }


def leave_one_out(head: "TagHead") -> LeaveOneOut:
    """Predict each proxy, or some of very many, by the model without it and its
    copies.
    """
    proxies = head.proxies
    targets = head.targets
    shuffled = np.random.default_rng(0).permutation(len(targets))
    rows = shuffled[:MAX_ASSESSED_PROXIES]

    # Equal proxies are one observation: their precisions add up, and their target is
    # the mean weighted by them.
    _, first, group = np.unique(
        proxies.weights,
        axis=0,
        return_index=True,
        return_inverse=True,
    )
    group = group.ravel()
    precision = 1 / head.aggregator.noise_of(proxies, head.prepared.scale)
    group_precision = np.bincount(group, precision)[group][rows]
    target_sums = np.zeros((len(first), targets.shape[1]))
    np.add.at(target_sums, group, targets * precision[:, None])

    # the formulas at the top of this file; target_sums are y / N
    mean, variance = _posterior(head, 1 / precision, rows)
    # zero up to rounding where a proxy has no noise
    remaining = np.maximum(1 - variance * group_precision, np.finfo(np.float64).eps)
    explained = variance[:, None] * target_sums[group[rows]]
    scores = (mean - explained) / remaining[:, None]
    deviation = np.sqrt(np.minimum(variance / remaining, 1))
    return LeaveOneOut(
        scores,
        deviation,
        targets[rows],
        proxies.mass[rows],
        rows,
    )


def _posterior(
    head: "TagHead",
    noise: Array,
    rows: Array,
) -> tuple[Array, Array]:
    """The posterior mean and variance at proxies.  # (n, labels), (n,)"""
    system = head.prepared.system
    is_on_cpu = isinstance(system, Posterior) and not is_torch(system.weights)
    # of all proxies it takes a third of the time of predicting them as queries
    if is_on_cpu and len(rows) == len(noise):
        return _posterior_of_all(
            system,
            head.targets,
            noise,
            rows,
        )
    weights = head.proxies.weights[rows].astype(np.float64)
    scores = to_numpy(system.scores(weights))
    if isinstance(system, Nystroem) and not is_torch(system.lifted):
        return scores, _variance_over_centres(system, weights)
    return scores, np.square(to_numpy(system.doubt(weights)))


def _posterior_of_all(
    system: Posterior,
    targets: Array,
    noise: Array,
    rows: Array,
) -> tuple[Array, Array]:
    """The posterior mean and variance at all proxies, in the order of `rows`.

    With A = (K + N)^-1 Y the mean at all of them is Y - N A, and the variance N - N^2
    diag (K + N)^-1.
    """
    count = len(noise)
    diagonals = []
    for start in range(0, count, SLICE_ROWS):
        # with L the factor of K + N, the squared norms of L^-1 e_i are the diagonal
        unit = np.eye(min(SLICE_ROWS, count - start), count, start)
        diagonals.append(squared_norms(system.factor.forward(unit)))
    inverse = np.concatenate(diagonals)
    mean = targets - noise[:, None] * system.coefficients
    variance = noise - noise**2 * inverse
    return mean[rows], np.maximum(variance[rows], 0)


def _variance_over_centres(system: Nystroem, weights: Array) -> Array:
    """The variance of the sum over the centres alone, without that of the prior around
    it.  # (n,)
    """
    variances = []
    for start in range(0, len(weights), SLICE_ROWS):
        block = weights[start : start + SLICE_ROWS]
        left = lift_queries(block, system.centre, "float64")
        in_prior = system.prior.forward(kernel_rows(left, system.lifted))
        variances.append(squared_norms(system.data.forward(in_prior)))
    return np.concatenate(variances)


def calibrate_tags(head: "TagHead") -> TagCalibration:
    """The calibration of a model of tags from leave-one-out predictions."""
    predictions = leave_one_out(head)
    S = with_ties(predictions.scores)
    Y = predictions.targets
    weight = predictions.weight
    slopes, offsets = fit_probabilities(S, Y, weight)
    P = sigmoid(S * slopes + offsets)
    thresholds = best_thresholds(
        S,
        P,
        weight,
        weight @ Y,
    )
    predicted = thresholds <= S
    is_correct = (predicted == Y).all(axis=1)
    accuracy = float(np.average(is_correct, weights=weight))
    return TagCalibration(
        accuracy,
        *wilson_interval(accuracy, len(S)),
        **fit_conformal(S, predictions.doubt, weight),
        thresholds=thresholds,
        slopes=slopes,
        offsets=offsets,
        average_precision=np.nan_to_num(average_precision(S, Y, weight)),
        f1=f1_scores(predicted, Y, weight),
    )


def with_ties(S: Array) -> Array:
    """Scores as multiples of one small unit, so that scores which differ by rounding
    errors are equal.

    Otherwise, the order of the rows would decide between rows that equal each other by
    symmetry, and thresholds would depend on it.
    """
    largest = float(np.abs(S).max(initial=0))
    if not largest:
        return S
    # a power of two: dividing by it is exact, and rounding errors do not change it
    unit = 2.0 ** np.floor(np.log2(RESOLUTION * largest))
    return np.asarray(np.round(S / unit) * unit)


def best_thresholds(
    S: Array,
    P: Array,
    weight: Array,
    rows: Array,
) -> Array:
    """The threshold of each label with the largest expected F1.

    A label is predicted for at most `MAX_PREDICTED_RATIO` times its rows. By F1 alone,
    a label that scores no better than chance would be predicted for nearly every row.

    Parameters
    ----------
    S, P : array (n, labels)
        Scores and calibrated probabilities.
    weight : array (n,)
        The number of training rows that each row represents.
    rows : array (labels,)
        The number of training rows that have the label.

    Returns
    -------
    array (labels,)
        A label is predicted where its score reaches the threshold.
    """
    # Row i of what follows predicts the label for the i + 1 highest scores.
    order = np.argsort(-S, axis=0, kind="stable")
    scores = np.take_along_axis(S, order, 0)
    positives = np.take_along_axis(P * weight[:, None], order, 0)
    predicted = weight[order].cumsum(axis=0)
    f1 = 2 * positives.cumsum(axis=0) / (predicted + positives.sum(axis=0))

    # A threshold lies between two different scores; the last one below all of them.
    next_scores = np.vstack([scores[1:], scores[-1:] - 1])
    separates = scores > next_scores
    allowed = separates & (predicted <= MAX_PREDICTED_RATIO * rows)
    # argmax takes the first: of equal F1, the highest threshold
    best = np.where(allowed, with_ties(f1), -1).argmax(axis=0)
    middles = (scores + next_scores) / 2
    thresholds = np.take_along_axis(middles, best[None], 0)[0]
    # Where too many rows share the highest score, only these have the label. A label
    # without rows is never predicted.
    without_allowed = np.where(rows > 0, scores[0], np.inf)
    return np.where(allowed.any(axis=0), thresholds, without_allowed)


def fit_probabilities(
    S: Array,
    Y: Array,
    weight: Array,
) -> tuple[Array, Array]:
    """Slope and offset of each label's logistic function of its scores.  # (labels,),
    (labels,)

    Platt scaling: one more row with and without the label keeps probabilities off 0 and
    1.
    """
    with_label = weight @ Y
    without = weight.sum() - with_label
    target = np.where(Y == 1, (with_label + 1) / (with_label + 2), 1 / (without + 2))
    mean = np.average(S, axis=0, weights=weight)
    variance = np.average((S - mean) ** 2, axis=0, weights=weight)
    spread = np.maximum(np.sqrt(variance), MIN_SPREAD)
    standardised = (S - mean) / spread
    # the best probability that does not depend on the score
    start = np.log((with_label + 1) / (without + 1))
    slope, offset = _newton(
        standardised,
        target,
        weight,
        start,
    )
    return slope / spread, offset - slope * mean / spread


def _newton(
    Z: Array,
    target: Array,
    weight: Array,
    offset: Array,
) -> tuple[Array, Array]:
    """Slope and offset of the smallest log loss, by Newton's method on every label at
    once.  # (labels,), (labels,)
    """
    slope = np.ones(Z.shape[1])
    for _ in range(NEWTON_STEPS):
        P = sigmoid(slope * Z + offset)
        # the gradient
        by_slope = weight @ (Z * (P - target)) + RIDGE * (slope - 1)
        by_offset = weight @ (P - target)
        # the Hessian; the ridge keeps it invertible
        slope_slope = weight @ (Z * Z * P * (1 - P)) + RIDGE
        slope_offset = weight @ (Z * P * (1 - P))
        offset_offset = weight @ (P * (1 - P)) + RIDGE
        determinant = slope_slope * offset_offset - slope_offset**2
        # its inverse times the gradient, by Cramer's rule
        slope_step = (offset_offset * by_slope - slope_offset * by_offset) / determinant
        offset_step = (slope_slope * by_offset - slope_offset * by_slope) / determinant
        slope = np.maximum(slope - slope_step, MIN_SLOPE)
        offset = offset - offset_step
    return slope, offset


def average_precision(
    S: Array,
    Y: Array,
    weight: Array | None = None,
) -> Array:
    """The average precision of each label as scikit-learn defines it; NaN where no row
    has it.  # (labels,)
    """
    weight = np.ones(len(S)) if weight is None else weight
    present = Y.T * weight
    results = np.full(S.shape[1], np.nan)
    for c, scores in enumerate(S.T):
        if not present[c].any():
            continue
        order = np.argsort(-scores, kind="stable")
        # rows of one score count together: only the last of them is a threshold
        last = len(order) - 1
        ends = np.append(np.flatnonzero(np.diff(scores[order])), last)
        hits = np.cumsum(present[c][order])[ends]
        seen = np.cumsum(weight[order])[ends]
        precision = np.diff(hits, prepend=0) * hits / seen
        results[c] = np.sum(precision) / hits[-1]
    return results


def f1_scores(
    predicted: Array,
    Y: Array,
    weight: Array | None = None,
) -> Array:
    """The F1 of each label; 0 where it is neither predicted nor present.  #
    (labels,)
    """
    weight = np.ones(len(Y)) if weight is None else weight
    true_positives = weight @ (predicted * Y)
    total = weight @ predicted + weight @ Y
    return np.asarray(2 * true_positives / np.where(total > 0, total, 1))


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), within (0, 1) in float32."""
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -MAX_LOGIT, MAX_LOGIT))))
