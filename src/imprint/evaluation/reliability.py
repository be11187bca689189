"""Whether answers given with a probability p are right in p of all cases."""

from typing import NamedTuple

import numpy as np

from imprint.core.types import Array

BINS = 10


class Bin(NamedTuple):
    """Answers of similar probability: how many, their mean probability, and the share that is right."""

    rows: int
    probability: float
    right: float


def reliability(probability: Array, right: Array, bins: int = BINS) -> list[Bin]:
    """Answers in bins of equal width; empty ones are left out.

    >>> reliability(np.array([0.95, 0.93, 0.5]), np.array([True, False, True]))
    [Bin(rows=1, probability=0.5, right=1.0), Bin(rows=2, probability=0.94, right=0.5)]
    """
    place = np.minimum((probability * bins).astype(np.intp), bins - 1)
    groups = [np.flatnonzero(place == b) for b in np.unique(place)]
    return [Bin(len(g), float(probability[g].mean()), float(right[g].mean())) for g in groups]
