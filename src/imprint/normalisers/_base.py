from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from imprint.core.component import Component
from imprint.core.types import Array

POSITIONS = ("pre", "post", "inf")


@dataclass(frozen=True, kw_only=True)
class Normaliser(Component):
    """Scale rows. Never changes its input; without a reference every row is treated alone."""

    family: ClassVar[str] = "imprint.normalisers"
    positions: ClassVar[tuple[str, ...]] = POSITIONS
    """Where it may stand: before generation, on the proxies, on queries."""
    uses_reference: ClassVar[bool] = False
    """Whether the result depends on the proxies imprinted before."""

    @abstractmethod
    def apply(self, X: Array, reference: Array | None = None) -> Array:
        """Rows in, rows out. `reference` holds the proxies imprinted so far, None before the first class."""

    def graph(self, g: Any, x: str, dtype: Any) -> str | None:
        """The same as nodes of an ONNX graph `g` (`export.graph.Graph`) after the value `x`; None where it has none."""
        return None

    def in_words(self) -> str | None:
        """What someone who uses the exported numbers alone does to an embedding first; empty for nothing.

        None where it does not say, so that it cannot be exported as a query's normaliser.
        """
        return None
