from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from imprint.core.component import Component
from imprint.core.types import Array

POSITIONS = ("pre", "post", "inf")


@dataclass(frozen=True, kw_only=True)
class Normaliser(Component):
    """Scale rows. Never changes its input; a zero row stays zero."""

    positions: ClassVar[tuple[str, ...]] = POSITIONS
    """Where it may stand: before generation, on the proxies, on queries."""
    uses_reference: ClassVar[bool] = False
    """Whether the result depends on the proxies imprinted before."""

    keeps_direction: ClassVar[bool] = False
    """Whether it changes the lengths of rows alone, never their directions."""

    @abstractmethod
    def apply(self, X: Array, reference: Array | None = None) -> Array:
        """Rows in, rows out. `reference` holds the proxies imprinted so far, None before the first class."""
