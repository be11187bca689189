from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from imprint.aggregators._base import Aggregator, Facts
from imprint.aggregators._weights import (
    fixed_weights,
    weighted_columns,
    weighted_proxies,
)
from imprint.core.arrays import (
    Array,
    DeviceCopies,
    Proxies,
    State,
    cast_like,
    like,
    rows_at,
)
from imprint.core.component import param
from imprint.core.errors import TooFewProxiesError
from imprint.kernels.neighbours import METRICS, nearest
from imprint.kernels.rows import column_means, double
from imprint.kernels.scores import DISTANCE_OFFSET, distance_votes, uniform_votes

MIN_RADIUS = float(np.finfo(np.float64).tiny)  # of the proxies: the doubt divides by it


class VotingProxies(NamedTuple):
    """What `Nearest` needs: proxies and their classes."""

    copies: DeviceCopies  # of the weights (p, d)
    labels: Array  # (p,)
    n_classes: int
    radius: float  # the mean distance of the proxies from their mean
    blocks: tuple[int, ...]  # of the embeddings


@dataclass(frozen=True, kw_only=True)
class Nearest(Aggregator):
    """k-nearest neighbours: the m proxies nearest to the query vote for their classes.

    A vote counts 1 / (distance + 1e-10), and scores are shares of the votes. With
    `weighting="uniform"` each vote counts one; on a tie, the class with the nearest
    proxy wins.
    """

    m: int = param(5, "number of neighbours that vote", ge=1)
    metric: str = param("euclidean", "distance", choices=METRICS, detail=True)
    weighting: str = param(
        "distance", "weight of a vote", choices=("distance", "uniform"), detail=True
    )
    weights: str | tuple[float, ...] = fixed_weights()

    def prepare(self, proxies: Proxies, sums: State) -> VotingProxies:
        proxies = self._weighted(proxies)
        if self.m > len(proxies.labels):
            raise TooFewProxiesError(
                f"{self}: m must not exceed the {len(proxies.labels)} proxies."
            )
        centre = column_means(proxies.weights)[None, :]
        radius = float(
            nearest(centre, proxies.weights, len(proxies.weights), self.metric)[
                0
            ].mean()
        )
        return VotingProxies(
            DeviceCopies(proxies.weights),
            proxies.labels,
            proxies.n_classes,
            radius,
            proxies.blocks,
        )

    def _weighted(self, proxies: Proxies) -> Proxies:
        """The proxies with weighted blocks: squared distances have these weights."""
        return weighted_proxies(self, self.weights, proxies, power=0.5)

    def _weighted_queries(self, Q: Any, prepared: VotingProxies) -> Any:
        return weighted_columns(self, self.weights, Q, prepared.blocks, power=0.5)

    def scores(self, Q: Any, prepared: VotingProxies) -> Any:
        distances, indices = nearest(
            self._weighted_queries(Q, prepared),
            prepared.copies.on_device_of(Q),
            self.m,
            self.metric,
        )
        labels, C = (
            rows_at(like(prepared.labels, indices), indices.T),
            prepared.n_classes,
        )
        votes = (
            uniform_votes(labels, C)
            if self.weighting == "uniform"
            else distance_votes(distances.T, labels, C)
        )
        return cast_like(votes.T, Q)

    def probabilities(self, S: Any, prepared: VotingProxies) -> Any:
        if self.weighting == "uniform":
            # numbers of votes, without the fractions that break ties
            S = (S * self.m + 1e-3) // 1
        S = double(S)
        return S / S.sum(axis=1, keepdims=True)

    def doubt(self, Q: Array, prepared: VotingProxies) -> Array:
        """d / (d + r), with the mean distance d of the voting proxies and the mean
        distance r of all to their mean.
        """
        placed = self._weighted_queries(Q, prepared)
        mean = nearest(placed, prepared.copies.on_device_of(Q), self.m, self.metric)[
            0
        ].mean(axis=1)
        return cast_like(mean / (mean + max(prepared.radius, MIN_RADIUS)), Q)

    def evidence(
        self, q: Array, proxies: Proxies, prepared: VotingProxies, winner: int
    ) -> Array:
        proxies = self._weighted(proxies)
        distances, order = nearest(
            self._weighted_queries(q[None, :], prepared),
            proxies.weights,
            len(proxies.weights),
            self.metric,
        )
        return np.asarray(distances[0, np.argsort(order[0])], dtype=np.float64)

    def gradient(
        self, q: Array, proxies: Proxies, prepared: VotingProxies, direction: Array
    ) -> Array | None:
        """That of the votes of the m nearest proxies, by Euclidean distance."""
        if self.metric != "euclidean" or self.weighting != "distance":
            return None
        placed = self._weighted_queries(q[None].astype(np.float64), prepared)
        weights = self._weighted(proxies).weights.astype(np.float64)
        distances, indices = nearest(placed, weights, self.m, self.metric)
        votes = 1 / (distances[0] + DISTANCE_OFFSET)
        values = direction[proxies.labels[indices[0]]]
        share = votes @ values / votes.sum()
        # the slope of a vote is -1 / distance^2, along the line to its proxy
        lines = (placed - weights[indices[0]]) / np.maximum(distances[0], MIN_RADIUS)[
            :, None
        ]
        slope = -((values - share) * votes**2) @ lines / votes.sum()
        return np.asarray(self._weighted_queries(slope[None], prepared)[0])

    def facts(self, proxies: Proxies, prepared: VotingProxies) -> Facts | None:
        by_distance = self.weighting == "distance"
        vote = (
            "the inverse of its distance"
            if by_distance
            else "one, and of equal counts the nearest proxy decides"
        )
        if not isinstance(self.weights, str):
            return None
        return Facts(
            f"The {self.m} proxies nearest by {self.metric} distance vote for their"
            f" classes: {vote}."
        )

    def graph(
        self, g: Any, x: str, proxies: Proxies, prepared: VotingProxies
    ) -> tuple[str, str] | None:
        if self.metric == "manhattan" or not isinstance(self.weights, str):
            return None
        dtype = proxies.weights.dtype
        distances, index = self._graph_neighbours(g, x, proxies.weights)
        labels = g.unsqueeze(
            g.add("Gather", g.constant(proxies.labels, np.int64), index), 2
        )
        classes = g.constant(np.arange(proxies.n_classes), np.int64)
        votes = g.cast(g.add("Equal", labels, classes), np.float64)  # (n, m, C)
        if self.weighting == "distance":
            inverse = g.add(
                "Reciprocal",
                g.add("Add", distances, g.constant(DISTANCE_OFFSET, np.float64)),
            )
            total = g.reduce(
                "ReduceSum", g.add("Mul", votes, g.unsqueeze(inverse, 2)), 1
            )
            share = g.cast(
                g.add("Div", total, g.reduce("ReduceSum", total, 1, keep=True)), dtype
            )
            return share, share
        # votes of nearer proxies for the class
        earlier = g.add("CumSum", votes, g.constant(1, np.int64), exclusive=1)
        first = g.add(
            "Mul",
            votes,
            g.cast(g.add("Equal", earlier, g.constant(0, np.float64)), np.float64),
        )
        # of nearer first votes
        lead = g.constant(
            ((self.m - np.arange(self.m)) / (2 * self.m))[:, None], np.float64
        )
        with_lead, m = (
            g.add("Add", votes, g.add("Mul", first, lead)),
            g.constant(self.m, np.float64),
        )
        S, P = (
            g.cast(g.add("Div", g.reduce("ReduceSum", v, 1), m), dtype)
            for v in (with_lead, votes)
        )
        return S, P

    def graph_doubt(
        self, g: Any, x: str, proxies: Proxies, prepared: VotingProxies
    ) -> str | None:
        if not isinstance(self.weights, str):
            return None
        mean = g.reduce(
            "ReduceMean", self._graph_neighbours(g, x, proxies.weights)[0], 1
        )
        return str(
            g.add(
                "Div",
                mean,
                g.add(
                    "Add",
                    mean,
                    g.constant(max(prepared.radius, MIN_RADIUS), np.float64),
                ),
            )
        )

    def _graph_neighbours(self, g: Any, x: str, weights: Array) -> list[str]:
        """Distances and indices of the m nearest proxies, nearest first, in float64 as
        in `scores`.  # (n, m)
        """
        query, proxies = (
            g.cast(x, np.float64),
            g.cast(g.constant(weights, weights.dtype), np.float64),
        )
        m = g.constant([self.m], np.int64)
        if self.metric == "cosine":
            query, proxies = (
                g.unit_rows(query, np.float64),
                g.unit_rows(proxies, np.float64),
            )
            cosines = g.add("Gemm", query, proxies, transB=1)
            distances = g.add(
                "Max",
                g.add("Sub", g.constant(1, np.float64), cosines),
                g.constant(0, np.float64),
            )
            return list(g.split("TopK", 2, distances, m, largest=0))
        lengths = np.square(weights.astype(np.float64)).sum(axis=1)
        products = g.add(
            "Mul", g.add("Gemm", query, proxies, transB=1), g.constant(2, np.float64)
        )
        # squared distances minus |q|^2
        ordering = g.add("Sub", g.constant(lengths, np.float64), products)
        _, index = g.split("TopK", 2, ordering, m, largest=0)
        # (n, m, d)
        differences = g.add(
            "Sub", g.unsqueeze(query, 1), g.add("Gather", proxies, index)
        )
        return [g.add("Sqrt", g.reduce("ReduceSumSquare", differences, 2)), index]
