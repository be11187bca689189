from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

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

    first_alone_matters: ClassVar[bool] = False
    """Whether `references` depend on the values of the first class alone, and on how many proxies the others have."""

    keeps_direction: ClassVar[bool] = False
    """Whether it changes the lengths of rows alone, never their directions."""

    def divisors(self, X: Array) -> Array | None:
        """What `apply` divides every row by, where that is all it does.  # (n,)"""
        return None

    def references(self, parts: Sequence[Array]) -> list[Array | None]:
        """For the proxies of classes imprinted one after another: what of those before matters to each, None for
        nothing. Equal proxies after equal references become equal."""
        done: list[Array] = []
        found: list[Array | None] = []
        for part in parts:
            found.append(np.concatenate(done) if done and self.uses_reference else None)
            done.append(self.apply(part, found[-1]))
        return found

    def prepare(self, X: Array, like: Array | None = None) -> Array:
        """What `finish` needs to know of rows; the first so many of it serve the first so many rows.

        `like` is what was prepared of rows that differ from these by positive factors.
        """
        return X

    def finish(self, prepared: Array, reference: Array, out: Array) -> None:
        """Prepared rows after a reference that `references` gave, into `out`."""
        out[:] = self.apply(prepared, reference)

    @abstractmethod
    def apply(self, X: Array, reference: Array | None = None) -> Array:
        """Rows in, rows out. `reference` holds the proxies imprinted so far, None before the first class."""
