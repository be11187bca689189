"""The map of a page: points, where the classes lie, and what places a new point."""

from typing import Any

import numpy as np

from imprint.core.types import Array
from imprint.evaluation.projection import Projection

MOST = 2000
"""Points on one map, evenly taken from all rows."""


def flat_map(projection: Projection, X: Array, groups: Array, marked: Array) -> dict[str, Any]:
    """Rows as [x, y, group, row], the marked ones last so that they lie on top; `groups` count from 0."""
    others = np.flatnonzero(~marked)
    room = max(MOST - int(marked.sum()), 0)
    step = np.linspace(0, len(others) - 1, min(room, len(others))).round().astype(np.intp)
    rows = np.concatenate([others[step], np.flatnonzero(marked)])
    places = projection.place(X[rows])
    span = np.abs(places).max(initial=0.0) or 1.0
    points = [[*_rounded(place / span), int(groups[i]), int(i)] for place, i in zip(places, rows)]
    return {
        "points": points,
        "marked": int(marked.sum()),
        "centre": _rounded(projection.centre),
        "axes": [_rounded(axis / span) for axis in projection.axes.T],
    }


def _rounded(values: Array) -> list[float]:
    return [float(f"{v:.4g}") for v in values]
