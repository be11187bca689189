"""A flat map of embeddings: linear and the same every time, so that new points can be placed on it."""

from dataclasses import dataclass

import numpy as np

from imprint.core.types import Array
from imprint.kernels.rows import unit_rows


@dataclass(frozen=True, eq=False)
class Projection:
    """Where unit rows go: (row - centre) @ axes."""

    centre: Array  # (d,)
    axes: Array  # (d, 2)

    def place(self, X: Array) -> Array:
        """The points of rows on the map.  # (n, 2)"""
        return np.asarray((unit_rows(X.astype(np.float64)) - self.centre) @ self.axes)


def project(X: Array, y: Array) -> Projection:
    """The plane in which the means of the classes lie farthest apart.

    These are the principal axes of the class means; where there are fewer than three classes, the missing axes are
    those along which the rows themselves spread most. Of each axis the largest entry is positive.
    """
    U = unit_rows(X.astype(np.float64))
    labels, index = np.unique(y, return_inverse=True)
    means = np.zeros((len(labels), U.shape[1]))
    np.add.at(means, index, U)
    means /= np.bincount(index)[:, None]
    centre = means.mean(axis=0)
    axes = _principal(means - centre, 2)
    if axes.shape[1] < 2:
        rest = U - centre
        rest = rest - rest @ axes @ axes.T
        axes = np.concatenate([axes, _principal(rest - rest.mean(axis=0), 2 - axes.shape[1])], axis=1)
    if axes.shape[1] < 2:
        axes = np.concatenate([axes, np.zeros((U.shape[1], 2 - axes.shape[1]))], axis=1)
    return Projection(centre, axes)


def _principal(rows: Array, count: int) -> Array:
    """At most so many principal axes of centred rows, with a fixed sign.  # (d, <= count)"""
    _, values, vectors = np.linalg.svd(rows, full_matrices=False)
    kept = vectors[:count][values[:count] > 1e-9 * max(1.0, float(values[0]))]
    largest = np.abs(kept).argmax(axis=1)
    return np.asarray(kept * np.sign(kept[np.arange(len(kept)), largest])[:, None]).T
