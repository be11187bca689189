from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from imprint.core.layout import COUNTED, SMALLEST_MASS, Entry, Layout
from imprint.core.types import Array, State
from imprint.generators._base import PerClassGenerator
from imprint.kernels.rows import column_means, squared_distances, weighted_means


@dataclass(frozen=True, kw_only=True)
class Mean(PerClassGenerator):
    """The mean, or weighted mean, of the class's embeddings. More rows of a known class move it exactly."""

    takes_tensors: ClassVar[bool] = True
    exact_extension: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True
    layout: ClassVar[Layout | None] = {
        "rows": Entry("1 d"),
        "mass": Entry("1", least=SMALLEST_MASS, most=COUNTED),
        "spread": Entry("1", least=0),
    }

    def summarise(self, X: Array, rng: np.random.Generator, weight: Array | None = None) -> State:
        if weight is None:
            mean = column_means(X)
            spread = squared_distances(X, mean).mean(keepdims=True)
            return {"rows": mean[None, :], "mass": np.array([float(len(X))]), "spread": spread}
        mass, mean = weight.sum(dtype=np.float64), weighted_means(X, weight)
        spread = np.array([weight @ squared_distances(X, mean) / mass])
        return {"rows": mean[None, :], "mass": np.array([mass]), "spread": spread}

    def extend(self, state: State, X: Array, rng: np.random.Generator, weight: Array | None = None) -> State:
        more = self.summarise(X, rng, weight)
        means, mass, spread = (np.concatenate([state[name], more[name]]) for name in ("rows", "mass", "spread"))
        mean = mass @ means / mass.sum()
        joint = mass @ (spread + squared_distances(means, mean)) / mass.sum()
        return {"rows": mean[None, :], "mass": mass.sum(keepdims=True), "spread": np.array([joint])}
