"""Problems in labelled data: label errors, duplicates, outliers and unreadable
inputs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from imprint import recipes
from imprint.active.suggestions import NEAR_DUPLICATE, ROUNDING
from imprint.calibration import out_of_fold
from imprint.core.arrays import Array
from imprint.embeddings import Skipped
from imprint.evaluation.evaluation import JsonResult, Label, unreadable
from imprint.head import Head
from imprint.kernels.neighbours import nearest
from imprint.kernels.rows import unit_blocks
from imprint.kernels.scores import softmax
from imprint.method import Method
from imprint.tags import TagHead
from imprint.tags.calibration import leave_one_out
from imprint.tags.head import default_method, predicted_sets

# Duplicates of a row are among its nearest rows: so many copies of one are found.
NEIGHBOURS = 6

# Outliers are found in the leading principal components, of which there are at most so
# many, and ten rows for each.
MAX_COMPONENTS = 50
ROWS_PER_COMPONENT = 10
# Directions with less variance than this share of the largest are rounding.
MIN_VARIANCE_SHARE = 1e-9
# minimum number of robust standard deviations above the median distance of an outlier
OUTLIER_DEVIATIONS = 3.0
# The standard deviation of normal values is so many times their median absolute
# deviation, 1 / Phi^-1(3/4).
DEVIATIONS_PER_MAD = 1.4826

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

TINY = np.finfo(np.float64).tiny  # keeps logarithms finite


class Suspect(NamedTuple):
    """A label to check: the suggested class, its calibrated probability, and the
    `score` by which rows are sorted.

    Examples
    --------
    >>> from imprint.evaluation import Suspect
    >>> Suspect("3.png", "dog", suggested="cat", probability=0.99, score=6.2).suggested
    'cat'
    """

    path: str
    label: Label
    suggested: Label
    probability: float
    score: float


@dataclass(frozen=True)
class Inspection(JsonResult):
    """Labels to check, duplicates, outliers and unreadable inputs of labelled data.

    Examples
    --------
    >>> from imprint.evaluation import Inspection
    >>> Inspection([], [["a.png", "b.png"]], [], []).as_json()["duplicates"]
    [['a.png', 'b.png']]
    """

    mislabelled: list[Suspect]  # labels to check, the highest score first
    duplicates: list[list[str]]  # groups with different labels first
    outliers: list[str]  # the farthest first
    unreadable: list[dict[str, str]]
    conflicts: int = field(
        default=0,
        repr=False,
        compare=False,
    )
    """The number of groups with different labels, which come first in `duplicates`."""


def inspect_rows(
    X: Array,
    y: Array,
    names: Sequence[str],
    skipped: Sequence[Skipped] = (),
    tags: tuple[Label, ...] | None = None,
    blocks: tuple[int, ...] = (),
) -> Inspection:
    """Find label errors, duplicates and outliers among labelled embeddings.

    Parameters
    ----------
    X : array of shape (n, d)
        Embeddings.
    y : array of shape (n,)
        Labels, or label sets. Labels are compared with the predictions of five
        cross-validation models; classes with one row are not. Label sets are compared
        with leave-one-out predictions.
    names : sequence of str
        The names of the rows, such as paths.
    skipped : sequence of Skipped
        Inputs that could not be read. [default: none]
    tags : tuple, optional
        All labels, if `y` holds label sets.
    blocks : tuple of int
        The widths of the blocks of X, if it has several. [default: one]

    Returns
    -------
    Inspection
        What should be checked.

    Examples
    --------
    >>> import numpy as np
    >>> from imprint.evaluation import inspect_rows
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["cat", "dog"], 20)
    >>> X = rng.normal(size=(40, 8)) + 4.0 * (y == "dog")[:, None]
    >>> y[3] = "dog"  # a wrong label
    >>> X[30] = X[31]  # the same row twice
    >>> result = inspect_rows(X, y, [f"{i}.png" for i in range(40)])
    >>> [(suspect.path, suspect.suggested) for suspect in result.mislabelled]
    [('3.png', 'cat')]
    >>> ["30.png", "31.png"] in result.duplicates
    True
    """
    groups = duplicates(X, blocks)
    conflicting = [group for group in groups if len(np.unique(y[group])) > 1]
    agreeing = [group for group in groups if len(np.unique(y[group])) == 1]
    if tags is None:
        mislabelled = suspects(X, y, names, blocks)
    else:
        mislabelled = tag_suspects(X, y, tags, names, blocks)

    def names_of(group: Sequence[int]) -> list[str]:
        return [names[i] for i in group]

    return Inspection(
        mislabelled=mislabelled,
        duplicates=list(map(names_of, conflicting + agreeing)),
        outliers=names_of(outliers(X, blocks)),
        unreadable=unreadable(skipped),
        conflicts=len(conflicting),
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
    is_other = indices != itself
    to_nearest = np.where(is_other, distances, np.inf).min(axis=1)
    distinct = to_nearest[to_nearest > ROUNDING]
    limit = ROUNDING
    if len(distinct):
        limit = max(ROUNDING, NEAR_DUPLICATE * float(np.median(distinct)))

    # Copies of copies are in one group: the groups are the connected components.
    close = (distances <= limit) & is_other
    first, _ = np.nonzero(close)
    second = indices[close]
    ones = np.ones(len(first))
    pairs = coo_matrix((ones, (first, second)), shape=(len(U), len(U)))
    _, component = connected_components(pairs, directed=False)
    by_component = np.argsort(component, kind="stable")
    ends = np.cumsum(np.bincount(component))
    groups = np.split(by_component, ends[:-1])
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
    is_significant = values > values[-1] * MIN_VARIANCE_SHARE
    leading = np.flatnonzero(is_significant)[-count:]
    components = U @ vectors[:, leading]
    squared = np.sum(components**2 / values[leading], axis=1)
    logarithms = np.log(squared + TINY)
    above = logarithms - np.median(logarithms)
    deviation = DEVIATIONS_PER_MAD * float(np.median(np.abs(above)))
    limit = OUTLIER_DEVIATIONS * deviation
    # Without a spread, there is no usual distance.
    if not limit > 0:
        return []
    by_distance = np.argsort(-above, kind="stable").tolist()
    return [i for i in by_distance if above[i] > limit]


def suspects(
    X: Array,
    y: Array,
    names: Sequence[str],
    blocks: tuple[int, ...] = (),
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
    P = predictions.probabilities()
    classes = predictions.classes.tolist()
    true = predictions.true
    errors = label_errors(
        predictions.scores,
        predictions.shares,
        P,
        true,
        predictions.assessed,
    )
    to_check = []
    for i, c, score in errors:
        suspect = Suspect(
            path=names[rows[i]],
            label=classes[true[i]],
            suggested=classes[c],
            probability=float(P[i, c]),
            score=round(score, 3),
        )
        to_check.append(suspect)
    return to_check


def tag_suspects(
    X: Array,
    y: Array,
    labels: tuple[Label, ...],
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
    P = head.probabilities(predictions.scores)
    Y = predictions.targets
    # the probability that a tag is present, or absent, as stated
    agreement = np.where(Y == 1, P, 1 - P)
    is_doubtful = agreement < MAX_TAG_PROBABILITY
    corrected = np.where(is_doubtful, 1 - Y, Y)
    better = corrected | (P >= MIN_TAG_PROBABILITY)
    is_listed = is_doubtful.any(axis=1)
    is_listed &= better.any(axis=1)  # a row has at least one tag
    is_listed &= (better != Y).any(axis=1)
    to_check = []
    for i in np.flatnonzero(is_listed):
        lowest = float(agreement[i].min())
        stated, suggested = predicted_sets(np.stack([Y[i], better[i]]), labels)
        suspect = Suspect(
            path=names[order[predictions.rows[i]]],
            label=stated,
            suggested=suggested,
            probability=1 - lowest,
            score=round(-float(np.log(lowest)), 3),
        )
        to_check.append(suspect)
    return sorted(to_check, key=lambda suspect: -suspect.score)


def label_errors(
    S: Array,
    shares: Array,
    P: Array,
    labels: Array,
    assessed: Array,
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
    S = S[rows]
    shares = shares[rows]
    P = P[rows]
    labels = labels[rows]
    best = shares.argmax(axis=1)
    scores = label_error_scores(S, shares, labels)
    is_unlikely = scores > -np.log(MAX_LABEL_PROBABILITY)
    candidates = (best != labels) & is_unlikely
    is_confident = P.max(axis=1) >= MIN_CONFIDENCE * P.max(initial=0.0)
    is_typical = _typicality(S, labels, best) >= TYPICAL_SHARE
    typical = candidates & is_confident & is_typical
    # A share of 1 - TYPICAL_SHARE of all wrong labels is typical.
    count = int(np.ceil(typical.sum() / (1 - TYPICAL_SHARE)))
    order = np.flatnonzero(candidates)
    by_score = np.argsort(-scores[order], kind="stable")
    order = order[by_score][:count]
    return list(zip(rows[order].tolist(), best[order].tolist(), scores[order].tolist()))


def label_error_scores(
    S: Array,
    shares: Array,
    labels: Array,
) -> Array:
    """Minus the logarithm of the probability of each label; higher means more suspect.
    # (n,)

    Two estimates of that probability are averaged: the out-of-fold probability, and the
    posterior of the label given all scores, by linear discriminant analysis. The second
    takes into account which classes are often confused.
    """
    rows = np.arange(len(labels))
    posterior = _discriminant_analysis(S, labels)[rows, labels]
    share = shares[rows, labels].astype(np.float64)
    total = np.log(share + TINY) + np.log(posterior + TINY)
    return np.asarray(-total / 2)


def _typicality(
    S: Array,
    labels: Array,
    columns: Array,
) -> Array:
    """The share of the rows of class `columns[i]` whose score in that class is at most
    that of row i.  # (n,)
    """
    shares = np.zeros(len(S))
    for c in np.unique(columns):
        scores = np.sort(S[labels == c, c])
        rows = columns == c
        not_above = np.searchsorted(scores, S[rows, c], side="right")
        shares[rows] = not_above / max(len(scores), 1)
    return shares


def _discriminant_analysis(S: Array, labels: Array) -> Array:
    """Posterior of every label given the scores: normal scores around each class mean
    with one covariance.
    """
    S = S.astype(np.float64)
    C = S.shape[1]
    counts = np.bincount(labels, minlength=C)
    means = np.zeros((C, C))
    np.add.at(means, labels, S)
    means /= np.maximum(counts, 1)[:, None]
    residuals = S - means[labels]
    covariance = residuals.T @ residuals / len(S)
    variance = np.trace(covariance) / C
    diagonal = np.diag_indices(C)
    covariance[diagonal] += SHRINKAGE * variance + TINY
    # Of normal densities with one covariance V, the logarithms differ by the linear
    # function s V^-1 m_c - m_c V^-1 m_c / 2.
    axes = np.linalg.solve(covariance, means.T)  # (C, C)
    fit = S @ axes - np.sum(means.T * axes, axis=0) / 2
    return softmax(np.where(counts > 0, fit, -np.inf))
