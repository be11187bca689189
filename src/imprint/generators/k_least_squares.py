from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from imprint.core.component import param
from imprint.core.types import Array, State
from imprint.generators._base import Generator, Request
from imprint.generators.least_squares import WEIGHTINGS, LeastSquares
from imprint.kernels.kmeans import Problem, kmeans
from imprint.kernels.placed import kmeans_many
from imprint.kernels.ridge import add_moments, moments


@dataclass(frozen=True, kw_only=True)
class KLeastSquares(Generator):
    """Least squares over k-means clusters: every cluster of every class is a class of its own in one joint problem.

    k = 1 is `least_squares`. More rows of a known class: the sum of outer products stays exact, the clusters are found
    again from the old cluster means, weighted by their number of rows, and the new rows.
    """

    k: int = param(20, "proxies per class, at most", ge=1)
    reg: float = param(1e-4, "weight decay", gt=0)
    weighting: str = param("classes", "whether clusters or samples weigh equally", choices=WEIGHTINGS, detail=True)
    seeded: ClassVar[bool] = True

    def summarise(self, X: Array, rng: np.random.Generator) -> State:
        return {**self._cluster(X, np.ones(len(X)), rng), **moments(X)}

    @classmethod
    def summarise_many(cls, X: Array, requests: Sequence[Request], device: str = "cpu") -> list[State]:
        """One sum of outer products for all; one clustering for every regularisation and weighting of the same k."""
        points = [(cast(KLeastSquares, r.generator).k, r.entropy) for r in requests]
        distinct = list(dict.fromkeys(points))
        found = kmeans_many(X, [Problem(0, k, entropy) for k, entropy in distinct], device)
        shared, ones = moments(X), np.ones(len(X))
        states = {p: {**_groups(X, ones, f.labels), **shared} for p, f in zip(distinct, found)}
        return [states[p] for p in points]

    def work(self, n: int, d: int) -> float:
        return float(n * d * (d + 12 * self.k))

    def extend(self, state: State, X: Array, rng: np.random.Generator) -> State:
        rows = np.concatenate([state["means"], X])
        mass = np.concatenate([state["mass"], np.ones(len(X))])
        return {**self._cluster(rows, mass, rng), **add_moments(state, X)}

    def proxies(self, states: Sequence[State]) -> list[Array]:
        return LeastSquares(reg=self.reg, weighting=self.weighting).proxies(states)

    def _cluster(self, rows: Array, mass: Array, rng: np.random.Generator) -> State:
        return _groups(rows, mass, kmeans(rows, self.k, rng, mass=mass).labels)


def _groups(rows: Array, mass: Array, labels: Array) -> State:
    """The mean and the mass of every cluster."""
    members = [labels == j for j in range(labels.max() + 1)]
    sums = np.stack([np.sum(rows[own] * mass[own, None], axis=0, dtype=np.float64) for own in members])
    sizes = np.array([mass[own].sum() for own in members])
    return {"means": sums / sizes[:, None], "mass": sizes}
