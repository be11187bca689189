from dataclasses import dataclass
from typing import Any

from imprint.core.arrays import Array
from imprint.kernels.rows import unit_rows
from imprint.normalisers._base import Normaliser


@dataclass(frozen=True, kw_only=True)
class L2(Normaliser):
    """Divide each row by its Euclidean length, x / |x|; a zero row stays zero."""

    use = "Divide every embedding by its Euclidean length (a zero row stays zero). "

    def apply(self, X: Array, reference: Array | None = None) -> Array:
        return unit_rows(X)

    def graph(self, g: Any, x: str, dtype: Any) -> str | None:
        return str(g.unit_rows(x, dtype))
