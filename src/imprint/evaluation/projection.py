"""A linear and deterministic map of embeddings to the plane."""

from collections.abc import Callable

import numpy as np

from imprint.core.types import Array
from imprint.kernels.rows import unit_rows


def project(X: Array, y: Array) -> Callable[[Array], Array]:
    """A function from rows (n, d) to positions (n, 2) in the plane in which the class means are farthest apart.

    The axes are the principal axes of the class means, completed by those of the rows if there are fewer than three
    classes. The largest entry of each axis is positive.
    """
    U = unit_rows(X.astype(np.float64))
    labels, index = np.unique(y, return_inverse=True)
    means = np.zeros((len(labels), U.shape[1]))
    np.add.at(means, index, U)
    means /= np.bincount(index)[:, None]
    centre, axes = means.mean(axis=0), np.empty((U.shape[1], 0))
    for rows in (means, U):
        if axes.shape[1] < 2:
            rest = rows - centre
            rest = rest - rest @ axes @ axes.T
            axes = np.concatenate([axes, _principal(rest - rest.mean(axis=0), 2 - axes.shape[1])], axis=1)
    axes = np.pad(axes, ((0, 0), (0, 2 - axes.shape[1])))
    return lambda Q: np.asarray((unit_rows(Q.astype(np.float64)) - centre) @ axes)


def _principal(rows: Array, count: int) -> Array:
    """At most `count` principal axes of centred rows, with a fixed sign.  # (d, <= count)"""
    _, values, vectors = np.linalg.svd(rows, full_matrices=False)
    axes = vectors[:count][values[:count] > 1e-9 * max(1.0, float(values[0]))]
    largest = np.abs(axes).argmax(axis=1)
    return np.asarray(axes * np.sign(axes[np.arange(len(axes)), largest])[:, None]).T
