from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from imprint.core.component import param
from imprint.core.errors import ParameterError
from imprint.core.layout import COUNTED, Entry, Layout
from imprint.core.types import Array, State
from imprint.generators._base import Generator
from imprint.kernels.ridge import add_moments, moments, solve_ridge, total_gram
from imprint.kernels.rows import column_means

WEIGHTINGS = ("classes", "samples")
MOMENTS: Layout = {"data": Entry("n d", instead_of="gram"), "gram": Entry("t", instead_of="data")}


@dataclass(frozen=True, kw_only=True)
class LeastSquares(Generator):
    """The oracle: weights that solve a regularised least-squares problem over all classes at once.

    W = M^T (G / N + reg I)^-1 / C with the class means M and the sum of outer products G of all N embeddings.
    `weighting="samples"` puts n_c / N in the place of 1 / C, which is true ridge regression on one-hot targets; with
    classes of equal size both are the same. It uses statistics across classes, so it is not an imprinting method.
    """

    reg: float = param(1e-4, "weight decay", gt=0)
    weighting: str = param("classes", "whether classes or samples weigh equally", choices=WEIGHTINGS, detail=True)
    points: ClassVar[bool] = False
    exact_extension: ClassVar[bool] = True
    layout: ClassVar[Layout | None] = {"means": Entry("1 d"), "mass": Entry("1", least=1, most=COUNTED), **MOMENTS}

    def summarise(self, X: Array, rng: np.random.Generator) -> State:
        return {"means": column_means(X)[None, :], "mass": np.array([float(len(X))]), **moments(X)}

    def extend(self, state: State, X: Array, rng: np.random.Generator) -> State:
        before, now = state["mass"][0], float(len(X))
        mean = (state["means"][0] * before + column_means(X) * now) / (before + now)
        return {"means": mean[None, :], "mass": np.array([before + now]), **add_moments(state, X)}

    def proxies(self, states: Sequence[State]) -> list[Array]:
        means = np.concatenate([s["means"] for s in states])  # (groups, d)
        mass = np.concatenate([s["mass"] for s in states])  # (groups,)
        share = np.full(len(mass), 1 / len(mass)) if self.weighting == "classes" else mass / mass.sum()
        W = solve_ridge(total_gram(states) / mass.sum(), means * share[:, None], self.reg)
        if W is None:
            rule = "the embeddings are too large, or too close to dependent for this reg; use a larger one"
            raise ParameterError(f"{self}: {rule}.")
        return np.split(W, np.cumsum([len(s["means"]) for s in states])[:-1])
