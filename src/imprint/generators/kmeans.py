from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from imprint.core.component import param
from imprint.core.types import Array, State
from imprint.generators._base import PerClassGenerator, Request
from imprint.kernels.kmeans import Problem, kmeans
from imprint.kernels.placed import kmeans_many


@dataclass(frozen=True, kw_only=True)
class KMeans(PerClassGenerator):
    """Centres of k clusters of the class (Lloyd's algorithm from one k-means++ start); k = 1 is the mean.

    More rows of a known class: the old centres stand for the rows they were made of, weighted by their number, and
    are clustered again together with the new rows. That is close to, but not the same as, clustering all rows.
    """

    k: int = param(20, "proxies per class, at most", ge=1)
    seeded: ClassVar[bool] = True

    def summarise(self, X: Array, rng: np.random.Generator) -> State:
        found = kmeans(X, self.k, rng)
        return {"rows": found.centres, "mass": found.mass}

    @classmethod
    def summarise_many(cls, X: Array, requests: Sequence[Request], device: str = "cpu") -> list[State]:
        distinct = list(dict.fromkeys(requests))
        found = kmeans_many(X, [Problem(0, cast(KMeans, r.generator).k, r.entropy) for r in distinct], device)
        states: dict[Request, State] = {r: {"rows": f.centres, "mass": f.mass} for r, f in zip(distinct, found)}
        return [states[r] for r in requests]

    def work(self, n: int, d: int) -> float:
        return 12.0 * n * d * self.k

    def extend(self, state: State, X: Array, rng: np.random.Generator) -> State:
        rows = np.concatenate([state["rows"], X])
        found = kmeans(rows, self.k, rng, mass=np.concatenate([state["mass"], np.ones(len(X))]))
        return {"rows": found.centres, "mass": found.mass}
