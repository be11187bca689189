from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from imprint.core.component import param
from imprint.core.types import Array, State
from imprint.generators._base import PerClassGenerator
from imprint.kernels.kmeans import kmeans


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

    def extend(self, state: State, X: Array, rng: np.random.Generator) -> State:
        rows = np.concatenate([state["rows"], X])
        found = kmeans(rows, self.k, rng, mass=np.concatenate([state["mass"], np.ones(len(X))]))
        return {"rows": found.centres, "mass": found.mass}
