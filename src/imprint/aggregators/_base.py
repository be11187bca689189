from abc import abstractmethod
from dataclasses import dataclass

from imprint.core.component import Component
from imprint.core.types import Array, Proxies


@dataclass(frozen=True, kw_only=True)
class Aggregator(Component):
    """Turn queries and proxies into one score per class; the largest score wins, the first class on ties."""

    def check(self, proxies: Proxies) -> None:
        """Refuse proxies this aggregator cannot work with."""

    @abstractmethod
    def scores(self, Q: Array, proxies: Proxies, n_classes: int) -> Array:
        """Class scores of every query.  # (q, n_classes)"""

    @abstractmethod
    def probabilities(self, scores: Array, reach: float) -> Array:
        """Scores as probabilities: rows sum to one, the order within a row stays.

        `reach` is the score of a query of usual length that points along the longest proxy.
        """
