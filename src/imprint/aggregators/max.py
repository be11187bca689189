from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from imprint.aggregators._base import Aggregator, Facts
from imprint.aggregators._weights import fixed_weights, weighted_proxies
from imprint.core.arrays import (
    Array,
    DeviceCopies,
    Proxies,
    State,
    dtype_name,
    namespace,
    to_numpy,
)
from imprint.core.component import param
from imprint.core.errors import ParameterError
from imprint.core.layout import MAX_COUNT, MIN_MASS, Entry, Layout
from imprint.kernels.rows import squared_norms
from imprint.kernels.scores import class_maxima, softmax


class SortedProxies(NamedTuple):
    """What `Max` needs: proxies sorted by class."""

    copies: DeviceCopies  # of the weights (p, d)
    starts: Array  # (C,) the first proxy of each class
    # the score of a query of mean length in the direction of the longest proxy
    scale: float


@dataclass(frozen=True, kw_only=True)
class Max(Aggregator):
    """Nearest prototype: a class scores the largest inner product of the query with one
    of its proxies.

    Probabilities are the softmax of the scores divided by `temperature` and by a scale:
    the score of a query of mean length in the direction of the longest proxy, which is
    1 for rows at unit length. `calibrate` calibrates them.
    """

    temperature: float = param(
        0.01, "divides the scores before the softmax", gt=0, detail=True
    )
    weights: str | tuple[float, ...] = fixed_weights()
    measure = "similarity"
    layout: ClassVar[Layout] = {
        "length": Entry("1", minimum=0),
        "rows": Entry("1", minimum=MIN_MASS, maximum=MAX_COUNT),
    }

    def sums(self, X: Array, Q: Array, weight: Array | None = None) -> State:
        with np.errstate(over="ignore"):
            lengths = to_numpy(squared_norms(Q) ** 0.5)
            mass = (
                np.ones(len(Q))
                if weight is None
                else np.asarray(weight, dtype=np.float64)
            )
            total = float(mass @ lengths)
        if not np.isfinite(total):
            raise ParameterError(
                f"{self}: the lengths of the rows overflow; scale them down or use"
                " norm_inf='l2'."
            )
        return {"length": np.array([total]), "rows": mass.sum(keepdims=True)}

    def _weighted(self, proxies: Proxies) -> Proxies:
        """The proxies with the weights of the blocks: they multiply inner products."""
        return weighted_proxies(self, self.weights, proxies, power=1.0)

    def prepare(self, proxies: Proxies, sums: State) -> SortedProxies:
        proxies = self._weighted(proxies)
        longest = np.sqrt(squared_norms(proxies.weights).max())
        scale = float(sums["length"][0] / sums["rows"][0] * longest) or 1.0
        if not np.isfinite(scale):
            rule = (
                "the lengths of the proxies overflow; scale the rows down or use"
                " norm_post='l2'"
            )
            raise ParameterError(f"{self}: {rule}.")
        return SortedProxies(DeviceCopies(proxies.weights), proxies.starts, scale)

    def scores(self, Q: Array, prepared: SortedProxies) -> Array:
        S = class_maxima(Q, prepared.copies.on_device_of(Q), prepared.starts)
        if _underflow(S, Q, prepared.copies.array):
            rule = "scale the rows up or use norm_inf='l2' and norm_post='l2'"
            raise ParameterError(
                f"{self}: the scores underflow {dtype_name(S)}; {rule}."
            )
        return S

    def probabilities(self, S: Array, prepared: SortedProxies) -> Array:
        return softmax(S, self.temperature * prepared.scale)

    def evidence(
        self, q: Array, proxies: Proxies, prepared: SortedProxies, winner: int
    ) -> Array:
        return np.asarray(self._weighted(proxies).weights @ q)

    def gradient(
        self, q: Array, proxies: Proxies, prepared: SortedProxies, direction: Array
    ) -> Array:
        """The best proxy of each class, times the direction."""
        weights = self._weighted(proxies).weights.astype(np.float64)
        products = weights @ q.astype(np.float64)
        parts = np.split(products, prepared.starts[1:])
        best = [part.argmax() for part in parts] + prepared.starts
        return np.asarray(direction @ weights[best])

    def facts(self, proxies: Proxies, prepared: SortedProxies) -> Facts:
        facts = facts_of_maxima(self.temperature * prepared.scale)
        return facts._replace(tensors={"weights": self._weighted(proxies).weights})

    def graph(
        self, g: Any, x: str, proxies: Proxies, prepared: SortedProxies
    ) -> tuple[str, str]:
        S = graph_of_maxima(g, x, self._weighted(proxies))
        scaled = g.add(
            "Div",
            S,
            g.constant(self.temperature * prepared.scale, proxies.weights.dtype),
        )
        return S, g.add("Softmax", scaled, axis=1)


def facts_of_maxima(scale: float, bias: Array | None = None) -> Facts:
    """The facts of scores that are maxima of inner products, plus a bias of each class
    if there is one.
    """
    plus_bias = "" if bias is None else ", plus its bias"
    return Facts(
        "A class scores the largest inner product of the embedding with its rows of"
        f" the weights{plus_bias}; the largest score wins, the first class on a tie."
        f" Probabilities are the softmax of the scores over the scale {scale!r}.",
        {"scale": scale},
        {} if bias is None else {"bias": bias},
    )


def graph_of_maxima(g: Any, x: str, proxies: Proxies) -> str:
    """The largest inner product of queries `x` with the proxies of each class, in an
    ONNX graph `g`.  # (n, C)
    """
    products = g.add(
        "Gemm", x, g.constant(proxies.weights, proxies.weights.dtype), transB=1
    )
    counts = np.bincount(proxies.labels)
    steps = np.arange(counts.max())
    # small classes repeat their first
    indices = proxies.starts[:, None] + np.where(steps < counts[:, None], steps, 0)
    if len(steps) == 1:
        return str(products)
    return str(
        g.reduce(
            "ReduceMax",
            g.add("Gather", products, g.constant(indices, np.int64), axis=1),
            2,
        )
    )


def _underflow(S: Any, Q: Any, W: Array) -> bool:
    """Whether all scores of some query are too small for their type, although neither
    it nor the proxies are zero.
    """
    limits = np.finfo(dtype_name(S))
    suspects = np.flatnonzero(
        to_numpy(namespace(S).amax(abs(S), axis=1) < limits.tiny / limits.eps)
    )
    if not len(suspects):
        return False
    queries = [
        x.astype(np.float64) / (np.abs(x).max() or 1) for x in to_numpy(Q)[suspects]
    ]
    scaled = np.array(queries) @ (W.astype(np.float64) / (np.abs(W).max() or 1)).T
    return bool((np.abs(scaled) > limits.eps).any())
