"""Problems in labelled data: label errors, duplicates, outliers and unreadable
inputs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from imprint import recipes
from imprint.active.suggestions import NEAR_DUPLICATE, ROUNDING
from imprint.calibration import out_of_fold
from imprint.core.arrays import Array
from imprint.embeddings import Skipped
from imprint.evaluation.evaluation import JsonResult, unreadable
from imprint.head import Head
from imprint.kernels.neighbours import nearest
from imprint.kernels.rows import unit_blocks
from imprint.kernels.scores import softmax
from imprint.method import Method
from imprint.tags import TagHead
from imprint.tags.calibration import leave_one_out
from imprint.tags.head import default_method, predicted_sets

NEIGHBOURS = 6  # of a row, which may be duplicates
MAX_COMPONENTS = 50  # principal components in which outliers are found
ROWS_PER_COMPONENT = 10
# minimum number of robust standard deviations above the median distance of an outlier
OUTLIER_DEVIATIONS = 3.0
# share of the scores' mean variance that is added to each variance, so that few rows
# suffice
SHRINKAGE = 0.5
MAX_LABEL_PROBABILITY = 0.005  # of the label of a listed row
# in the suggested class of a typical row, relative to the highest confidence of all
# rows
MIN_CONFIDENCE = 0.98
# of the rows of a class have lower scores than a row that is typical of the class
TYPICAL_SHARE = 0.3
# that a tag of a listed row is present, or absent, as the data state
MAX_TAG_PROBABILITY = 0.05
MIN_TAG_PROBABILITY = 0.5  # of a tag that is suggested


class Suspect(NamedTuple):
    """A label to check: the suggested class, its calibrated probability, and the
    `score` by which rows are sorted.
    """

    path: str
    label: Any
    suggested: Any
    probability: float
    score: float


@dataclass(frozen=True)
class Inspection(JsonResult):
    """Labels to check, duplicates, outliers and unreadable inputs of labelled data."""

    mislabelled: list[Suspect]  # labels to check, the highest score first
    duplicates: list[list[str]]  # groups with different labels first
    outliers: list[str]  # the farthest first
    unreadable: list[dict[str, str]]
    conflicts: int = field(default=0, repr=False, compare=False)
    """The number of groups with different labels, which come first in `duplicates`."""


def inspect_rows(
    X: Array,
    y: Array,
    names: Sequence[str],
    skipped: Sequence[Skipped] = (),
    tags: tuple[Any, ...] | None = None,
    blocks: tuple[int, ...] = (),
) -> Inspection:
    """Find label errors, duplicates and outliers among labelled embeddings.

    Labels are compared with the predictions of five cross-validation models; classes
    with one row are not. Label sets `y` of the labels `tags` are compared with
    leave-one-out predictions. `blocks` are the widths of the blocks of X, if it has
    several.
    """
    groups = sorted(
        duplicates(X, blocks), key=lambda group: len(np.unique(y[group])) == 1
    )
    return Inspection(
        mislabelled=(
            suspects(X, y, names, blocks)
            if tags is None
            else tag_suspects(X, y, tags, names, blocks)
        ),
        duplicates=[[names[i] for i in group] for group in groups],
        outliers=[names[i] for i in outliers(X, blocks)],
        unreadable=unreadable(skipped),
        conflicts=sum(len(np.unique(y[group])) > 1 for group in groups),
    )


def duplicates(X: Array, blocks: Sequence[int] = ()) -> list[list[int]]:
    """Groups of rows that are copies or near copies of one another, in ascending order.

    Distances are between unit rows. The limit is relative to the usual distance of
    nearest rows, so it suits every backbone.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    if len(X) < 2:
        return []
    U = unit_blocks(X.astype(np.float64), blocks)
    distances, indices = nearest(U, U, NEIGHBOURS + 1)
    itself = np.arange(len(U))[:, None]
    to_nearest = np.where(indices == itself, np.inf, distances).min(axis=1)
    distinct = to_nearest[to_nearest > ROUNDING]
    limit = (
        max(ROUNDING, NEAR_DUPLICATE * float(np.median(distinct)))
        if len(distinct)
        else ROUNDING
    )
    close = (distances <= limit) & (indices != itself)
    pairs = coo_matrix(
        (np.ones(close.sum()), (np.nonzero(close)[0], indices[close])),
        shape=(len(U), len(U)),
    )
    component = connected_components(pairs, directed=False)[1]
    groups = np.split(
        np.argsort(component, kind="stable"), np.cumsum(np.bincount(component))[:-1]
    )
    return sorted(group.tolist() for group in groups if len(group) > 1)


