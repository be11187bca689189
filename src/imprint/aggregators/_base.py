from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from imprint.core.component import Component
from imprint.core.types import Array, Proxies


@dataclass(frozen=True, kw_only=True)
class Aggregator(Component):
    """Turn queries and proxies into one score per class; the largest score wins, the first class on ties."""

    @property
    def depth(self) -> int:
        """How many proxies it takes into account: there must be as many, and no more of a class can matter."""
        return 1

    @property
    def kind(self) -> str:
        """Aggregators of one class and kind share shortlists: the deepest serves the others."""
        return ""

    @property
    def heeds_lengths(self) -> tuple[bool, bool]:
        """Whether decisions change with the lengths of queries, and with those of proxies."""
        return True, True

    @property
    def by_best_score(self) -> bool:
        """Whether what matters of a class is its largest inner product with the query, and the largest of all wins."""
        return False

    @abstractmethod
    def shortlists(self, Q: Array, parts: Sequence[Array], device: str = "cpu") -> list[Array]:
        """What matters of every class's proxies, best first.  # for each part: (r, q), r <= depth"""

    @abstractmethod
    def gather(self, shortlists: Sequence[Array]) -> Any:
        """What all classes of a task together show, from their shortlists."""

    @abstractmethod
    def decide(self, gathered: Any) -> Array:
        """Class scores from what this or a deeper aggregator of its kind has gathered.  # (n_classes, q)"""

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
