from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from imprint.core.component import param
from imprint.core.errors import ParameterError
from imprint.core.layout import COUNTED, SMALLEST_MASS, Entry, Layout
from imprint.core.types import Array, State
from imprint.generators._base import Generator, masses
from imprint.kernels.ridge import add_moments, moments, solve_ridge, total_gram
from imprint.kernels.rows import weighted_means, weighted_rows

WEIGHTINGS = ("classes", "samples")
MOMENTS: Layout = {"data": Entry("n d", instead_of="gram"), "gram": Entry("t", instead_of="data")}


@dataclass(frozen=True, kw_only=True)
class LeastSquares(Generator):
    """The oracle: weights that solve a regularised least-squares problem over all classes at once.

    W = M^T (G / N + reg I)^-1 / C with the class means M and the sum of outer products G of all N embeddings.
    `weighting="samples"` uses n_c / N instead of 1 / C, which is true ridge regression on one-hot targets; with
    classes of equal size both are the same. It uses statistics across classes, so it is not an imprinting method.
    """

    reg: float = param(1e-4, "weight decay", gt=0)
    weighting: str = param("classes", "whether classes or samples weigh equally", choices=WEIGHTINGS, detail=True)
    points: ClassVar[bool] = False
    exact_extension: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True
    layout: ClassVar[Layout | None] = {
        "means": Entry("1 d"),
        "mass": Entry("1", least=SMALLEST_MASS, most=COUNTED),
        **MOMENTS,
    }

    def summarise(self, X: Array, rng: np.random.Generator, weight: Array | None = None) -> State:
        mass, means = masses(X, weight).sum(keepdims=True), weighted_means(X, weight)[None, :]
        return {"means": means, "mass": mass, **moments(weighted_rows(X, weight))}

    def extend(self, state: State, X: Array, rng: np.random.Generator, weight: Array | None = None) -> State:
        before, now = state["mass"][0], masses(X, weight).sum()
        mean = (state["means"][0] * before + weighted_means(X, weight) * now) / (before + now)
        more = add_moments(state, weighted_rows(X, weight))
        return {"means": mean[None, :], "mass": np.array([before + now]), **more}

    def proxies(self, states: Sequence[State]) -> list[Array]:
        means = np.concatenate([s["means"] for s in states])  # (groups, d)
        mass = np.concatenate([s["mass"] for s in states])  # (groups,)
        share = np.full(len(mass), 1 / len(mass)) if self.weighting == "classes" else mass / mass.sum()
        W = solve_ridge(total_gram(states) / mass.sum(), means * share[:, None], self.reg)
        if W is None:
            rule = "the embeddings are too large, or too close to dependent for this reg; use a larger one"
            raise ParameterError(f"{self}: {rule}.")
        return np.split(W, np.cumsum([len(s["means"]) for s in states])[:-1])
