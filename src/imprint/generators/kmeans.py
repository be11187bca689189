from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from imprint.core.arrays import Array, State, to_numpy
from imprint.core.component import param
from imprint.generators._base import (
    PerClassGenerator,
    append_rows,
    cluster_layout,
    joined,
)
from imprint.kernels.kmeans import KMeansResult, Problem, kmeans, kmeans_many


@dataclass(frozen=True, kw_only=True)
class KMeans(PerClassGenerator):
    """The centres of k clusters of the class (k-means).

    They are a local minimum of sum_i a_i min_j |x_i - w_j|^2 over centres w_j, for rows
    x_i with weights a_i. Lloyd's algorithm runs once, after greedy k-means++ seeding.
    With k = 1 this is `mean`. Weighted rows on a GPU are clustered on the CPU.

    Adding rows to a class: its centres, weighted by their mass, are clustered again
    with the new rows. Merging: the centres of all parts are clustered again. Both
    approximate clustering all rows.
    """

    k: int = param(20, "maximum number of proxies per class", ge=1)
    takes_tensors = True
    layout = cluster_layout()

    def summarise(
        self, X: Array, rng: np.random.Generator, weight: Array | None = None
    ) -> State:
        return _state(
            kmeans(X if weight is None else to_numpy(X), self.k, rng, mass=weight)
        )

    def summarise_all(
        self,
        parts: Sequence[Array],
        rngs: Sequence[np.random.Generator],
        *weights: Sequence[Array],
    ) -> list[State]:
        problems = [Problem(i, self.k, rng) for i, rng in enumerate(rngs)]
        rows = [to_numpy(X) for X in parts] if weights else parts
        return [_state(result) for result in kmeans_many(rows, problems, *weights)]

    def extend(
        self,
        state: State,
        X: Array,
        rng: np.random.Generator,
        weight: Array | None = None,
    ) -> State:
        rows, mass = append_rows(state["rows"], state["mass"], X, weight)
        spread = np.concatenate([state["spread"], np.zeros(len(X))])
        return self._cluster(rows, mass, spread, rng)

    def merge(self, states: Sequence[State], rng: np.random.Generator) -> State:
        rows = joined(states, "rows")
        mass = joined(states, "mass")
        spread = joined(states, "spread")
        return self._cluster(rows, mass, spread, rng)

    def merges_exactly(self, states: Sequence[State], rng: np.random.Generator) -> bool:
        # every centre is a row, so that the rows are clustered
        return all((state["spread"] == 0).all() for state in states)

    def _cluster(
        self, rows: Array, mass: Array, spread: Array, rng: np.random.Generator
    ) -> State:
        """The state of rows each of which represents `mass` rows with a `spread` around
        it.
        """
        result = kmeans(rows, self.k, rng, mass=mass)
        scatter = np.bincount(
            result.labels, mass * spread, minlength=len(result.centres)
        )
        return _state(result._replace(spread=result.spread + scatter / result.mass))


def _state(result: KMeansResult) -> State:
    return {"rows": result.centres, "mass": result.mass, "spread": result.spread}
