from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from imprint.core.arrays import Array, State
from imprint.generators._base import PerClassGenerator, cluster_layout, joined
from imprint.kernels.rows import column_means, squared_distances


@dataclass(frozen=True, kw_only=True)
class Mean(PerClassGenerator):
    """The mean of the embeddings of the class.

    Rows x_i with weights a_i have the mean sum_i a_i x_i / sum_i a_i. Adding rows to a
    class is exact up to rounding.
    """

    takes_tensors = True
    layout = cluster_layout("1")

    def summarise(
        self, X: Array, rng: np.random.Generator, weight: Array | None = None
    ) -> State:
        mean = column_means(X, weight)
        squares = squared_distances(X, mean)
        if weight is None:
            return {
                "rows": mean[None, :],
                "mass": np.array([float(len(X))]),
                "spread": squares.mean(keepdims=True),
            }
        mass = weight.sum(dtype=np.float64)
        return {
            "rows": mean[None, :],
            "mass": np.array([mass]),
            "spread": np.array([weight @ squares / mass]),
        }

    def extend(
        self,
        state: State,
        X: Array,
        rng: np.random.Generator,
        weight: Array | None = None,
    ) -> State:
        return self.merge([state, self.summarise(X, rng, weight)], rng)

    def merge(self, states: Sequence[State], rng: np.random.Generator) -> State:
        means = joined(states, "rows")
        mass = joined(states, "mass")
        spread = joined(states, "spread")
        total = mass.sum()
        mean = mass @ means / total
        # around the common mean, by which the means of the parts differ
        squares = spread + squared_distances(means, mean)
        return {
            "rows": mean[None, :],
            "mass": np.array([total]),
            "spread": np.array([mass @ squares / total]),
        }

    def merges_exactly(self, states: Sequence[State], rng: np.random.Generator) -> bool:
        return True
