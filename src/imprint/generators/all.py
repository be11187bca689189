from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from imprint.core.arrays import to_numpy
from imprint.core.layout import Layout
from imprint.core.types import Array, State
from imprint.generators._base import MASS, ROWS, PerClassGenerator, masses


@dataclass(frozen=True, kw_only=True)
class AllRows(PerClassGenerator):
    """Every embedding is a proxy, and its mass is its weight. More rows of a known class are appended."""

    takes_tensors: ClassVar[bool] = True
    exact_extension: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True
    layout: ClassVar[Layout | None] = {"rows": ROWS, "mass": MASS._replace(optional=True)}

    def summarise(self, X: Array, rng: np.random.Generator, weight: Array | None = None) -> State:
        rows = {"rows": np.array(to_numpy(X))}
        return rows if weight is None else {**rows, "mass": masses(X, weight)}

    def extend(self, state: State, X: Array, rng: np.random.Generator, weight: Array | None = None) -> State:
        rows = {"rows": np.concatenate([state["rows"], X])}
        if weight is None and "mass" not in state:
            return rows
        before = masses(state["rows"], state.get("mass"))
        return {**rows, "mass": np.concatenate([before, masses(X, weight)])}
