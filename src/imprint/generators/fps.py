from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from imprint.core.arrays import Array, State
from imprint.core.component import param
from imprint.generators._base import ROWS_LAYOUT, PerClassGenerator, joined
from imprint.kernels.medoids import farthest_points


@dataclass(frozen=True, kw_only=True)
class FPS(PerClassGenerator):
    """k embeddings of the class that lie far apart (farthest-point sampling).

    The first is a random row, each next one the row farthest from those chosen so far:
    Gonzalez's greedy algorithm for the k-centre problem. Weights have no effect,
    because equal rows are never chosen twice.

    Adding rows to a class: sampling starts again from its first proxy, among its
    proxies and the new rows.
    """

    k: int = param(20, "maximum number of proxies per class", ge=1)
    layout = ROWS_LAYOUT

    def summarise(
        self, X: Array, rng: np.random.Generator, weight: Array | None = None
    ) -> State:
        return {"rows": X[farthest_points(X, self.k, first=int(rng.integers(len(X))))]}

    def extend(
        self,
        state: State,
        X: Array,
        rng: np.random.Generator,
        weight: Array | None = None,
    ) -> State:
        rows = np.concatenate([state["rows"], X])
        return {"rows": rows[farthest_points(rows, self.k, first=0)]}

    def merge(self, states: Sequence[State], rng: np.random.Generator) -> State:
        rows = joined(states, "rows")
        return {"rows": rows[farthest_points(rows, self.k, first=0)]}
