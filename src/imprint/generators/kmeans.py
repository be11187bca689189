from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from imprint.core.arrays import to_numpy
from imprint.core.component import param
from imprint.core.layout import Layout
from imprint.core.types import Array, State
from imprint.generators._base import MASS, ROWS, SPREAD, PerClassGenerator, masses
from imprint.kernels.kmeans import KMeansResult, Problem, kmeans, kmeans_many


@dataclass(frozen=True, kw_only=True)
class KMeans(PerClassGenerator):
    """Centres of k clusters of the class (Lloyd's algorithm from one k-means++ start); k = 1 is the mean.

    More rows of a known class: the old centres represent their rows, weighted by their number, and
    are clustered again together with the new rows. That is close to, but not the same as, clustering all rows.
    Weighted rows of a GPU are clustered on the host.
    """

    k: int = param(20, "proxies per class, at most", ge=1)
    takes_tensors: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True
    layout: ClassVar[Layout | None] = {"rows": ROWS, "mass": MASS, "spread": SPREAD}

    def summarise(self, X: Array, rng: np.random.Generator, weight: Array | None = None) -> State:
        return _state(kmeans(X if weight is None else to_numpy(X), self.k, rng, mass=weight))

    def summarise_all(
        self,
        parts: Sequence[Array],
        rngs: Sequence[np.random.Generator],
        weights: Sequence[Array] | None = None,
    ) -> list[State]:
        if weights is not None:
            return super().summarise_all(parts, rngs, weights)
        problems = [Problem(i, self.k, rng) for i, rng in enumerate(rngs)]
        return [_state(result) for result in kmeans_many(parts, problems)]

    def extend(self, state: State, X: Array, rng: np.random.Generator, weight: Array | None = None) -> State:
        rows = np.concatenate([state["rows"], X])
        mass = np.concatenate([state["mass"], masses(X, weight)])
        result = kmeans(rows, self.k, rng, mass=mass)
        old = np.arange(len(state["rows"]))
        inner = np.bincount(result.labels[old], state["mass"] * state["spread"], minlength=len(result.centres))
        return _state(result._replace(spread=result.spread + inner / result.mass))


def _state(result: KMeansResult) -> State:
    return {"rows": result.centres, "mass": result.mass, "spread": result.spread}
