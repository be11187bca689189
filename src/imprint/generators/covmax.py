from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from imprint.core.arrays import Array, State, rows_at, to_numpy
from imprint.core.component import param
from imprint.core.layout import Entry
from imprint.generators._base import ROWS_LAYOUT, PerClassGenerator, joined
from imprint.kernels.rows import column_sums, products


@dataclass(frozen=True, kw_only=True)
class CovMax(PerClassGenerator):
    """The k embeddings with the largest sum of covariances with all embeddings of the
    class.

    The covariance of two rows is taken over their d features. With t = sum_j a_j x_j
    over the rows x_j with weights a_j, the score of row i is x_i . (t - mean(t)). The
    second factor sums to zero, so x_i needs no centring, and no n x n matrix is formed.

    Adding rows to a class: t stays exact, and the chosen rows compete with the new
    ones. A row that was not chosen is not stored and cannot be chosen later.
    """

    k: int = param(20, "maximum number of proxies per class", ge=1)
    takes_tensors = True
    layout = ROWS_LAYOUT | {"total": Entry("d")}

    def summarise(
        self, X: Array, rng: np.random.Generator, weight: Array | None = None
    ) -> State:
        return self._best(X, column_sums(X, weight))

    def extend(
        self,
        state: State,
        X: Array,
        rng: np.random.Generator,
        weight: Array | None = None,
    ) -> State:
        return self._best(
            np.concatenate([state["rows"], X]), state["total"] + column_sums(X, weight)
        )

    def merge(self, states: Sequence[State], rng: np.random.Generator) -> State:
        total = np.sum([state["total"] for state in states], axis=0)
        return self._best(joined(states, "rows"), total)

    def _best(self, rows: Array, total: Array) -> State:
        scores = products(rows, total - total.mean())  # (n,)
        best = np.argsort(-scores, kind="stable")[: self.k]
        return {"rows": to_numpy(rows_at(rows, best)), "total": total}
