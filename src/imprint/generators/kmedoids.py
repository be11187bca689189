from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from imprint.core.component import param
from imprint.core.layout import Layout
from imprint.core.types import Array, State
from imprint.generators._base import MASS, ROWS, SPREAD, PerClassGenerator, masses
from imprint.kernels.cpu import one_blas_thread
from imprint.kernels.medoids import Medoids, Pairwise, alternate, fasterpam

METHODS = ("fasterpam", "alternate")


@dataclass(frozen=True, kw_only=True)
class KMedoids(PerClassGenerator):
    """k embeddings of the class with the least sum of Euclidean distances from every row to its nearest one.

    `fasterpam` (Schubert and Rousseeuw 2021) swaps until no swap lowers the cost; `alternate` (Park and Jun 2009) is
    the published study's: faster steps, worse optima. Up to 8,192 rows the distances are held (256 MiB at most);
    above that they are recomputed block by block within the same bound: the same result, more arithmetic.

    More rows of a known class: the old medoids, weighted by the rows they stand for, compete with the new rows.
    """

    k: int = param(20, "proxies per class, at most", ge=1)
    method: str = param("fasterpam", "how the medoids are searched", choices=METHODS, detail=True)
    takes_weights: ClassVar[bool] = True
    layout: ClassVar[Layout | None] = {"rows": ROWS, "mass": MASS, "spread": SPREAD}

    def summarise(self, X: Array, rng: np.random.Generator, weight: Array | None = None) -> State:
        return self._keep(X, masses(X, weight), np.zeros(len(X)), rng)

    def extend(self, state: State, X: Array, rng: np.random.Generator, weight: Array | None = None) -> State:
        rows = np.concatenate([state["rows"], X])
        mass = np.concatenate([state["mass"], masses(X, weight)])
        return self._keep(rows, mass, np.concatenate([state["spread"], np.zeros(len(X))]), rng)

    def search(self, pairs: Pairwise, mass: Array, rng: np.random.Generator) -> Medoids:
        """The medoids among rows whose distances are at hand."""
        return alternate(pairs, self.k, mass) if self.method == "alternate" else fasterpam(pairs, self.k, rng, mass)

    def _keep(self, rows: Array, mass: Array, spread: Array, rng: np.random.Generator) -> State:
        with one_blas_thread():
            return medoid_state(rows, mass, spread, self.search(Pairwise(rows), mass, rng))


def medoid_state(rows: Array, mass: Array, spread: Array, medoids: Medoids) -> State:
    """The medoids of rows that stand for `mass` rows each, and what the medoids stand for in turn."""
    apart = mass * (medoids.distances**2 + spread)
    total, scatter = (np.bincount(medoids.labels, w, minlength=len(medoids.rows)) for w in (mass, apart))
    return {"rows": rows[medoids.rows], "mass": total, "spread": scatter / total}
