from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, cast

import numpy as np

from imprint.core.component import Component
from imprint.core.types import Array, State


class Request(NamedTuple):
    """One generator of several on the same rows, and what `numpy.random.default_rng` is given for it."""

    generator: "Generator"
    entropy: tuple[int, ...]


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

    @classmethod
    def summarise_many(cls, X: Array, requests: Sequence[Request], device: str = "cpu") -> list[State]:
        """States of several generators of this class on the same rows; each makes the proxies that `summarise` makes.

        What they have in common is done once: `seeded` and `nested` say what that is, and a class that knows more
        (one matrix for every k, one sum for every regularisation) says it here. What has a kernel for it runs on
        `device`, the rest on the CPU.
        """
        plans = cls.served_by(requests)
        found = {p: p.generator.summarise(X, np.random.default_rng(p.entropy)) for p in dict.fromkeys(plans)}
        return [r.generator.shorten(found[p]) for r, p in zip(requests, plans)]

    @classmethod
    def served_by(cls, requests: Sequence[Request]) -> list[Request]:
        """The requests whose states hold those asked for: no seed where none is used, the largest k where nested."""
        chosen = [r.generator for r in requests]
        if cls.nested:
            open_k = {g: replace(g, k=1) for g in set(chosen)}  # type: ignore[call-arg]
            largest: dict[Generator, Generator] = {}
            for g, key in open_k.items():
                largest[key] = max(largest.get(key, g), g, key=lambda g: g.k)  # type: ignore[attr-defined]
            chosen = [largest[open_k[g]] for g in chosen]
        return [Request(g, r.entropy if cls.seeded else ()) for g, r in zip(chosen, requests)]

    def shorten(self, state: State) -> State:
        """The state for this k out of one for a larger, where k is nested."""
        return {"rows": state["rows"][: self.k]} if self.nested else state  # type: ignore[attr-defined]

    def most(self, n: int) -> int:
        """The most proxies that n rows of a class can give."""
        return min(n, getattr(self, "k", 1))

    def work(self, n: int, d: int) -> float:
        """Roughly how many multiplications it takes to summarise n rows of width d."""
        return float(n * d * self.most(n))

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


@dataclass(frozen=True, kw_only=True)
class Picker(PerClassGenerator):
    """A generator whose proxies are rows of the class as they are."""

    picks_blindly: ClassVar[bool] = False
    """Whether it picks rows without looking at what they hold, so that it does not matter when they are scaled."""

    @abstractmethod
    def pick(self, X: Array, rng: np.random.Generator) -> Array:
        """The numbers of the rows that become proxies, in their order."""

    @classmethod
    def pick_many(cls, X: Array, requests: Sequence[Request]) -> list[Array]:
        """What several generators of this class pick from the same rows; what they have in common is done once."""
        plans = cls.served_by(requests)
        found = {p: cast(Picker, p.generator).pick(X, np.random.default_rng(p.entropy)) for p in dict.fromkeys(plans)}
        return [found[p][: r.generator.most(len(X))] for r, p in zip(requests, plans)]

    def summarise(self, X: Array, rng: np.random.Generator) -> State:
        return {"rows": X[self.pick(X, rng)]}
