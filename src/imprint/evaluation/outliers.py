"""Rows that look like nothing else in the data."""

import numpy as np

from imprint.core.types import Array
from imprint.kernels.rows import unit_rows

COMPONENTS = 50
ROWS_PER_COMPONENT = 10
FAR = 3.0
"""Robust standard deviations above the median at which a row is an outlier; see docs/check.md."""


def outliers(X: Array) -> list[int]:
    """The rows farthest out, the farthest first.

    Measured is the Mahalanobis distance of unit rows in their leading principal components, and how far its logarithm
    lies above the median of all rows. Fewer than 20 rows have none.
    """
    scores = farness(X)
    found = np.flatnonzero(scores > FAR)
    order: list[int] = found[np.argsort(-scores[found], kind="stable")].tolist()
    return order


def farness(X: Array) -> Array:
    """How far out every row is, in robust standard deviations above the median.  # (n,)"""
    count = min(COMPONENTS, X.shape[1], len(X) // ROWS_PER_COMPONENT)
    if count < 2:
        return np.zeros(len(X))
    U = unit_rows(X.astype(np.float64))
    U -= U.mean(axis=0)
    values, vectors = np.linalg.eigh(U.T @ U)
    values, vectors = values[-count:], vectors[:, -count:]
    kept = values > values[-1] * 1e-9
    if not kept.any():
        return np.zeros(len(X))
    squared = np.sum((U @ vectors[:, kept]) ** 2 / values[kept], axis=1)
    logarithms = np.log(squared + np.finfo(np.float64).tiny)
    above = logarithms - np.median(logarithms)
    scale = 1.4826 * float(np.median(np.abs(above)))
    return np.asarray(above / scale if scale > 0 else np.zeros(len(X)))
