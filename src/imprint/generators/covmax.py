from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from imprint.core.arrays import rows_at, to_numpy
from imprint.core.component import param
from imprint.core.layout import Entry, Layout
from imprint.core.types import Array, State
from imprint.generators._base import ROWS, PerClassGenerator
from imprint.kernels.rows import column_sums, products


@dataclass(frozen=True, kw_only=True)
class CovMax(PerClassGenerator):
    """The k embeddings with the largest sum of covariances, across features, with all embeddings of the class.

    Closed form: with every row centred on its own mean, the score of a row is its product with the sum of the
    centred rows; since that sum adds up to zero, the row itself needs no centring. No n x n matrix is formed.

    More rows of a known class: the sum is exact, and the rows selected so far compete with the new ones; a row dropped
    earlier does not come back. A weight counts in the sum.
    """

    k: int = param(20, "proxies per class, at most", ge=1)
    takes_tensors: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True
    layout: ClassVar[Layout | None] = {"rows": ROWS, "total": Entry("d")}

    def summarise(self, X: Array, rng: np.random.Generator, weight: Array | None = None) -> State:
        return self._best(X, column_sums(X, weight))

    def extend(self, state: State, X: Array, rng: np.random.Generator, weight: Array | None = None) -> State:
        return self._best(np.concatenate([state["rows"], X]), state["total"] + column_sums(X, weight))

    def _best(self, rows: Array, total: Array) -> State:
        scores = products(rows, total - total.mean())  # (n,)
        best = np.argsort(-scores, kind="stable")[: self.k]
        return {"rows": to_numpy(rows_at(rows, best)), "total": total}
