from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from typing import ClassVar

import numpy as np

from imprint.core.arrays import Array, State
from imprint.core.component import Component
from imprint.core.errors import ParameterError
from imprint.core.layout import MAX_COUNT, MIN_MASS, Entry, Layout

ROWS_LAYOUT = {"rows": Entry("p d")}


def cluster_layout(count: str = "p") -> dict[str, Entry]:
    """The layout of a state whose `count` proxies represent clusters of rows."""
    mass = Entry(count, minimum=MIN_MASS, maximum=MAX_COUNT)
    return {
        "rows": Entry(f"{count} d"),
        "mass": mass,
        "spread": Entry(count, minimum=0),
    }


@dataclass(frozen=True, kw_only=True)
class Generator(Component):
    """Computes proxies (prototypes) from the embeddings of classes, in two steps.

    `summarise` reduces the rows of one class to a state. `proxies` turns the states of
    all classes into proxies. A state may hold `mass` and `spread`, one number per
    proxy: the number of rows that the proxy represents, and their mean squared distance
    to it. Without them, each proxy represents one row, itself.

    A generator that supports row weights has the additional parameter `weight: Array |
    None = None` in `summarise` and `extend`, with one positive number per row. A row of
    weight 2 counts as two equal rows.
    """

    family: ClassVar[str] = "imprint.generators"
    # whether proxies are points of the embedding space; else directions
    points: ClassVar[bool] = True
    # whether `summarise` computes on torch tensors; states are NumPy arrays
    takes_tensors: ClassVar[bool] = False
    # the arrays of a state, checked in files; None: any finite arrays
    layout: ClassVar[Layout | None] = None

    @property
    def takes_weights(self) -> bool:
        """Whether rows may have weights."""
        return "weight" in signature(self.summarise).parameters

    @abstractmethod
    def summarise(self, X: Array, rng: "np.random.Generator") -> State:
        """The state of one class.  # X: (n, d), n >= 1"""

    @abstractmethod
    def extend(self, state: State, X: Array, rng: "np.random.Generator") -> State:
        """The state after more rows of the class; `rng` starts from the same seed as
        for `summarise`.
        """

    @abstractmethod
    def proxies(self, states: Sequence[State]) -> list[Array]:
        """The proxies of each class, (p_c, d) with p_c >= 1."""

    def merge(self, states: Sequence[State], rng: "np.random.Generator") -> State:
        """The state of a class from the states of disjoint parts of its rows.

        Override it if such states can be merged; `rng` starts from the same seed as for
        `summarise`.
        """
        rule = (
            "it does not merge the states of one class; fit one model, or models that"
            " keep all rows (keep_rows=True)"
        )
        raise ParameterError(f"{self}: {rule}.")

    def merges_exactly(
        self, states: Sequence[State], rng: "np.random.Generator"
    ) -> bool:
        """Whether `merge` returns the state of one `summarise` over all rows, up to
        rounding.
        """
        return False

    def remove(self, state: State, X: Array, weight: Array | None = None) -> State:
        """The state of the class without some of its rows, where others remain.

        Override it if rows can be removed exactly, up to rounding.
        """
        rule = (
            "it does not remove single rows; keep all rows of the classes"
            " (keep_rows=True, --keep-rows)"
        )
        raise ParameterError(f"{self}: {rule}.")

    def all_rows(self, state: State) -> tuple[Array, Array | None] | None:
        """All rows of the class and their weights, in the order of their arrival, if
        the state holds them; else None.
        """
        return None

    def keeps_all(self, count: int) -> bool:
        """Whether the state of a class with this number of rows holds all of them.
        Cross-validation then computes the states of its folds from the rows.
        """
        return False

    def without_rows(self, state: State) -> State:
        """The state for a file that must not hold training rows.

        Override it if proxies are computed from several rows.
        """
        rule = (
            "its proxies are training rows, which the file would hold; use mean or"
            " kmeans"
        )
        raise ParameterError(f"{self}: {rule}.")

    def summarise_all(
        self,
        parts: Sequence[Array],
        rngs: "Sequence[np.random.Generator]",
        *weights: Sequence[Array],
    ) -> list[State]:
        """The states of several classes, identical to those of `summarise`; override it
        to compute them together.
        """
        return [self.summarise(*arguments) for arguments in zip(parts, rngs, *weights)]


@dataclass(frozen=True, kw_only=True)
class PerClassGenerator(Generator):
    """A generator whose proxies of a class depend only on that class: they are the
    `rows` of its state.
    """

    def proxies(self, states: Sequence[State]) -> list[Array]:
        return [state["rows"] for state in states]


def row_masses(X: Array, weight: Array | None) -> Array:
    """The weights of rows as float64, by default 1.  # (n,)"""
    return np.ones(len(X)) if weight is None else np.asarray(weight, dtype=np.float64)


def append_rows(
    rows: Array, mass: Array, X: Array, weight: Array | None
) -> tuple[Array, Array]:
    """Rows and their masses, followed by new rows and their weights.  # (n, d), (n,)"""
    return np.concatenate([rows, X]), np.concatenate([mass, row_masses(X, weight)])


def joined(states: Sequence[State], name: str) -> Array:
    """The arrays of one name of several states, one after the other."""
    return np.concatenate([state[name] for state in states])
