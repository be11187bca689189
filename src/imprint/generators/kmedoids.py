from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from imprint.core.component import param
from imprint.core.types import Array, State
from imprint.generators._base import PerClassGenerator, Request
from imprint.kernels.medoids import MEMORY, alternate, fasterpam
from imprint.kernels.pairwise import Pairwise

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
    seeded: ClassVar[bool] = True

    def summarise(self, X: Array, rng: np.random.Generator) -> State:
        return self._search(X, np.ones(len(X)), rng)

    @classmethod
    def summarise_many(cls, X: Array, requests: Sequence[Request], device: str = "cpu") -> list[State]:
        """The distances between all rows serve every k, method and seed; a search without chance serves all seeds."""
        pairs, mass, found = Pairwise(X, MEMORY), np.ones(len(X)), {}
        wanted = [Request(g, entropy if cast(KMedoids, g)._draws else ()) for g, entropy in requests]
        for g, entropy in dict.fromkeys(wanted):
            found[g, entropy] = cast(KMedoids, g)._search(X, mass, np.random.default_rng(entropy), pairs)
        return [found[r] for r in wanted]

    def work(self, n: int, d: int) -> float:
        return float(n * n * (d + 4 * self.k))

    def extend(self, state: State, X: Array, rng: np.random.Generator) -> State:
        rows = np.concatenate([state["rows"], X])
        return self._search(rows, np.concatenate([state["mass"], np.ones(len(X))]), rng)

    @property
    def _draws(self) -> bool:
        """Whether the search starts from rows drawn at random."""
        return self.method == "fasterpam" and self.k > 1

    def _search(self, rows: Array, mass: Array, rng: np.random.Generator, pairs: Pairwise | None = None) -> State:
        if self.method == "alternate":
            medoids, labels, _ = alternate(rows, self.k, mass=mass, pairs=pairs)
        else:
            medoids, labels, _ = fasterpam(rows, self.k, rng, mass=mass, pairs=pairs)
        return {"rows": rows[medoids], "mass": np.bincount(labels, weights=mass, minlength=len(medoids))}
