"""A two-dimensional map of embeddings: linear and deterministic, so that new points can be added to it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from imprint.core.types import Array
from imprint.imprinter import Imprinter
from imprint.kernels.rows import unit_rows

MAX_POINTS = 2000
"""Points on one map, taken evenly from all rows."""


@dataclass(frozen=True, eq=False)
class Projection:
    """A linear map of unit rows to the plane: (row - centre) @ axes."""

    centre: Array  # (d,)
    axes: Array  # (d, 2)

    def points(self, X: Array) -> Array:
        """The positions of rows on the map.  # (n, 2)"""
        return np.asarray((unit_rows(X.astype(np.float64)) - self.centre) @ self.axes)

    def as_json(self, X: Array, groups: Array, marked: Array) -> dict[str, Any]:
        """Rows as [x, y, group, row], the marked ones last so that they are drawn on top; `groups` count from 0."""
        others = np.flatnonzero(~marked)
        room = max(MAX_POINTS - int(marked.sum()), 0)
        sample = np.linspace(0, len(others) - 1, min(room, len(others))).round().astype(np.intp)
        rows = np.concatenate([others[sample], np.flatnonzero(marked)])
        points = self.points(X[rows])
        span = np.abs(points).max(initial=0.0) or 1.0
        return {
            "points": [[*_rounded(point / span), int(groups[i]), int(i)] for point, i in zip(points, rows)],
            "marked": int(marked.sum()),
            "centre": _rounded(self.centre),
            "axes": [_rounded(axis / span) for axis in self.axes.T],
        }


def project(X: Array, y: Array) -> Projection:
    """The plane in which the class means are farthest apart.

    Its axes are the principal axes of the class means, completed by those of the rows if there are fewer than three
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
    return Projection(centre, np.pad(axes, ((0, 0), (0, 2 - axes.shape[1]))))


def project_model(model: Imprinter, X: Array, y: Array) -> Projection:
    """The map of the training rows in the model file, or of the given rows where it contains none."""
    rows = [exemplars.X for exemplars in model.state.exemplars.values()]
    if rows:
        X, y = np.concatenate(rows), np.repeat(np.arange(len(rows)), [len(part) for part in rows])
    return project(X, y)


def _principal(rows: Array, count: int) -> Array:
    """At most `count` principal axes of centred rows, with a fixed sign.  # (d, <= count)"""
    _, values, vectors = np.linalg.svd(rows, full_matrices=False)
    axes = vectors[:count][values[:count] > 1e-9 * max(1.0, float(values[0]))]
    largest = np.abs(axes).argmax(axis=1)
    return np.asarray(axes * np.sign(axes[np.arange(len(axes)), largest])[:, None]).T


def _rounded(values: Array) -> list[float]:
    return [float(f"{v:.4g}") for v in values]
