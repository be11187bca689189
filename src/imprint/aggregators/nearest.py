from dataclasses import dataclass

import numpy as np

from imprint.aggregators._base import Aggregator
from imprint.core.component import param
from imprint.core.errors import ParameterError
from imprint.core.types import Array, Proxies
from imprint.kernels.neighbours import METRICS, nearest

WEIGHTINGS = ("distance", "uniform")
SMALLEST = 1e-10  # added to distances before they are inverted


@dataclass(frozen=True, kw_only=True)
class Nearest(Aggregator):
    """The m nearest proxies vote for their classes, each with the inverse of its distance to the query.

    `weighting="uniform"` counts heads; among classes with the same count the one with the nearest proxy wins.
    """

    m: int = param(5, "neighbours that vote", ge=1)
    metric: str = param("euclidean", "distance", choices=METRICS, detail=True)
    weighting: str = param("distance", "what a vote counts", choices=WEIGHTINGS, detail=True)

    def check(self, proxies: Proxies) -> None:
        if self.m > len(proxies.labels):
            raise ParameterError(f"{self}: m must not exceed the {len(proxies.labels)} proxies.")

    def scores(self, Q: Array, proxies: Proxies, n_classes: int) -> Array:
        self.check(proxies)
        distances, indices = nearest(Q, proxies.weights, self.m, self.metric)
        return self.votes(distances, proxies.labels[indices], n_classes).astype(Q.dtype, copy=False)

    def votes(self, distances: Array, labels: Array, n_classes: int) -> Array:
        """Shares of the votes of neighbours sorted by distance.  # (q, m), (q, m) -> (q, n_classes)"""
        votes = np.zeros((len(labels), n_classes))
        rows = np.arange(len(labels))
        for j in range(labels.shape[1]):
            if self.weighting == "uniform":
                first = votes[rows, labels[:, j]] == 0  # of equal counts the nearest proxy decides: half a vote
                votes[rows, labels[:, j]] += 1 + first * (self.m - j) / (2 * self.m)
            else:
                votes[rows, labels[:, j]] += 1 / (distances[:, j] + SMALLEST)
        return np.asarray(votes / (self.m if self.weighting == "uniform" else votes.sum(axis=1, keepdims=True)))

    def probabilities(self, scores: Array, reach: float) -> Array:
        if self.weighting == "uniform":
            scores = np.floor(scores * self.m + 1e-3)  # heads, without what decides ties
        return np.asarray(scores / scores.sum(axis=1, keepdims=True, dtype=np.float64))