def outliers(X: Array, blocks: Sequence[int] = ()) -> list[int]:
    """Rows whose Mahalanobis distance from the centre is unusually large, the largest
    first.

    The distance is that of unit rows in their leading principal components, on a
    logarithmic scale. Fewer than 20 rows have no outliers.
    """
    count = min(MAX_COMPONENTS, X.shape[1], len(X) // ROWS_PER_COMPONENT)
    if count < 2:
        return []
    U = unit_blocks(X.astype(np.float64), blocks)
    U -= U.mean(axis=0)
    values, vectors = np.linalg.eigh(U.T @ U)
    leading = np.flatnonzero(values > values[-1] * 1e-9)[-count:]
    squared = np.sum((U @ vectors[:, leading]) ** 2 / values[leading], axis=1)
    logarithms = np.log(squared + np.finfo(np.float64).tiny)
    above = logarithms - np.median(logarithms)
    limit = OUTLIER_DEVIATIONS * 1.4826 * float(np.median(np.abs(above)))
    return [
        i for i in np.argsort(-above, kind="stable").tolist() if above[i] > limit > 0
    ]


def suspects(
    X: Array, y: Array, names: Sequence[str], blocks: tuple[int, ...] = ()
) -> list[Suspect]:
    """Rows that out-of-fold predictions assign to another class, the highest score
    first.
    """
    _, index, counts = np.unique(y, return_inverse=True, return_counts=True)
    rows = np.flatnonzero(counts[index] > 1)  # of classes with several rows
    if np.sum(counts > 1) < 2:
        return []
    method = Method.of(**recipes.describe("kernel").parts(), blocks=blocks or None)
    predictions = out_of_fold(method, 0, X[rows], y[rows])
    P, classes, true = (
        predictions.probabilities(),
        predictions.classes.tolist(),
        predictions.true,
    )
    return [
        Suspect(
            names[rows[i]],
            classes[true[i]],
            classes[c],
            float(P[i, c]),
            round(score, 3),
        )
        for i, c, score in label_errors(
            predictions.scores, predictions.shares, P, true, predictions.assessed
        )
    ]


def tag_suspects(
    X: Array,
    y: Array,
    labels: tuple[Any, ...],
    names: Sequence[str],
    blocks: tuple[int, ...] = (),
) -> list[Suspect]:
    """Rows with a tag whose leave-one-out probability is tiny, or without one that is
    all but certain.
    """
    method = replace(default_method(), blocks=blocks)
    head = TagHead(Head(method, 0, X.dtype), labels).learn(X, y)
    # of the proxies
    order = np.argsort(np.searchsorted(head.imprinted.classes, y), kind="stable")
    predictions = leave_one_out(head)
    P, Y = head.probabilities(predictions.scores), predictions.targets
    # the probability that a tag is present, or absent, as stated
    agreement = np.where(Y == 1, P, 1 - P)
    better = np.where(agreement < MAX_TAG_PROBABILITY, 1 - Y, Y) | (
        P >= MIN_TAG_PROBABILITY
    )
    is_listed = (
        (agreement.min(axis=1) < MAX_TAG_PROBABILITY)
        & better.any(axis=1)
        & (better != Y).any(axis=1)
    )
    to_check = []
    for i in np.flatnonzero(is_listed):
        lowest = float(agreement[i].min())
        stated, suggested = predicted_sets(np.stack([Y[i], better[i]]), labels)
        name = names[order[predictions.rows[i]]]
        to_check.append(
            Suspect(
                name, stated, suggested, 1 - lowest, round(-float(np.log(lowest)), 3)
            )
        )
    return sorted(to_check, key=lambda suspect: -suspect.score)


def label_errors(
    S: Array, shares: Array, P: Array, labels: Array, assessed: Array
) -> list[tuple[int, int, float]]:
    """Rows whose label is probably wrong: row, column of the suggested class, and
    score, the highest score first.

    S, shares and P (n, C) are out-of-fold scores, uncalibrated and calibrated
    probabilities, `labels` (n,) the columns of the labels, and `assessed` (n,) tells
    which rows have predictions.

    A wrongly labelled row is an ordinary row of another class: with probability 1 -
    `TYPICAL_SHARE`, its score in that class exceeds a share `TYPICAL_SHARE` of the
    scores of the rows of that class. A row that is merely hard is typical of no class.
    So the number of wrong labels is estimated from the rows that are typical of another
    class, as Storey estimates the number of false hypotheses from p-values, and that
    many rows are listed.
    """
    rows = np.flatnonzero(assessed & np.isfinite(S).all(axis=1))
    S, shares, P, labels = S[rows], shares[rows], P[rows], labels[rows]
    best, scores = shares.argmax(axis=1), label_error_scores(S, shares, labels)
    candidates = (best != labels) & (scores > -np.log(MAX_LABEL_PROBABILITY))
    confident = P.max(axis=1) >= MIN_CONFIDENCE * P.max(initial=0.0)
    typical = candidates & confident & (_typicality(S, labels, best) >= TYPICAL_SHARE)
    count = int(np.ceil(typical.sum() / (1 - TYPICAL_SHARE)))
    order = np.flatnonzero(candidates)
    order = order[np.argsort(-scores[order], kind="stable")][:count]
    return list(zip(rows[order].tolist(), best[order].tolist(), scores[order].tolist()))


def label_error_scores(S: Array, shares: Array, labels: Array) -> Array:
    """Minus the logarithm of the probability of each label; higher means more suspect.
    # (n,)

    Two estimates of that probability are averaged: the out-of-fold probability, and the
    posterior of the label given all scores, by linear discriminant analysis. The second
    takes into account which classes are often confused.
    """
    rows = np.arange(len(labels))
    posterior = _discriminant_analysis(S, labels)[rows, labels]
    tiny = np.finfo(np.float64).tiny
    return np.asarray(
        -(
            np.log(shares[rows, labels].astype(np.float64) + tiny)
            + np.log(posterior + tiny)
        )
        / 2
    )


def _typicality(S: Array, labels: Array, columns: Array) -> Array:
    """The share of the rows of class `columns[i]` whose score in that class is at most
    that of row i.  # (n,)
    """
    shares = np.zeros(len(S))
    for c in np.unique(columns):
        scores, rows = np.sort(S[labels == c, c]), columns == c
        shares[rows] = np.searchsorted(scores, S[rows, c], side="right") / max(
            len(scores), 1
        )
    return shares


def _discriminant_analysis(S: Array, labels: Array) -> Array:
    """Posterior of every label given the scores: normal scores around each class mean
    with one covariance.
    """
    S = S.astype(np.float64)
    counts = np.bincount(labels, minlength=S.shape[1])
    means = np.zeros((S.shape[1], S.shape[1]))
    np.add.at(means, labels, S)
    means /= np.maximum(counts, 1)[:, None]
    residuals = S - means[labels]
    covariance = residuals.T @ residuals / len(S)
    variance = np.trace(covariance) / len(covariance)
    covariance[np.diag_indices(len(covariance))] += (
        SHRINKAGE * variance + np.finfo(np.float64).tiny
    )
    axes = np.linalg.solve(covariance, means.T)  # (C, C)
    fit = S @ axes - np.sum(means.T * axes, axis=0) / 2
    return softmax(np.where(counts > 0, fit, -np.inf))
