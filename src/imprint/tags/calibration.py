"""Thresholds, calibrated probabilities and p-values of tags, from leave-one-out
predictions.

A Gaussian process predicts each of its rows without that row in closed form. With the
posterior mean f and variance v at a row of noise N and target y, removing the row gives
the mean (f - v y / N) / (1 - v / N) and the variance v / (1 - v / N). No model is
fitted again and no row is held out of the model.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

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

MAX_ASSESSED_PROXIES = 8192  # that are predicted by the model without them
# macro F1 on GoEmotions (600, 1,500 and 4,000 rows) is lower with 1, 2, 3, 5 or no
# limit
MAX_PREDICTED_RATIO = 1.5
MAX_LOGIT = 15.0
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
        for array in (
            self.thresholds,
            self.slopes,
            self.offsets,
            self.average_precision,
            self.f1,
        ):
            require(
                array.dtype == np.float64
                and array.ndim == 1
                and array.shape == self.f1.shape
            )
            require(
                (array > -np.inf).all()
                if array is self.thresholds
                else np.isfinite(array).all()
            )

    def reordered(self, order: Sequence[int]) -> "TagCalibration":
        """The calibration of the labels in another order."""
        columns = ("thresholds", "slopes", "offsets", "average_precision", "f1")
        return replace(self, **{name: getattr(self, name)[order] for name in columns})

    def probabilities(self, S: Any) -> Any:
        """One probability per label, in (0, 1).  # (n, labels)"""
        P = sigmoid(to_numpy(S).astype(np.float64) * self.slopes + self.offsets)
        return like(P, S)


def leave_one_out(head: Any) -> LeaveOneOut:
    """Predict each proxy of a `TagHead`, or some of very many, by the model without it
    and its copies.
    """
    proxies, targets = head.proxies, head.targets
    rows = np.random.default_rng(0).permutation(len(targets))[:MAX_ASSESSED_PROXIES]
    _, first, group = np.unique(
        proxies.weights, axis=0, return_index=True, return_inverse=True
    )
    group = group.ravel()  # copies of a proxy are one group
    precision = 1 / head.aggregator.noise_of(proxies, head.prepared.scale)
    group_precision = np.bincount(group, precision)[group][rows]
    target_sums = np.zeros((len(first), targets.shape[1]))
    np.add.at(target_sums, group, targets * precision[:, None])
    f, v = _posterior(head, 1 / precision, rows)
    remaining = np.maximum(1 - v * group_precision, np.finfo(np.float64).eps)
    scores = (f - v[:, None] * target_sums[group[rows]]) / remaining[:, None]
    return LeaveOneOut(
        scores,
        np.sqrt(np.minimum(v / remaining, 1)),
        targets[rows],
        proxies.mass[rows],
        rows,
    )


def _posterior(head: Any, noise: Array, rows: Array) -> tuple[Array, Array]:
    """The posterior mean and variance at proxies.  # (n, labels), (n,)

    With A = (K + N)^-1 Y the mean at all of them is Y - N A, and the variance N - N^2
    diag (K + N)^-1. This takes a third of the time of predicting them as queries.
    """
    system, count = head.prepared.system, len(noise)
    if (
        isinstance(system, Posterior)
        and not is_torch(system.weights)
        and len(rows) == count
    ):
        parts = (
            np.eye(min(SLICE_ROWS, count - start), count, start)
            for start in range(0, count, SLICE_ROWS)
        )
        inverse = np.concatenate(
            [squared_norms(system.factor.forward(part)) for part in parts]
        )
        f, v = (
            head.targets - noise[:, None] * system.coefficients,
            noise - noise**2 * inverse,
        )
        return f[rows], np.maximum(v[rows], 0)
    W = head.proxies.weights[rows].astype(np.float64)
    if not isinstance(system, Nystroem) or is_torch(system.lifted):
        return to_numpy(system.scores(W)), np.square(to_numpy(system.doubt(W)))
    blocks = [
        lift_queries(W[i : i + SLICE_ROWS], system.centre, "float64")
        for i in range(0, len(W), SLICE_ROWS)
    ]
    kernels = (kernel_rows(block, system.lifted) for block in blocks)
    # the variance of the sum over the centres alone, without that of the prior around
    # it
    v = np.concatenate(
        [squared_norms(system.data.forward(system.prior.forward(k))) for k in kernels]
    )
    return to_numpy(system.scores(W)), v


