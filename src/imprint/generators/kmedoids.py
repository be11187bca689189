from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from imprint.core.arrays import Array, State
from imprint.core.component import param
from imprint.generators._base import (
    PerClassGenerator,
    append_rows,
    cluster_layout,
    joined,
    row_masses,
)
from imprint.kernels.cpu import one_blas_thread
from imprint.kernels.medoids import Medoids, Pairwise, alternate, fasterpam


@dataclass(frozen=True, kw_only=True)
class KMedoids(PerClassGenerator):
    """The k embeddings of the class that are nearest to all of its rows (k-medoids).

    They are a local minimum of sum_i a_i min_j |x_i - w_j| over rows w_j, for rows x_i
    with weights a_i. `fasterpam` (Schubert and Rousseeuw 2021) swaps medoids until no
    swap lowers the sum. `alternate` (Park and Jun 2009) is the algorithm of the
    published study: its steps are faster and its optima worse. Distances are stored for
    up to 8,192 rows (256 MiB). With more rows they are computed again in blocks; the
    result is the same.

    Adding rows to a class: its medoids, weighted by their mass, compete with the new
    rows.
    """

    k: int = param(20, "maximum number of proxies per class", ge=1)
    method: str = param(
        "fasterpam", "search algorithm", choices=("fasterpam", "alternate"), detail=True
    )
    layout = cluster_layout()

    def summarise(
        self, X: Array, rng: np.random.Generator, weight: Array | None = None
    ) -> State:
        return self._state(X, row_masses(X, weight), np.zeros(len(X)), rng)

    def extend(
        self,
        state: State,
        X: Array,
        rng: np.random.Generator,
        weight: Array | None = None,
    ) -> State:
        rows, mass = append_rows(state["rows"], state["mass"], X, weight)
        return self._state(
            rows, mass, np.concatenate([state["spread"], np.zeros(len(X))]), rng
        )

    def merge(self, states: Sequence[State], rng: np.random.Generator) -> State:
        rows = joined(states, "rows")
        mass = joined(states, "mass")
        spread = joined(states, "spread")
        return self._state(rows, mass, spread, rng)

    def merges_exactly(self, states: Sequence[State], rng: np.random.Generator) -> bool:
        # every row is a medoid, so that the rows compete
        return all((state["spread"] == 0).all() for state in states)

    def search(self, pairs: Pairwise, mass: Array, rng: np.random.Generator) -> Medoids:
        """The medoids of rows, given their pairwise distances."""
        return (
            alternate(pairs, self.k, mass)
            if self.method == "alternate"
            else fasterpam(pairs, self.k, rng, mass)
        )

    def _state(
        self, rows: Array, mass: Array, spread: Array, rng: np.random.Generator
    ) -> State:
        with one_blas_thread():
            return medoid_state(
                rows, mass, spread, self.search(Pairwise(rows), mass, rng)
            )


def medoid_state(rows: Array, mass: Array, spread: Array, medoids: Medoids) -> State:
    """The state of medoids; each row may itself represent `mass` rows with a `spread`
    around it.
    """
    squares = mass * (medoids.distances**2 + spread)
    total, scatter = (
        np.bincount(medoids.labels, w, minlength=len(medoids.rows))
        for w in (mass, squares)
    )
    return {"rows": rows[medoids.rows], "mass": total, "spread": scatter / total}
