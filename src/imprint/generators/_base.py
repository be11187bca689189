from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from imprint.core.component import Component
from imprint.core.layout import COUNTED, SMALLEST_MASS, Entry, Layout
from imprint.core.types import Array, State

ROWS = Entry("p d")
MASS = Entry("p", least=SMALLEST_MASS, most=COUNTED)
SPREAD = Entry("p", least=0)


@dataclass(frozen=True, kw_only=True)
class Generator(Component):
    """Turn the embeddings of classes into proxies, in two steps.

    `summarise` reduces the rows of one class to a state; `proxies` turns the states of all classes of a task into
    weights. A state may hold `mass` and `spread`, one number for each proxy: how many rows it
    represents and their mean squared distance to it. Without them a proxy represents one row, itself. `weight` holds
    one positive number per row: a row of weight 2 counts as two equal rows.
    """

    family: ClassVar[str] = "imprint.generators"
    points: ClassVar[bool] = True
    """Whether proxies are points of the embedding space, so that distances to them mean something."""
    exact_extension: ClassVar[bool] = False
    """Whether extending a class gives what all its rows at once would give, up to rounding."""
    takes_tensors: ClassVar[bool] = False
    """Whether `summarise` computes on torch tensors where they lie; states are always NumPy arrays."""
    takes_weights: ClassVar[bool] = False
    """Whether `summarise` and `extend` accept `weight`."""
    layout: ClassVar[Layout | None] = None
    """What a state looks like; a saved one that does not fit is refused. None: any finite arrays."""

    @abstractmethod
    def summarise(self, X: Array, rng: "np.random.Generator", weight: Array | None = None) -> State:
        """The state of one class.  # X: (n, d), n >= 1; weight: (n,)"""

    @abstractmethod
    def extend(self, state: State, X: Array, rng: "np.random.Generator", weight: Array | None = None) -> State:
        """The state after more rows of the same class; `rng` starts as it did for `summarise`."""

    @abstractmethod
    def proxies(self, states: Sequence[State]) -> list[Array]:
        """The proxies of every class, each (p_c, d) with p_c >= 1."""

    def summarise_all(
        self,
        parts: Sequence[Array],
        rngs: "Sequence[np.random.Generator]",
        weights: Sequence[Array] | None = None,
    ) -> list[State]:
        """The states of several classes: those of `summarise`, bit for bit, computed together where that is faster."""
        if weights is None:
            return [self.summarise(X, rng) for X, rng in zip(parts, rngs)]
        return [self.summarise(X, rng, weight) for X, rng, weight in zip(parts, rngs, weights)]


def masses(X: Array, weight: Array | None) -> Array:
    """How many rows each row counts as: its weight, or one.  # (n,) float64"""
    return np.ones(len(X)) if weight is None else np.asarray(weight, dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class PerClassGenerator(Generator):
    """A generator that treats every class alone: the state already holds the proxies, as `rows`."""

    def proxies(self, states: Sequence[State]) -> list[Array]:
        return [state["rows"] for state in states]
