from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from imprint.core.arrays import Array, Proxies, State
from imprint.core.component import Component
from imprint.core.layout import Layout
from imprint.kernels.rows import squared_distances


class Change(NamedTuple):
    """How the classes of a model differ from those of an earlier one; a class with more
    rows is removed and added.
    """

    prepared: Any  # the result of `prepare` for the earlier model
    removed: Array  # the indices of the classes of the earlier model that were removed
    # the proxies of new classes; their labels are indices into all present classes
    added: Proxies | None
    labels: Array  # (p,) of all present proxies
    mass: Array  # (p,) of all present proxies
    present: Callable[[], Proxies]  # all present proxies, computed when called


class Facts(NamedTuple):
    """What another program needs, next to the proxies, to classify normalised
    embeddings without this library.
    """

    use: str  # the decision rule, in words
    numbers: dict[str, float] = {}  # noqa: RUF012 - a tuple's default, never changed
    tensors: dict[str, Array] = {}  # noqa: RUF012


class ProxySource(NamedTuple):
    """The proxies of a model file, whose weights are computed when they are needed."""

    labels: Array  # (p,) as in `Proxies`
    blocks: tuple[int, ...]
    width: int
    dtype: Any
    take: Callable[[Any], Array]  # the weights at some indices or of a slice
    proxies: Callable[[], Proxies]  # all of them

    @classmethod
    def of(cls, proxies: Proxies) -> "ProxySource":
        """Proxies that are in memory."""
        weights = proxies.weights

        def take(index: Any) -> Array:
            return np.asarray(weights[index])

        return cls(
            proxies.labels,
            proxies.blocks,
            weights.shape[1],
            weights.dtype,
            take,
            lambda: proxies,
        )


@dataclass(frozen=True, kw_only=True)
class Aggregator(Component):
    """Computes one score per class from queries and proxies. The largest score wins; on
    a tie, the first class.
    """

    family: ClassVar[str] = "imprint.aggregators"
    # whether proxies must be points of the embedding space
    needs_points: ClassVar[bool] = False
    # whether `prepare` takes weights as a torch tensor, on its device
    takes_tensors: ClassVar[bool] = False
    measure: ClassVar[str] = "distance"
    """The meaning of `evidence`: a `distance` (smaller is nearer), a `similarity`, or a
    signed `weight`.
    """
    temperature_deviation: ClassVar[float] = 1.0
    """The prior standard deviation of the logarithm of the temperature that calibrates
    `probabilities`.
    """
    layout: ClassVar[Layout] = {}  # the arrays of `sums`, checked in files
    stored_names: ClassVar[tuple[str, ...]] = ()  # that `stored` may return

    def sums(self, X: Array, Q: Array, weight: Array | None = None) -> State:
        """Statistics of training rows, given normalised as for the generator (X) and as
        queries (Q).

        `merge` joins the statistics of parts of a class, and of classes, in any
        grouping.
        """
        return {}

    def merge(self, parts: Sequence[State]) -> State:
        """The statistics of all rows from those of disjoint parts; by default the
        sum.
        """
        return {
            name: np.sum([part[name] for part in parts], axis=0) for name in parts[0]
        }

    def remove(self, sums: State, part: State) -> State:
        """The statistics without those of some rows: the inverse of `merge`."""
        return {name: sums[name] - part[name] for name in sums}

    def prepare(self, proxies: Proxies, sums: State) -> Any:
        """Everything that `scores` needs and that does not depend on queries, computed
        once; by default the proxies.
        """
        return proxies

    def settled(self, proxies: Proxies) -> "Aggregator":
        """This aggregator with the choices that it makes for these proxies, for models
        of fewer rows that are to choose the same; by default itself.
        """
        return self

    def is_fresh(self, prepared: Any) -> bool:
        """Whether `prepare` would return the same bits; not after an `update` that
        rounds.
        """
        return True

    def stored(self, prepared: Any) -> State:
        """Named arrays of a model file, by which `restored` is faster than `prepare`;
        empty if it would not be.
        """
        return {}

    def is_complete(self, stored: State) -> bool:
        """Whether a model file holds what `restored` needs."""
        return False

    def restored(self, rows: ProxySource, stored: State, outputs: int) -> Any:
        """The result of `prepare` from the arrays of `stored`, with `outputs` scores.

        Raises KeyError or ValueError for other arrays.
        """
        raise ValueError

    def update(self, change: Change, sums: State) -> Any | None:
        """The result of `prepare` from that of an earlier model; None if `prepare` is
        as fast.
        """
        return None

    @abstractmethod
    def scores(self, Q: Array, prepared: Any) -> Array:
        """The score of each class for each query.  # (q, n_classes)"""

    @abstractmethod
    def probabilities(self, S: Array, prepared: Any) -> Array:
        """Scores as probabilities, which sum to one and keep the order.  # (q,
        n_classes)
        """

    def doubt(self, Q: Array, prepared: Any) -> Array | None:
        """How little the proxies determine the scores of each query, from 0 to 1; None:
        not available.  # (q,)
        """
        return None

    def scores_and_doubt(self, Q: Array, prepared: Any) -> tuple[Array, Array | None]:
        """`scores` and `doubt` of the same queries, for aggregators that need less
        time for both together.
        """
        return self.scores(Q, prepared), self.doubt(Q, prepared)

    def evidence(self, q: Array, proxies: Proxies, prepared: Any, winner: int) -> Array:
        """The contribution of each proxy to the score of class `winner` for one query;
        see `measure`.  # (p,)
        """
        return squared_distances(proxies.weights, q) ** 0.5

    def gradient(
        self, q: Array, proxies: Proxies, prepared: Any, direction: Array
    ) -> Array | None:
        """The gradient, with respect to one query, of the sum of `direction` times the
        scores; None: not available.  # (d,)
        """
        return None

    def facts(self, proxies: Proxies, prepared: Any) -> Facts | None:
        """The contents of an exported file of arrays; None: not exportable."""
        return None

    def graph(
        self, g: Any, x: str, proxies: Proxies, prepared: Any
    ) -> tuple[str, str] | None:
        """The names of the scores and probabilities of queries `x` in an ONNX graph
        `g`; None: not exportable.
        """
        return None

    def graph_doubt(
        self, g: Any, x: str, proxies: Proxies, prepared: Any
    ) -> str | None:
        """The name of the doubt of queries `x` in an ONNX graph `g` that has `graph`;
        None: not exportable.
        """
        return None
