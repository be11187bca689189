from dataclasses import dataclass
from typing import ClassVar

from imprint.core.types import Array
from imprint.kernels.rows import lengths, unit_rows
from imprint.normalisers._base import Normaliser


@dataclass(frozen=True, kw_only=True)
class L2(Normaliser):
    """Divide every row by its Euclidean length, so that only its direction counts."""

    keeps_direction: ClassVar[bool] = True

    def apply(self, X: Array, reference: Array | None = None) -> Array:
        return unit_rows(X)

    def divisors(self, X: Array) -> Array | None:
        return lengths(X)
