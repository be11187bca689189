from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from imprint.core.component import param
from imprint.core.layout import Entry, Layout
from imprint.core.types import Array, State
from imprint.generators._base import MASS, Generator, masses
from imprint.generators.least_squares import MOMENTS, WEIGHTINGS, LeastSquares
from imprint.kernels.kmeans import kmeans
from imprint.kernels.ridge import add_moments, moments
from imprint.kernels.rows import weighted_rows


@dataclass(frozen=True, kw_only=True)
class KLeastSquares(Generator):
    """Least squares over k-means clusters: every cluster of every class is a separate class in one joint problem.

    k = 1 is `least_squares`. More rows of a known class: the sum of outer products stays exact, the clusters are found
    again from the old cluster means, weighted by their number of rows, and the new rows.
    """

    k: int = param(20, "proxies per class, at most", ge=1)
    reg: float = param(1e-4, "weight decay", gt=0)
    weighting: str = param("classes", "whether clusters or samples weigh equally", choices=WEIGHTINGS, detail=True)
    points: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = True
    layout: ClassVar[Layout | None] = {"means": Entry("p d"), "mass": MASS, **MOMENTS}

    def summarise(self, X: Array, rng: np.random.Generator, weight: Array | None = None) -> State:
        return {**self._cluster(X, masses(X, weight), rng), **moments(weighted_rows(X, weight))}

    def extend(self, state: State, X: Array, rng: np.random.Generator, weight: Array | None = None) -> State:
        rows = np.concatenate([state["means"], X])
        mass = np.concatenate([state["mass"], masses(X, weight)])
        return {**self._cluster(rows, mass, rng), **add_moments(state, weighted_rows(X, weight))}

    def proxies(self, states: Sequence[State]) -> list[Array]:
        return LeastSquares(reg=self.reg, weighting=self.weighting).proxies(states)

    def _cluster(self, rows: Array, mass: Array, rng: np.random.Generator) -> State:
        return cluster_means(rows, mass, kmeans(rows, self.k, rng, mass=mass).labels)


def cluster_means(rows: Array, mass: Array, labels: Array) -> State:
    """The mean and the mass of every cluster."""
    members = [labels == j for j in range(labels.max() + 1)]
    sums = np.stack([np.sum(rows[part] * mass[part, None], axis=0, dtype=np.float64) for part in members])
    sizes = np.array([mass[part].sum() for part in members])
    return {"means": sums / sizes[:, None], "mass": sizes}
