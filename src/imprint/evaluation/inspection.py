"""Problems in labelled data: label errors, duplicates, outliers and unreadable inputs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from imprint.active.suggestions import NEAR_DUPLICATE, ROUNDING
from imprint.core.types import Array
from imprint.embeddings import Skipped
from imprint.evaluation.evaluation import JsonResult, unreadable
from imprint.evaluation.label_errors import Suspect, suspects, tag_suspects
from imprint.kernels.neighbours import nearest
from imprint.kernels.rows import unit_rows

NEIGHBOURS = 6
COMPONENTS = 50
ROWS_PER_COMPONENT = 10
OUTLIER = 3.0  # minimum number of robust standard deviations above the median distance of an outlier


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
) -> Inspection:
    """Find label errors, duplicates and outliers among labelled embeddings.

    Labels are compared with the predictions of five cross-validation models; classes with one row are not. Label
    sets `y` of the labels `tags` are compared with leave-one-out predictions.
    """
    groups = duplicates(X)
    conflicting = [group for group in groups if len(np.unique(y[group])) > 1]
    ordered = [*conflicting, *(group for group in groups if group not in conflicting)]
    return Inspection(
        mislabelled=suspects(X, y, names) if tags is None else tag_suspects(X, y, tags, names),
        duplicates=[[names[i] for i in group] for group in ordered],
        outliers=[names[i] for i in outliers(X)],
        unreadable=unreadable(skipped),
        conflicts=len(conflicting),
    )


def duplicates(X: Array) -> list[list[int]]:
    """Groups of rows that are copies or near copies of one another, in ascending order.

    Distances are between unit rows. The limit is relative to the usual distance of nearest rows, so it suits every
    backbone.

    >>> duplicates(np.array([[1.0, 0], [0, 1.0], [1.0, 0], [0.6, 0.8]]))
    [[0, 2]]
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    if len(X) < 2:
        return []
    U = unit_rows(X.astype(np.float64))
    distances, indices = nearest(U, U, NEIGHBOURS + 1)
    itself = np.arange(len(U))[:, None]
    to_nearest = np.where(indices == itself, np.inf, distances).min(axis=1)
    distinct = to_nearest[to_nearest > ROUNDING]
    limit = max(ROUNDING, NEAR_DUPLICATE * float(np.median(distinct))) if len(distinct) else ROUNDING
    close = (distances <= limit) & (indices != itself)
    pairs = coo_matrix((np.ones(close.sum()), (np.nonzero(close)[0], indices[close])), shape=(len(U), len(U)))
    component = connected_components(pairs, directed=False)[1]
    groups = np.split(np.argsort(component, kind="stable"), np.cumsum(np.bincount(component))[:-1])
    return sorted(group.tolist() for group in groups if len(group) > 1)


def outliers(X: Array) -> list[int]:
    """Rows whose Mahalanobis distance from the centre is unusually large, the largest first.

    The distance is that of unit rows in their leading principal components, on a logarithmic scale. Fewer than 20 rows
    have no outliers.
    """
    count = min(COMPONENTS, X.shape[1], len(X) // ROWS_PER_COMPONENT)
    if count < 2:
        return []
    U = unit_rows(X.astype(np.float64))
    U -= U.mean(axis=0)
    values, vectors = np.linalg.eigh(U.T @ U)
    varies = np.flatnonzero(values > values[-1] * 1e-9)[-count:]
    squared = np.sum((U @ vectors[:, varies]) ** 2 / values[varies], axis=1)
    logarithms = np.log(squared + np.finfo(np.float64).tiny)
    above = logarithms - np.median(logarithms)
    limit = OUTLIER * 1.4826 * float(np.median(np.abs(above)))
    return [i for i in np.argsort(-above, kind="stable").tolist() if above[i] > limit > 0]
