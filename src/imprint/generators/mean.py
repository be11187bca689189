from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from imprint.core.arrays import Array, State
from imprint.core.errors import ParameterError
from imprint.generators._base import (
    PerClassGenerator,
    cluster_layout,
    joined,
    row_masses,
)
from imprint.kernels.rows import column_means, squared_distances

# of a sum of squares that was computed in float32, relative to it
ROUNDING = 1e-4


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

    def without_rows(self, state: State) -> State:
        return state

    def remove(self, state: State, X: Array, weight: Array | None = None) -> State:
        mean = state["rows"][0]
        old_mass = float(state["mass"][0])
        weights = row_masses(X, weight)
        mass = old_mass - weights.sum()
        new_mean = mean - weights @ (X - mean) / mass

        # squared distances of the other rows from the old mean, then from their own
        removed = float(weights @ squared_distances(X, mean))
        shift = float(squared_distances(mean[None, :], new_mean)[0])
        squares = old_mass * float(state["spread"][0]) - removed - mass * shift
        if squares < -ROUNDING * removed:
            raise ParameterError(f"{self}: the rows to remove are not of this class.")
        return {
            "rows": new_mean[None, :],
            "mass": np.array([mass]),
            "spread": np.array([max(squares, 0.0) / mass]),
        }

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
