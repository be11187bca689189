from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from imprint.core.types import Array
from imprint.normalisers._base import Normaliser


@dataclass(frozen=True, kw_only=True)
class NoNorm(Normaliser):
    """Leave every row as it is."""

    keeps_direction: ClassVar[bool] = True

    def apply(self, X: Array, reference: Array | None = None) -> Array:
        return X

    def divisors(self, X: Array) -> Array | None:
        return np.ones(len(X), dtype=X.dtype)
