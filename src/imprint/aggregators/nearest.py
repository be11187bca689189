from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from imprint.aggregators._base import Aggregator
from imprint.core.component import param
from imprint.core.errors import ParameterError
from imprint.core.types import Array, Proxies
from imprint.kernels.neighbours import METRICS, nearest
from imprint.kernels.placed import class_neighbours

WEIGHTINGS = ("distance", "uniform")
SMALLEST = 1e-10  # added to distances before they are inverted


class Neighbours(NamedTuple):
    """The nearest proxies of every query, nearest first."""

    distances: Array  # (m, q)
    owners: Array  # (m, q) the class of each
    n_classes: int


@dataclass(frozen=True, kw_only=True)
class Nearest(Aggregator):
    """The m nearest proxies vote for their classes, each with the inverse of its distance to the query.

    `weighting="uniform"` counts heads; among classes with the same count the one with the nearest proxy wins.
    """

    m: int = param(5, "neighbours that vote", ge=1)
    metric: str = param("euclidean", "distance", choices=METRICS, detail=True)
    weighting: str = param("distance", "what a vote counts", choices=WEIGHTINGS, detail=True)

    @property
    def depth(self) -> int:
        return self.m

    @property
    def kind(self) -> str:
        return self.metric

    @property
    def heeds_lengths(self) -> tuple[bool, bool]:
        return (False, False) if self.metric == "cosine" else (True, True)

    def shortlists(self, Q: Array, parts: Sequence[Array], device: str = "cpu") -> list[Array]:
        starts = np.cumsum([0, *map(len, parts)])[:-1]
        return class_neighbours(Q, np.concatenate(parts), starts, self.m, self.metric, device)

    def gather(self, shortlists: Sequence[Array]) -> Neighbours:
        together = np.concatenate([part[: self.m] for part in shortlists])  # (proxies, q), sorted within a class
        owners = np.repeat(np.arange(len(shortlists)), [min(self.m, len(part)) for part in shortlists])
        order = np.argsort(together, axis=0, kind="stable")[: self.m]
        return Neighbours(np.take_along_axis(together, order, axis=0), owners[order], len(shortlists))

    def decide(self, gathered: Neighbours) -> Array:
        return self.votes(gathered.distances[: self.m], gathered.owners[: self.m], gathered.n_classes)

    def check(self, proxies: Proxies) -> None:
        if self.m > len(proxies.labels):
            raise ParameterError(f"{self}: m must not exceed the {len(proxies.labels)} proxies.")

    def scores(self, Q: Array, proxies: Proxies, n_classes: int) -> Array:
        self.check(proxies)
        distances, indices = nearest(Q, proxies.weights, self.m, self.metric)
        return self.votes(distances.T, proxies.labels[indices.T], n_classes).T.astype(Q.dtype, order="C", copy=False)

    def votes(self, distances: Array, labels: Array, n_classes: int) -> Array:
        """Shares of the votes of neighbours sorted by distance.  # (m, q), (m, q) -> (n_classes, q)"""
        votes = np.zeros((n_classes, labels.shape[1]))
        queries = np.arange(labels.shape[1])
        for j, owner in enumerate(labels):
            if self.weighting == "uniform":
                first = votes[owner, queries] == 0  # of equal counts the nearest proxy decides: half a vote
                votes[owner, queries] += 1 + first * (self.m - j) / (2 * self.m)
            else:
                votes[owner, queries] += 1 / (distances[j] + SMALLEST)
        return np.asarray(votes / (self.m if self.weighting == "uniform" else votes.sum(axis=0)))

    def probabilities(self, scores: Array, reach: float) -> Array:
        if self.weighting == "uniform":
            scores = np.floor(scores * self.m + 1e-3)  # heads, without what decides ties
        return np.asarray(scores / scores.sum(axis=1, keepdims=True, dtype=np.float64))
