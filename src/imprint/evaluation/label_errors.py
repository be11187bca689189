"""Which labels are likely wrong, from scores of models that have not seen the row."""

from typing import Any, NamedTuple

import numpy as np

from imprint.core.types import Array
from imprint.kernels.softmax import softmax

SHRINKAGE = 0.5
"""How much of the scores' mean variance is added to each of them, so that few rows give a usable covariance."""
LISTED = 0.02
"""A label is listed as likely wrong where both readings together give it less than this; see docs/check.md."""


class Suspect(NamedTuple):
    """A row whose label is likely wrong: what it might be instead, and how probable that is out of fold."""

    path: str
    label: Any
    suggested: Any
    probability: float


def mislabelled(S: Array, P: Array, labels: Array) -> list[tuple[int, int]]:
    """Rows whose label is likely wrong and the class they are more like, as places, the most suspect first.

    A row is listed where another class is more probable and its label gets less than `LISTED`; see `doubt_of_labels`.
    """
    doubts, best = doubt_of_labels(S, P, labels), P.argmax(axis=1)
    listed = np.flatnonzero((best != labels) & (doubts > -np.log(LISTED)))
    order = listed[np.argsort(-doubts[listed], kind="stable")]
    return [(int(i), int(best[i])) for i in order]


def doubt_of_labels(S: Array, P: Array, labels: Array) -> Array:
    """How little every row's label fits it: minus the logarithm of a probability, more is more suspect.  # (n,)

    Two readings of out-of-fold scores S (n, C) and probabilities P are averaged: P itself, and how often rows with such
    scores carry this label, by linear discriminant analysis of the scores. The second one knows which classes are often
    confused, so it finds labels that are out of the ordinary and not merely hard. `labels` are columns of S.
    """
    rows = np.arange(len(labels))
    usual = _shares(S, labels)[rows, labels]
    tiny = np.finfo(np.float64).tiny
    return np.asarray(-(np.log(P[rows, labels].astype(np.float64) + tiny) + np.log(usual + tiny)) / 2)


def _shares(S: Array, labels: Array) -> Array:
    """The probability of every label given the scores: normal scores around each class's mean, one covariance."""
    S = S.astype(np.float64)
    counts = np.bincount(labels, minlength=S.shape[1])
    means = np.zeros((S.shape[1], S.shape[1]))
    np.add.at(means, labels, S)
    means /= np.maximum(counts, 1)[:, None]
    residuals = S - means[labels]
    covariance = residuals.T @ residuals / len(S)
    variance = np.trace(covariance) / len(covariance)
    covariance[np.diag_indices(len(covariance))] += SHRINKAGE * variance + np.finfo(np.float64).tiny
    axes = np.linalg.solve(covariance, means.T)  # (C, C)
    fit = S @ axes - np.sum(means.T * axes, axis=0) / 2
    return softmax(np.where(counts > 0, fit, -np.inf))
