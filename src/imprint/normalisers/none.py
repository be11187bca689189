from dataclasses import dataclass

from numpy.typing import DTypeLike

from imprint.core.arrays import Array
from imprint.core.graph import GraphBuilder
from imprint.normalisers._base import Normaliser


@dataclass(frozen=True, kw_only=True)
class NoNorm(Normaliser):
    """Leave each row unchanged."""

    use = ""

    def apply(
        self,
        X: Array,
        reference: Array | None = None,
    ) -> Array:
        return X

    def pullback(self, x: Array, gradient: Array) -> Array:
        return gradient

    def graph(
        self,
        g: GraphBuilder,
        x: str,
        dtype: DTypeLike,
    ) -> str | None:
        return x
