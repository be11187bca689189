from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from imprint.core.layout import COUNTED, Entry, Layout
from imprint.core.types import Array, State
from imprint.generators._base import PerClassGenerator
from imprint.kernels.rows import column_means, squared_distances


@dataclass(frozen=True, kw_only=True)
class Mean(PerClassGenerator):
    """The mean of the class's embeddings. More rows of a known class move it exactly."""

    takes_tensors: ClassVar[bool] = True
    exact_extension: ClassVar[bool] = True
    layout: ClassVar[Layout | None] = {
        "rows": Entry("1 d"),
        "mass": Entry("1", least=1, most=COUNTED),
        "spread": Entry("1", least=0),
    }

    def summarise(self, X: Array, rng: np.random.Generator) -> State:
        mean = column_means(X)
        spread = squared_distances(X, mean).mean(keepdims=True)
        return {"rows": mean[None, :], "mass": np.array([float(len(X))]), "spread": spread}

    def extend(self, state: State, X: Array, rng: np.random.Generator) -> State:
        means = np.stack([state["rows"][0], column_means(X)])
        mass = np.array([state["mass"][0], float(len(X))])
        spread = np.array([state["spread"][0], squared_distances(X, means[1]).mean()])
        mean = mass @ means / mass.sum()
        joint = mass @ (spread + squared_distances(means, mean)) / mass.sum()
        return {"rows": mean[None, :], "mass": mass.sum(keepdims=True), "spread": np.array([joint])}
