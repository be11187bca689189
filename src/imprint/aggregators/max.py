from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from imprint.aggregators._base import Aggregator, Facts
from imprint.core.arrays import Resident, dtype_name, namespace, to_numpy
from imprint.core.component import param
from imprint.core.errors import ParameterError
from imprint.core.layout import COUNTED, SMALLEST_MASS, Entry, Layout
from imprint.core.types import Array, Proxies, State
from imprint.kernels.maxima import class_maxima
from imprint.kernels.rows import squared_norms
from imprint.kernels.softmax import softmax


class SortedProxies(NamedTuple):
    """Proxies sorted by class, and the score that stands for certainty."""

    resident: Resident
    starts: Array
    reach: float

    @property
    def weights(self) -> Array:
        return self.resident.array


@dataclass(frozen=True, kw_only=True)
class Max(Aggregator):
    """The class whose best proxy has the largest inner product with the query.

    Probabilities are the softmax of the scores over a temperature, in units of the score that a query of usual length
    along the longest proxy gets (1 where everything is L2-normalised). They rank and compare; they are not calibrated.
    """

    temperature: float = param(0.01, "divides the scores before their softmax", gt=0, detail=True)
    measure: ClassVar[str] = "similarity"
    layout: ClassVar[Layout] = {"length": Entry("1", least=0), "rows": Entry("1", least=SMALLEST_MASS, most=COUNTED)}

    def sums(self, X: Array, Q: Array, weight: Array | None = None) -> State:
        with np.errstate(over="ignore"):
            lengths = to_numpy(squared_norms(Q) ** 0.5)
            mass = np.ones(len(Q)) if weight is None else np.asarray(weight, dtype=np.float64)
            total = float(mass @ lengths)
        if not np.isfinite(total):
            raise ParameterError(f"{self}: the lengths of the rows overflow; scale them down or use norm_inf='l2'.")
        return {"length": np.array([total]), "rows": mass.sum(keepdims=True)}

    def prepare(self, proxies: Proxies, sums: State) -> SortedProxies:
        longest = np.sqrt(squared_norms(proxies.weights).max())
        reach = float(sums["length"][0] / sums["rows"][0] * longest) or 1.0
        if not np.isfinite(reach):
            raise ParameterError(
                f"{self}: the lengths of the proxies overflow; scale the rows down or use norm_post='l2'."
            )
        return SortedProxies(Resident(proxies.weights), proxies.starts, reach)

    def scores(self, Q: Array, prepared: SortedProxies) -> Array:
        S = class_maxima(Q, prepared.resident.near(Q), prepared.starts)
        if _underflow(S, Q, prepared.weights):
            rule = "scale the rows up or use norm_inf='l2' and norm_post='l2'"
            raise ParameterError(f"{self}: the scores underflow {dtype_name(S)}; {rule}.")
        return S

    def probabilities(self, S: Array, prepared: SortedProxies) -> Array:
        return softmax(S, self.temperature * prepared.reach)

    def evidence(self, q: Array, proxies: Proxies, prepared: SortedProxies, winner: int) -> Array:
        return np.asarray(prepared.weights @ q)

    def facts(self, proxies: Proxies, prepared: SortedProxies) -> Facts:
        return Facts(
            "A class scores the largest inner product of the embedding with its rows of the weights; the largest score "
            "wins, the first class on a tie. Probabilities are the softmax of the scores over the scale "
            f"{self.temperature * prepared.reach!r}.",
            {"scale": self.temperature * prepared.reach},
        )

    def graph(self, g: Any, x: str, proxies: Proxies, prepared: SortedProxies) -> tuple[str, str]:
        dtype = prepared.weights.dtype
        products = g.add("Gemm", x, g.constant(prepared.weights, dtype), transB=1)
        if len(prepared.weights) > len(prepared.starts):
            by_class = g.add(
                "Gather", products, g.constant(own_proxies(proxies.labels), np.int64), axis=1
            )  # (n, C, most)
            products = g.reduce("ReduceMax", by_class, 2)
        scaled = g.add("Div", products, g.constant(self.temperature * prepared.reach, dtype))
        return products, g.add("Softmax", scaled, axis=1)


def _underflow(S: Any, Q: Any, W: Array) -> bool:
    """Whether scores of some query are too small for their type although neither it nor the proxies are zero."""
    limits = np.finfo(dtype_name(S))
    faint = np.flatnonzero(to_numpy(namespace(S).amax(abs(S), axis=1) < limits.tiny / limits.eps))
    if not len(faint):
        return False
    queries = [x.astype(np.float64) / (np.abs(x).max() or 1) for x in to_numpy(Q)[faint]]
    scaled = np.array(queries) @ (W.astype(np.float64) / (np.abs(W).max() or 1)).T
    return bool((np.abs(scaled) > limits.eps).any())


def own_proxies(labels: Array) -> Array:
    """The proxies of every class by index; a class with fewer than others repeats its first.  # (C, most)"""
    counts = np.bincount(labels)
    starts = np.cumsum(counts) - counts
    steps = np.arange(counts.max())[None, :]
    return np.asarray(starts[:, None] + np.where(steps < counts[:, None], steps, 0))
