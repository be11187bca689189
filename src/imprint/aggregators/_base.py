from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from imprint.core.component import Component
from imprint.core.layout import Layout
from imprint.core.types import Array, Proxies, State
from imprint.kernels.rows import squared_distances


class Change(NamedTuple):
    """How the classes of a model differ from those of an earlier one; a class with more rows is removed and added."""

    prepared: Any  # for the earlier model
    removed: Array  # classes of the earlier model that are gone, by index
    added: Proxies | None  # the proxies of new classes; their labels are indices into all classes now
    labels: Array  # (p,) of all proxies now
    mass: Array  # (p,) of all proxies now


class Facts(NamedTuple):
    """What another program needs in order to decide from plain numbers, without this library."""

    use: str
    """In words what to do with the proxies, given a normalised embedding."""
    numbers: dict[str, float] = {}  # noqa: RUF012 - a tuple's default, never changed
    tensors: dict[str, Array] = {}  # noqa: RUF012


@dataclass(frozen=True, kw_only=True)
class Aggregator(Component):
    """Turn queries and proxies into one score per class; the largest score wins, the first class on ties."""

    family: ClassVar[str] = "imprint.aggregators"
    needs_points: ClassVar[bool] = False
    """Whether proxies must be points of the embedding space."""
    takes_tensors: ClassVar[bool] = False
    """Whether `prepare` computes on proxies whose weights are a torch tensor, where they lie."""
    measure: ClassVar[str] = "distance"
    """What `evidence` is: a `distance` (less counts more), a `similarity`, or a signed `weight`."""
    temperature_deviation: ClassVar[float] = 1.0
    """How far the temperature that calibrates `probabilities` is from 1 a priori: the standard deviation of its log."""
    layout: ClassVar[Layout] = {}
    """The format of `sums`; a stored one that does not fit is refused."""

    def sums(self, X: Array, Q: Array, weight: Array | None = None) -> State:
        """Statistics of training rows: of X as generators see them, of Q as queries; a row counts as its weight.

        `merge` joins those of parts of a class and of classes, in any grouping.
        """
        return {}

    def merge(self, parts: Sequence[State]) -> State:
        """The statistics of all rows from those of disjoint parts; by default their sum."""
        return {name: np.sum([part[name] for part in parts], axis=0) for name in parts[0]}

    def prepare(self, proxies: Proxies, sums: State) -> Any:
        """What `scores` needs and can be computed once from the proxies; by default the proxies themselves."""
        return proxies

    def update(self, change: Change, sums: State) -> Any | None:
        """The same from what was prepared for an earlier model; None where `prepare` is as good."""
        return None

    @abstractmethod
    def scores(self, Q: Array, prepared: Any) -> Array:
        """Class scores of every query.  # (q, n_classes)"""

    @abstractmethod
    def probabilities(self, S: Array, prepared: Any) -> Array:
        """Scores as probabilities: rows sum to one and keep their order.  # (q, n_classes)"""

    def doubt(self, Q: Array, prepared: Any) -> Array | None:
        """How far queries are from what the proxies represent, from 0 to 1; None where it cannot tell.  # (q,)"""
        return None

    def evidence(self, q: Array, proxies: Proxies, prepared: Any, winner: int) -> Array:
        """The contribution of every proxy to the winning class of one query, in terms of `measure`.  # (p,)"""
        return squared_distances(proxies.weights, q) ** 0.5

    def facts(self, proxies: Proxies, prepared: Any) -> Facts | None:
        """The numbers for a file that other programs read; None where plain numbers would not do."""
        return None

    def graph_doubt(self, g: Any, x: str, proxies: Proxies, prepared: Any) -> str | None:
        """The doubt of the value `x` as nodes of an ONNX graph `g`; None where it has none."""
        return None

    def graph(self, g: Any, x: str, proxies: Proxies, prepared: Any) -> tuple[str, str] | None:
        """Scores and probabilities of the value `x` as nodes of an ONNX graph `g`; None where it has none."""
        return None
