from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from imprint.aggregators._base import Aggregator, Facts
from imprint.core.arrays import Resident, in_type_of, like, rows_at
from imprint.core.component import param
from imprint.core.errors import ParameterError
from imprint.core.types import Array, Proxies, State
from imprint.kernels.decisions import SMALLEST, by_distance, by_heads
from imprint.kernels.neighbours import METRICS, nearest
from imprint.kernels.rows import column_means
from imprint.kernels.softmax import shares

WEIGHTINGS = ("distance", "uniform")
TINY = float(np.finfo(np.float64).tiny)


class VotingProxies(NamedTuple):
    """The proxies, their classes, and the mean distance of the proxies from their mean."""

    resident: Resident
    labels: Array
    n_classes: int
    reach: float


@dataclass(frozen=True, kw_only=True)
class Nearest(Aggregator):
    """The m nearest proxies vote for their classes, each with the inverse of its distance to the query.

    `weighting="uniform"` counts heads; among classes with the same count the one with the nearest proxy wins.
    """

    m: int = param(5, "neighbours that vote", ge=1)
    metric: str = param("euclidean", "distance", choices=METRICS, detail=True)
    weighting: str = param("distance", "what a vote counts", choices=WEIGHTINGS, detail=True)

    def prepare(self, proxies: Proxies, sums: State) -> VotingProxies:
        if self.m > len(proxies.labels):
            raise ParameterError(f"{self}: m must not exceed the {len(proxies.labels)} proxies.")
        centre = column_means(proxies.weights)[None, :]
        reach = float(nearest(centre, proxies.weights, len(proxies.weights), self.metric)[0].mean())
        return VotingProxies(Resident(proxies.weights), proxies.labels, proxies.n_classes, reach)

    def scores(self, Q: Any, prepared: VotingProxies) -> Any:
        distances, indices = nearest(Q, prepared.resident.near(Q), self.m, self.metric)
        labels = rows_at(like(prepared.labels, indices), indices.T)
        if self.weighting == "uniform":
            return in_type_of(by_heads(labels, prepared.n_classes).T, Q)
        return in_type_of(by_distance(distances.T, labels, prepared.n_classes).T, Q)

    def probabilities(self, S: Any, prepared: VotingProxies) -> Any:
        if self.weighting == "uniform":
            S = (S * self.m + 1e-3) // 1  # heads, without what decides ties
        return shares(S)

    def doubt(self, Q: Array, prepared: VotingProxies) -> Array:
        """d / (d + r), with the mean distance d to the proxies that vote and r of all proxies to their mean.  # (q,)"""
        mean = nearest(Q, prepared.resident.near(Q), self.m, self.metric)[0].mean(axis=1)
        return in_type_of(mean / (mean + max(prepared.reach, TINY)), Q)

    def evidence(self, q: Array, proxies: Proxies, prepared: VotingProxies, winner: int) -> Array:
        distances, order = nearest(q[None, :], proxies.weights, len(proxies.weights), self.metric)
        by_proxy = np.empty(len(order[0]))
        by_proxy[order[0]] = distances[0]
        return by_proxy

    def facts(self, proxies: Proxies, prepared: VotingProxies) -> Facts:
        by_distance = self.weighting == "distance"
        vote = "the inverse of its distance" if by_distance else "one, and of equal counts the nearest proxy decides"
        return Facts(f"The {self.m} proxies nearest by {self.metric} distance vote for their classes: {vote}.")

    def graph(self, g: Any, x: str, proxies: Proxies, prepared: VotingProxies) -> tuple[str, str] | None:
        if self.metric not in ("euclidean", "cosine"):
            return None
        dtype = proxies.weights.dtype
        distances, index = self._graph_neighbours(g, g.cast(x, np.float64), proxies.weights)
        labels = g.unsqueeze(g.add("Gather", g.constant(proxies.labels, np.int64), index), 2)
        classes = g.constant(np.arange(proxies.n_classes), np.int64)
        mine = g.cast(g.add("Equal", labels, classes), np.float64)  # (n, m, C)
        if self.weighting == "distance":
            inverse = g.add("Reciprocal", g.add("Add", distances, g.constant(SMALLEST, np.float64)))
            votes = g.reduce("ReduceSum", g.add("Mul", mine, g.unsqueeze(inverse, 2)), 1)
            share = g.cast(g.add("Div", votes, g.reduce("ReduceSum", votes, 1, keep=True)), dtype)
            return share, share
        m = g.constant(self.m, np.float64)
        heads = g.cast(g.add("Div", g.reduce("ReduceSum", mine, 1), m), dtype)
        with_ties = g.reduce("ReduceSum", g.add("Add", mine, self._graph_ties(g, mine)), 1)
        return g.cast(g.add("Div", with_ties, m), dtype), heads

    def graph_doubt(self, g: Any, x: str, proxies: Proxies, prepared: VotingProxies) -> str | None:
        if self.metric not in ("euclidean", "cosine"):
            return None
        distances, _ = self._graph_neighbours(g, g.cast(x, np.float64), proxies.weights)
        mean = g.reduce("ReduceMean", distances, 1)
        return str(g.add("Div", mean, g.add("Add", mean, g.constant(max(prepared.reach, TINY), np.float64))))

    def _graph_neighbours(self, g: Any, query: str, weights: Array) -> tuple[str, str]:
        """Distances and indices of the m nearest proxies, nearest first; like the library's in double precision."""
        proxies, m = g.cast(g.constant(weights, weights.dtype), np.float64), g.constant([self.m], np.int64)
        if self.metric == "cosine":
            query, proxies = g.unit_rows(query, np.float64), g.unit_rows(proxies, np.float64)
            away = g.add("Sub", g.constant(1, np.float64), g.add("Gemm", query, proxies, transB=1))
            distances, index = g.split("TopK", 2, g.add("Max", away, g.constant(0, np.float64)), m, largest=0)
            return distances, index
        lengths = np.square(weights.astype(np.float64)).sum(axis=1)
        products = g.add("Mul", g.add("Gemm", query, proxies, transB=1), g.constant(2, np.float64))
        order = g.add("Sub", g.constant(lengths, np.float64), products)  # squared distances, but for the query's length
        _, index = g.split("TopK", 2, order, m, largest=0)
        apart = g.add("Sub", g.unsqueeze(query, 1), g.add("Gather", proxies, index))  # (n, m, d)
        return g.add("Sqrt", g.reduce("ReduceSumSquare", apart, 2)), index

    def _graph_ties(self, g: Any, mine: str) -> str:
        """What the first vote of a class counts more, the nearer its proxy is."""
        seen = g.add("CumSum", mine, g.constant(1, np.int64), exclusive=1)
        first = g.add("Mul", mine, g.cast(g.add("Equal", seen, g.constant(0, np.float64)), np.float64))
        return str(g.add("Mul", first, g.constant(((self.m - np.arange(self.m)) / (2 * self.m))[:, None], np.float64)))
