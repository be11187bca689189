from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from imprint.core.arrays import Array, State
from imprint.core.component import param
from imprint.core.layout import Entry
from imprint.generators._base import (
    Generator,
    append_rows,
    cluster_layout,
    joined,
    row_masses,
)
from imprint.generators.least_squares import MOMENTS_LAYOUT, WEIGHTINGS, LeastSquares
from imprint.kernels.kmeans import kmeans
from imprint.kernels.ridge import (
    add_moments,
    merge_moments,
    moments,
    packed_moments,
)
from imprint.kernels.rows import weighted_rows


@dataclass(frozen=True, kw_only=True)
class KLeastSquares(Generator):
    """One weight vector per k-means cluster, from regularised least squares over the
    clusters of all classes.

    The formula is that of `least_squares` with clusters as classes; with k = 1 the two
    are the same.

    Adding rows to a class: the sum of outer products stays exact. The old cluster
    means, weighted by their mass, are clustered again with the new rows. Merging: those
    of all parts are clustered again.
    """

    k: int = param(20, "maximum number of proxies per class", ge=1)
    reg: float = param(1e-4, "regularisation (weight decay)", gt=0)
    weighting: str = param(
        "classes",
        "whether clusters or rows have equal weights",
        choices=WEIGHTINGS,
        detail=True,
    )
    points = False
    layout = MOMENTS_LAYOUT | {"means": Entry("p d"), "mass": cluster_layout()["mass"]}

    def summarise(
        self, X: Array, rng: np.random.Generator, weight: Array | None = None
    ) -> State:
        return {
            **self._cluster(X, row_masses(X, weight), rng),
            **moments(weighted_rows(X, weight)),
        }

    def extend(
        self,
        state: State,
        X: Array,
        rng: np.random.Generator,
        weight: Array | None = None,
    ) -> State:
        clusters = self._cluster(
            *append_rows(state["means"], state["mass"], X, weight), rng
        )
        return {**clusters, **add_moments(state, weighted_rows(X, weight))}

    def without_rows(self, state: State) -> State:
        return packed_moments(state)

    def merge(self, states: Sequence[State], rng: np.random.Generator) -> State:
        means = joined(states, "means")
        clusters = self._cluster(means, joined(states, "mass"), rng)
        return {**clusters, **merge_moments(states)}

    def proxies(self, states: Sequence[State]) -> list[Array]:
        return LeastSquares(reg=self.reg, weighting=self.weighting).proxies(states)

    def _cluster(self, rows: Array, mass: Array, rng: np.random.Generator) -> State:
        return cluster_means(rows, mass, kmeans(rows, self.k, rng, mass=mass).labels)


def cluster_means(rows: Array, mass: Array, labels: Array) -> State:
    """The mean and the mass of every cluster."""
    members = [labels == j for j in range(labels.max() + 1)]
    sums = np.stack(
        [
            np.sum(rows[part] * mass[part, None], axis=0, dtype=np.float64)
            for part in members
        ]
    )
    sizes = np.array([mass[part].sum() for part in members])
    return {"means": sums / sizes[:, None], "mass": sizes}
