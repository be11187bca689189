"""One valid component of each family that implements only what is required."""

from dataclasses import dataclass

import numpy as np

from imprint.aggregators._base import Aggregator
from imprint.core.component import param
from imprint.generators._base import Generator
from imprint.normalisers._base import Normaliser


@dataclass(frozen=True, kw_only=True)
class Halve(Normaliser):
    def apply(self, X, reference=None):
        return X / 2


@dataclass(frozen=True, kw_only=True)
class Corners(Generator):
    """The smallest and the largest value of every column, and a proxy on the line between them."""

    share: float = param(0.5, "how far from the smallest", ge=0)

    def summarise(self, X, rng):
        return {"low": X.min(axis=0), "high": X.max(axis=0)}

    def extend(self, state, X, rng):
        return self.summarise(np.stack([state["low"], state["high"], *X]), rng)

    def proxies(self, states):
        return [
            np.stack([s["low"], s["low"] + self.share * (s["high"] - s["low"])])
            for s in states
        ]


@dataclass(frozen=True, kw_only=True)
class Closest(Aggregator):
    def scores(self, Q, prepared):
        apart = ((Q[:, None, :] - prepared.weights) ** 2).sum(axis=2)
        return np.stack(
            [
                -apart[:, prepared.labels == c].min(axis=1)
                for c in range(prepared.n_classes)
            ],
            axis=1,
        )

    def probabilities(self, S, prepared):
        E = np.exp(S - S.max(axis=1, keepdims=True))
        return E / E.sum(axis=1, keepdims=True)
