from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from imprint.core.types import Array, State
from imprint.generators._base import PerClassGenerator
from imprint.kernels.rows import column_means


@dataclass(frozen=True, kw_only=True)
class Mean(PerClassGenerator):
    """The mean of the class's embeddings. More rows of a known class move it exactly."""

    exact_extension: ClassVar[bool] = True

    def summarise(self, X: Array, rng: np.random.Generator) -> State:
        return {"rows": column_means(X)[None, :], "mass": np.array([float(len(X))])}

    def extend(self, state: State, X: Array, rng: np.random.Generator) -> State:
        before, now = state["mass"][0], float(len(X))
        mean = (state["rows"][0] * before + column_means(X) * now) / (before + now)
        return {"rows": mean[None, :], "mass": np.array([before + now])}
