from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from imprint.core.component import param
from imprint.core.types import Array, State
from imprint.generators._base import Picker, Request
from imprint.kernels.engine import one_blas_thread
from imprint.kernels.medoids import MEMORY, alternate_medoids, swap_medoids
from imprint.kernels.pairwise import Pairwise

METHODS = ("fasterpam", "alternate")


@dataclass(frozen=True, kw_only=True)
class KMedoids(Picker):
    """k embeddings of the class with the least sum of Euclidean distances from every row to its nearest one.

    `fasterpam` (Schubert and Rousseeuw 2021) swaps until no swap lowers the cost; `alternate` (Park and Jun 2009) is
    the published study's: faster steps, worse optima. Up to 8,192 rows the distances are held (256 MiB at most);
    above that they are recomputed block by block within the same bound: the same result, more arithmetic.

    More rows of a known class: the old medoids, weighted by the rows they stand for, compete with the new rows.
    """

    k: int = param(20, "proxies per class, at most", ge=1)
    method: str = param("fasterpam", "how the medoids are searched", choices=METHODS, detail=True)
    seeded: ClassVar[bool] = True

    def pick(self, X: Array, rng: np.random.Generator) -> Array:
        with one_blas_thread():
            return self._search(Pairwise(X, MEMORY), np.ones(len(X)), rng)[0]

    @classmethod
    def pick_many(cls, X: Array, requests: Sequence[Request]) -> list[Array]:
        """The distances between all rows serve every k, method and seed; a search without chance serves all seeds."""
        wanted = [Request(g, entropy if cast(KMedoids, g)._draws else ()) for g, entropy in requests]
        mass, found = np.ones(len(X)), {}
        with one_blas_thread():
            pairs = Pairwise(X, MEMORY)
            for r in dict.fromkeys(wanted):
                found[r] = cast(KMedoids, r.generator)._search(pairs, mass, np.random.default_rng(r.entropy))[0]
        return [found[r] for r in wanted]

    def summarise(self, X: Array, rng: np.random.Generator) -> State:
        return self._keep(X, np.ones(len(X)), rng)

    def work(self, n: int, d: int) -> float:
        return float(n * n * (d + 4 * self.k))

    def extend(self, state: State, X: Array, rng: np.random.Generator) -> State:
        rows = np.concatenate([state["rows"], X])
        return self._keep(rows, np.concatenate([state["mass"], np.ones(len(X))]), rng)

    @property
    def _draws(self) -> bool:
        """Whether the search starts from rows drawn at random."""
        return self.method == "fasterpam" and self.k > 1

    def _keep(self, rows: Array, mass: Array, rng: np.random.Generator) -> State:
        with one_blas_thread():
            medoids, labels = self._search(Pairwise(rows, MEMORY), mass, rng)
        return {"rows": rows[medoids], "mass": np.bincount(labels, weights=mass, minlength=len(medoids))}

    def _search(self, pairs: Pairwise, mass: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """The medoids, and which of them is nearest to each row."""
        if self.method == "alternate":
            return alternate_medoids(pairs, self.k, mass)[:2]
        return swap_medoids(pairs, self.k, rng, mass)[:2]
