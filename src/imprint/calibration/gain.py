"""How much higher the model of all rows scores new rows than the models of the folds,
which were fitted with fewer rows.

The fold models are compared with two models of even fewer rows, on rows that none of
them has seen. With five folds, these models have 80, 60 and 40 % of the rows. A power
law of the number of rows, s = a + b n^q, through the three mean scores gives the rise
from 80 to 100 %. Three means do not determine an exponent well, so q is limited to half
on both sides of the logarithm, q = 0, which is assumed where the third model is
missing: from the rate at which errors of averages fall, 1 / sqrt(n), to sqrt(n).
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from imprint.calibration.calibration import OutOfFold
from imprint.calibration.estimates import ood_scores, spreads_of
from imprint.calibration.fold_predictions import scores_of
from imprint.calibration.held import FOLDS, HeldRows
from imprint.core.arrays import Array
from imprint.head import Head

EXPONENTS = np.linspace(-0.5, 0.5, 21)
LOGARITHM = 0.0
COMPARED_FOLDS = 2  # the folds that both smaller models have not seen


class SmallerModel(NamedTuple):
    """A model without several folds.

    `rows` is the number of rows of each class that it was fitted with, without the
    classes of which it has as many as a fold model.
    """

    head: Head
    rows: Mapping[Any, int]


def measured_gain(
    smaller: Sequence[SmallerModel],
    held: Mapping[Any, HeldRows],
    predictions: OutOfFold,
    X: Array,
) -> float:
    """The expected rise of the out-of-distribution score of a new row, from the fold
    models to the model of all rows; 0 if it cannot be estimated.

    Parameters
    ----------
    smaller : sequence of SmallerModel
        Two models, without the first two and without the first three folds.
    held : mapping
        The held rows of every class.
    predictions : OutOfFold
        The predictions of the fold models, near copies included.
    X : array (n, d)
        The rows that they predicted.
    """
    labels = predictions.classes.tolist()
    counts = np.zeros((4, len(labels)))
    counts[0] = [len(held[label].digests) for label in labels]
    counts[1] = counts[0] - counts[0] / np.minimum(counts[0], FOLDS)
    for row, model in zip(counts[2:], smaller):
        row[:] = [model.rows.get(label, 0) for label in labels]
    n = counts[:, predictions.true]

    compared = predictions.new & (predictions.fold < COMPARED_FOLDS)
    rows = np.flatnonzero(compared & (n[2] > 0))
    second = _ood_scores(smaller[0].head, predictions, X, rows)
    if second is None:
        return 0.0
    n = n[:, rows]
    weight = predictions.weight[rows]
    weight = weight / weight.sum()
    first = _ood_scores_of_folds(predictions)[rows]
    rise = weight * (first - second)
    exponent = LOGARITHM

    # a third model has no rows of a class of three
    with_third = n[3] > 0
    third = _ood_scores(smaller[1].head, predictions, X, rows[with_third])
    if third is not None:
        earlier = second[with_third] - third
        earlier = weight[with_third] * earlier
        exponent = _exponent(n[:, with_third], rise[with_third], earlier)
    return float(rise @ _ratio(n[0], n[1], n[2], exponent))


def _ood_scores_of_folds(predictions: OutOfFold) -> Array:
    """The out-of-distribution scores by the fold models; 0 where there are none.
    # (n,)
    """
    assessed = predictions.assessed[:, None]
    scores = np.where(assessed, predictions.scores, 0)
    return ood_scores(scores, predictions.doubt, *_spreads(predictions))


def _ood_scores(
    head: Head,
    predictions: OutOfFold,
    X: Array,
    rows: Array,
) -> Array | None:
    """The out-of-distribution scores of rows by another model; None if there are
    none.
    """
    S = scores_of(head, X[rows])
    if S is None:
        return None
    doubt = None if predictions.doubt is None else head.doubt(X[rows])
    return ood_scores(S, doubt, *_spreads(predictions))


def _spreads(predictions: OutOfFold) -> tuple[float, float]:
    """The spreads of scores and doubts by which p-values divide them."""
    new = predictions.new
    scores = predictions.scores[new]
    doubt = predictions.doubt
    if doubt is not None:
        doubt = doubt[new]
    return spreads_of(scores, doubt)


def _exponent(
    n: Array,
    rise: Array,
    earlier_rise: Array,
) -> float:
    """The exponent of the power law through the scores of three models.

    `n` holds the numbers of rows (4, rows) of the classes: all, and those of the three
    models. The rises are those from the second to the first model and from the third to
    the second one.
    """
    if earlier_rise.sum() <= 0:
        return LOGARITHM
    gaps = []
    for exponent in EXPONENTS.tolist():
        ratio = _ratio(n[1], n[2], n[3], exponent)
        predicted = float(earlier_rise @ ratio)
        gaps.append(abs(predicted - float(rise.sum())))
    closest = int(np.argmin(gaps))
    return float(EXPONENTS[closest])


def _ratio(
    n: Array,
    fewer: Array,
    fewest: Array,
    exponent: float,
) -> Array:
    """The rise from `fewer` rows to `n`, as a multiple of that from `fewest` to
    `fewer`.
    """
    logs = np.log(np.stack([n, fewer, fewest]))
    if exponent == LOGARITHM:
        powers = logs
    else:
        # relative to `n`: differences of large powers would overflow
        powers = np.expm1(exponent * (logs - logs[0])) / exponent
    rise = powers[0] - powers[1]
    earlier_rise = powers[1] - powers[2]
    return np.asarray(rise / earlier_rise)
