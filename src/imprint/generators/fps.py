from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from imprint.core.component import param
from imprint.core.layout import Layout
from imprint.core.types import Array, State
from imprint.generators._base import ROWS, PerClassGenerator
from imprint.kernels.medoids import farthest_points


@dataclass(frozen=True, kw_only=True)
class FPS(PerClassGenerator):
    """Farthest-point sampling: from a random row on, always the row farthest from those picked so far.

    More rows of a known class: the search starts again from its first row among the rows picked before and the new.
    Weights change nothing: equal rows are never both picked.
    """

    k: int = param(20, "proxies per class, at most", ge=1)
    takes_weights: ClassVar[bool] = True
    layout: ClassVar[Layout | None] = {"rows": ROWS}

    def summarise(self, X: Array, rng: np.random.Generator, weight: Array | None = None) -> State:
        return {"rows": X[farthest_points(X, self.k, first=int(rng.integers(len(X))))]}

    def extend(self, state: State, X: Array, rng: np.random.Generator, weight: Array | None = None) -> State:
        rows = np.concatenate([state["rows"], X])
        return {"rows": rows[farthest_points(rows, self.k, first=0)]}
