from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from imprint.core.arrays import Array
from imprint.core.graph import GraphBuilder
from imprint.kernels.rows import unit_rows
from imprint.normalisers._base import Normaliser


@dataclass(frozen=True, kw_only=True)
class L2(Normaliser):
    """Divide each row by its Euclidean length, x / |x|; a zero row stays zero.

    >>> import numpy as np
    >>> L2().apply(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """

    use = "Divide every embedding by its Euclidean length (a zero row stays zero). "

    def apply(
        self,
        X: Array,
        reference: Array | None = None,
    ) -> Array:
        return unit_rows(X)

    def pullback(self, x: Array, gradient: Array) -> Array:
        """What the gradient has along x changes only its length, which is lost."""
        length = float(np.sqrt(x @ x))
        if length == 0:
            return np.zeros_like(gradient)
        unit = x / length
        return np.asarray((gradient - unit * (unit @ gradient)) / length)

    def graph(
        self,
        g: GraphBuilder,
        x: str,
        dtype: DTypeLike,
    ) -> str | None:
        return g.unit_rows(x, dtype)