def calibrate_tags(head: Any) -> TagCalibration:
    """The calibration of a `TagHead` from leave-one-out predictions."""
    S, doubt, Y, weight, _ = leave_one_out(head)
    S = with_ties(S)
    slopes, offsets = fit_probabilities(S, Y, weight)
    thresholds = best_thresholds(S, sigmoid(S * slopes + offsets), weight, weight @ Y)
    predicted = thresholds <= S
    accuracy = float(np.average((predicted == Y).all(axis=1), weights=weight))
    return TagCalibration(
        accuracy,
        *wilson_interval(accuracy, len(S)),
        **fit_conformal(S, doubt, weight),
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


def best_thresholds(S: Array, P: Array, weight: Array, rows: Array) -> Array:
    """The threshold of each label with the largest expected F1 by its calibrated
    probabilities P.  # (labels,)

    A label is predicted for at most `MAX_PREDICTED_RATIO` times its `rows`. By F1
    alone, a label that scores no better than chance would be predicted for nearly every
    row.
    """
    order = np.argsort(-S, axis=0, kind="stable")
    scores, positives = (
        np.take_along_axis(S, order, 0),
        np.take_along_axis(P * weight[:, None], order, 0),
    )
    f1 = (
        2
        * positives.cumsum(axis=0)
        / (weight[order].cumsum(axis=0) + positives.sum(axis=0))
    )
    next_scores = np.vstack([scores[1:], scores[-1:] - 1])
    allowed = (scores > next_scores) & (
        weight[order].cumsum(axis=0) <= MAX_PREDICTED_RATIO * rows
    )
    # of equal F1, the highest threshold
    best = np.where(allowed, with_ties(f1), -1).argmax(axis=0)
    thresholds = np.take_along_axis((scores + next_scores) / 2, best[None], 0)[0]
    return np.where(
        allowed.any(axis=0), thresholds, np.where(rows > 0, scores[0], np.inf)
    )


def fit_probabilities(S: Array, Y: Array, weight: Array) -> tuple[Array, Array]:
    """Slope and offset of each label's logistic function of its scores.  # (labels,),
    (labels,)

    Platt scaling: one more row with and without the label keeps probabilities off 0 and
    1.
    """
    with_label = weight @ Y
    without = weight.sum() - with_label
    target = np.where(Y == 1, (with_label + 1) / (with_label + 2), 1 / (without + 2))
    mean = np.average(S, axis=0, weights=weight)
    spread = np.maximum(
        np.sqrt(np.average((S - mean) ** 2, axis=0, weights=weight)), MIN_SPREAD
    )
    Z = (S - mean) / spread
    slope, offset = np.ones(S.shape[1]), np.log((with_label + 1) / (without + 1))
    for _ in range(NEWTON_STEPS):
        P = sigmoid(slope * Z + offset)
        g_slope = weight @ (Z * (P - target)) + RIDGE * (slope - 1)  # the gradient
        g_offset = weight @ (P - target)
        h_slope = weight @ (Z * Z * P * (1 - P)) + RIDGE  # the Hessian
        h_mixed = weight @ (Z * P * (1 - P))
        h_offset = weight @ (P * (1 - P)) + RIDGE
        determinant = h_slope * h_offset - h_mixed**2
        slope = np.maximum(
            slope - (h_offset * g_slope - h_mixed * g_offset) / determinant, MIN_SLOPE
        )
        offset = offset - (h_slope * g_offset - h_mixed * g_slope) / determinant
    return slope / spread, offset - slope * mean / spread


def average_precision(S: Array, Y: Array, weight: Array | None = None) -> Array:
    """The average precision of each label as scikit-learn defines it; NaN where no row
    has it.  # (labels,)
    """
    weight = np.ones(len(S)) if weight is None else weight
    results = np.full(S.shape[1], np.nan)
    for c, (scores, present) in enumerate(zip(S.T, Y.T * weight)):
        order = np.argsort(-scores, kind="stable")
        ends = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)
        hits, seen = np.cumsum(present[order])[ends], np.cumsum(weight[order])[ends]
        if present.any():
            results[c] = np.sum(np.diff(hits, prepend=0) * hits / seen) / hits[-1]
    return results


def f1_scores(predicted: Array, Y: Array, weight: Array | None = None) -> Array:
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
