from dataclasses import dataclass
from typing import Any

from imprint.core.types import Array
from imprint.normalisers._base import Normaliser


@dataclass(frozen=True, kw_only=True)
class NoNorm(Normaliser):
    """Leave every row as it is."""

    def apply(self, X: Array, reference: Array | None = None) -> Array:
        return X

    def graph(self, g: Any, x: str, dtype: Any) -> str | None:
        return x

    def in_words(self) -> str | None:
        return ""
