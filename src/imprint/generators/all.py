from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from imprint.core.arrays import Array, State, to_numpy
from imprint.generators._base import (
    ROWS_LAYOUT,
    PerClassGenerator,
    append_rows,
    cluster_layout,
    joined,
    row_masses,
)


@dataclass(frozen=True, kw_only=True)
class AllRows(PerClassGenerator):
    """Every embedding is a proxy, and its mass is its weight.

    With `nearest` this is the k-nearest-neighbours classifier, with `kernel` kernel
    ridge regression. Adding rows to a class appends them.
    """

    takes_tensors = True
    layout = ROWS_LAYOUT | {"mass": cluster_layout()["mass"]._replace(optional=True)}

    def summarise(
        self, X: Array, rng: np.random.Generator, weight: Array | None = None
    ) -> State:
        rows = {"rows": np.array(to_numpy(X))}
        return rows if weight is None else {**rows, "mass": row_masses(X, weight)}

    def extend(
        self,
        state: State,
        X: Array,
        rng: np.random.Generator,
        weight: Array | None = None,
    ) -> State:
        rows, mass = append_rows(
            state["rows"], row_masses(state["rows"], state.get("mass")), X, weight
        )
        return (
            {"rows": rows}
            if weight is None and "mass" not in state
            else {"rows": rows, "mass": mass}
        )

    def all_rows(self, state: State) -> tuple[Array, Array | None] | None:
        return state["rows"], state.get("mass")

    def merge(self, states: Sequence[State], rng: np.random.Generator) -> State:
        merged = {"rows": joined(states, "rows")}
        if any("mass" in state for state in states):
            masses = [row_masses(state["rows"], state.get("mass")) for state in states]
            merged["mass"] = np.concatenate(masses)
        return merged

    def merges_exactly(self, states: Sequence[State], rng: np.random.Generator) -> bool:
        return True
