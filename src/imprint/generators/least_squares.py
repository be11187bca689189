from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from imprint.core.arrays import Array, State
from imprint.core.component import param
from imprint.core.errors import ParameterError
from imprint.core.layout import Entry
from imprint.generators._base import Generator, cluster_layout, joined, row_masses
from imprint.kernels.ridge import (
    add_moments,
    merge_moments,
    moments,
    packed_moments,
    remove_moments,
    solve_ridge,
    total_gram,
)
from imprint.kernels.rows import column_means, weighted_rows

WEIGHTINGS = ("classes", "samples")
MOMENTS_LAYOUT = {
    "data": Entry("n d", instead_of="gram"),
    "gram": Entry("t", instead_of="data"),
}


@dataclass(frozen=True, kw_only=True)
class LeastSquares(Generator):
    """One weight vector per class, from regularised least squares over all classes (the
    oracle of the paper).

    W = M^T (G / N + reg I)^-1 / C, with the means M of C classes and the sum G of the
    outer products of all N rows. `weighting="samples"` replaces 1 / C by n_c / N, which
    is ridge regression on one-hot labels; with classes of equal size both are the same.
    This is not imprinting, because a weight vector depends on all classes. Adding rows
    to a class is exact up to rounding.
    """

    reg: float = param(1e-4, "regularisation (weight decay)", gt=0)
    weighting: str = param(
        "classes",
        "whether classes or rows have equal weights",
        choices=WEIGHTINGS,
        detail=True,
    )
    points = False
    layout = MOMENTS_LAYOUT | {
        "means": Entry("1 d"),
        "mass": cluster_layout("1")["mass"],
    }

    def summarise(
        self, X: Array, rng: np.random.Generator, weight: Array | None = None
    ) -> State:
        mass, means = (
            row_masses(X, weight).sum(keepdims=True),
            column_means(X, weight)[None, :],
        )
        return {"means": means, "mass": mass, **moments(weighted_rows(X, weight))}

    def extend(
        self,
        state: State,
        X: Array,
        rng: np.random.Generator,
        weight: Array | None = None,
    ) -> State:
        old_mass, new_mass = state["mass"][0], row_masses(X, weight).sum()
        mass = old_mass + new_mass
        mean = (
            state["means"][0] * old_mass + column_means(X, weight) * new_mass
        ) / mass
        return {
            "means": mean[None, :],
            "mass": np.array([mass]),
            **add_moments(state, weighted_rows(X, weight)),
        }

    def remove(self, state: State, X: Array, weight: Array | None = None) -> State:
        weights = row_masses(X, weight)
        old_mass = state["mass"]
        mass = old_mass - weights.sum()
        mean = (old_mass * state["means"][0] - weights @ X) / mass
        return {
            "means": mean[None, :],
            "mass": mass,
            **remove_moments(state, weighted_rows(X, weight)),
        }

    def without_rows(self, state: State) -> State:
        return packed_moments(state)

    def merge(self, states: Sequence[State], rng: np.random.Generator) -> State:
        mass = joined(states, "mass")
        total = mass.sum(keepdims=True)
        mean = mass @ joined(states, "means") / total
        return {
            "means": mean[None, :],
            "mass": total,
            **merge_moments(states),
        }

    def merges_exactly(self, states: Sequence[State], rng: np.random.Generator) -> bool:
        return True

    def proxies(self, states: Sequence[State]) -> list[Array]:
        # (p, d), (p,)
        means, mass = (
            np.concatenate([state[name] for state in states])
            for name in ("means", "mass")
        )
        share = (
            np.full(len(mass), 1 / len(mass))
            if self.weighting == "classes"
            else mass / mass.sum()
        )
        W = solve_ridge(
            total_gram(states) / mass.sum(), means * share[:, None], self.reg
        )
        if W is None:
            rule = (
                "the embeddings are too large, or too close to linearly dependent for"
                " this reg; use a larger one"
            )
            raise ParameterError(f"{self}: {rule}.")
        return np.split(W, np.cumsum([len(state["means"]) for state in states])[:-1])
