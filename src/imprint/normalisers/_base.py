from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

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

    def divisors(self, X: Array) -> Array | None:
        """What `apply` divides every row by, where that is all it does.  # (n,)"""
        return None

    def prepare(self, X: Array) -> Any:
        """What `apply_in_turn` needs to know of rows; the first so many of it serve the first so many rows."""
        return X

    def apply_in_turn(self, parts: Sequence[Array], prepared: Sequence[Any] | None = None) -> list[Array]:
        """The proxies of classes imprinted one after another, each with those before it as the reference.

        A part that stays as it is is returned itself. `prepared` brings along what `prepare` gave for each part.
        """
        done: list[Array] = []
        for part in parts:
            done.append(self.apply(part, np.concatenate(done) if done and self.uses_reference else None))
        return done

    @abstractmethod
    def apply(self, X: Array, reference: Array | None = None) -> Array:
        """Rows in, rows out. `reference` holds the proxies imprinted so far, None before the first class."""
