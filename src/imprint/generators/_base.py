from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from imprint.core.component import Component
from imprint.core.types import Array, State


@dataclass(frozen=True, kw_only=True)
class Generator(Component):
    """Turn the embeddings of classes into proxies, in two steps.

    `summarise` looks at one class alone and keeps what is needed of it; `proxies` turns the kept states of all
    classes of a task into weights. Whatever shares a class shares its state: tasks, saved models, studies.
    """

    seeded: ClassVar[bool] = False
    """Whether the state depends on the random numbers; if not, all seeds share it."""
    nested: ClassVar[bool] = False
    """Whether the proxies for a smaller k are the first k of those for a larger one."""
    exact_extension: ClassVar[bool] = False
    """Whether extending a class gives what all its rows at once would give, up to rounding."""

    @abstractmethod
    def summarise(self, X: Array, rng: np.random.Generator) -> State:
        """What to keep of one class.  # X: (n, d), n >= 1"""

    @abstractmethod
    def extend(self, state: State, X: Array, rng: np.random.Generator) -> State:
        """The state after more rows of the same class; `rng` starts as it did for `summarise`."""

    @abstractmethod
    def proxies(self, states: Sequence[State]) -> list[Array]:
        """The proxies of every class, each (p_c, d) with p_c >= 1."""


@dataclass(frozen=True, kw_only=True)
class PerClassGenerator(Generator):
    """A generator that treats every class alone: the state already holds the proxies, as `rows`."""

    def proxies(self, states: Sequence[State]) -> list[Array]:
        return [state["rows"] for state in states]
