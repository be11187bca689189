"""How pre-trained and imprinted classes are scored together: as one linear layer, or with a margin."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from imprint.aggregators._base import Aggregator, Facts
from imprint.aggregators.max import facts_of_maxima, graph_of_maxima
from imprint.calibration import CrossValidation
from imprint.core.component import param
from imprint.core.errors import ParameterError
from imprint.core.types import Array, Proxies
from imprint.head import Head
from imprint.kernels.maxima import class_maxima
from imprint.kernels.quantiles import ranks, values_at
from imprint.kernels.softmax import softmax

STRATEGIES = ("margin", "qi", "done")
SHARE = 0.99
"""The share of held-out pictures of new classes that must reach the margin."""
SMALLEST = 1e-37


class LinearLayer(NamedTuple):
    """A linear layer whose classes may have several rows."""

    weights: Array  # (p, d) sorted by class
    starts: Array  # (C,)
    bias: Array  # (C,)


class Gated(NamedTuple):
    """The pre-trained layer, a gate (one row per new class), and the head that chooses among the new classes."""

    old: LinearLayer
    gate: LinearLayer
    new: Head
    indices: Array  # (C,) among all classes, of the pre-trained ones and then the new ones
    bias: Array  # (C,)


@dataclass(frozen=True, kw_only=True)
class Logits(Aggregator):
    """A linear layer: a class scores the largest inner product of the query with its rows, plus its bias."""

    temperature: float = param(1.0, "divides the scores before their softmax", gt=0, detail=True)
    measure: ClassVar[str] = "similarity"

    def scores(self, Q: Array, prepared: LinearLayer) -> Array:
        return class_maxima(Q, prepared.weights, prepared.starts) + prepared.bias

    def probabilities(self, S: Array, prepared: Any) -> Array:
        return softmax(S / self.temperature)

    def evidence(self, q: Array, proxies: Proxies, prepared: Any, winner: int) -> Array:
        return np.asarray(proxies.weights @ q + prepared.bias[proxies.labels])

    def facts(self, proxies: Proxies, prepared: LinearLayer) -> Facts | None:
        return facts_of_maxima(self.temperature, prepared.bias)

    def graph(self, g: Any, x: str, proxies: Proxies, prepared: LinearLayer) -> tuple[str, str] | None:
        dtype = proxies.weights.dtype
        S = g.add("Add", graph_of_maxima(g, x, proxies), g.constant(prepared.bias, dtype))
        return S, g.add("Softmax", g.add("Div", S, g.constant(self.temperature, dtype)), axis=1)


@dataclass(frozen=True, kw_only=True)
class LogitsWithMargin(Logits):
    """Pre-trained classes score their logits. The best new class scores the largest logit of the gate minus the margin.

    The scores of the other new classes are lower by the differences of their log-probabilities among the new classes.
    """

    def scores(self, Q: Array, prepared: Any) -> Array:
        old, gate, new, indices, _ = prepared
        P = np.maximum(new.probabilities(new.scores(Q)), SMALLEST, dtype=np.float64)
        best = super().scores(Q, gate).max(axis=1, keepdims=True)
        S = np.concatenate([super().scores(Q, old), best + np.log(P / P.max(axis=1, keepdims=True))], axis=1)
        return np.asarray(S[:, np.argsort(indices)], dtype=Q.dtype)

    def facts(self, proxies: Proxies, prepared: Any) -> Facts | None:
        return None

    def graph(self, g: Any, x: str, proxies: Proxies, prepared: Any) -> tuple[str, str] | None:
        return None


def match_quantiles(weights: Array, W: Array) -> Array:
    """The rows W with the ranks of their values kept and the values replaced by the mean sorted row of `weights`.

    >>> match_quantiles(np.array([[0.0, 1.0, 5.0], [4.0, 2.0, 3.0]]), np.array([[0.2, 0.9, 0.1]]))
    array([[2. , 4.5, 1. ]])
    """
    target = np.sort(weights, axis=1).mean(axis=0, dtype=np.float64).astype(W.dtype)
    out = np.empty_like(W)
    values_at(ranks(W), target, out)
    return out


def gate(weights: Array, bias: Array, new: Head) -> LinearLayer:
    """One row for every new class: its mean, matched to the quantiles of the pre-trained weights; the median bias."""
    proxies = new.proxies
    sums = np.add.reduceat(proxies.weights * proxies.mass[:, None], proxies.starts, axis=0)
    means = (sums / np.add.reduceat(proxies.mass, proxies.starts)[:, None]).astype(proxies.weights.dtype)
    level = np.full(len(means), np.median(bias), dtype=bias.dtype)
    return LinearLayer(match_quantiles(weights, means), np.arange(len(means)), level)


def margin(old: LinearLayer, new: Head) -> float:
    """The margin by which the gate exceeds the pre-trained classes on 99 % of held-out pictures of new classes.

    At least 0, and 0 if no class has a second picture.
    """
    layer, gaps = Logits(), [np.empty(0)]
    if not isinstance(new.folds, CrossValidation):
        raise ParameterError("keep_head='margin': the margin is computed from held-out rows; it needs calibrate=True.")
    for f, head in enumerate(new.folds.heads):
        held_out = [rows.rows[rows.fold == f] for label, rows in new.folds.held.items() if label in head]
        X = np.concatenate(held_out) if held_out else np.empty((0, 0))
        if len(X):
            gated = layer.scores(X, gate(old.weights, old.bias, head))
            gaps.append(gated.max(axis=1) - layer.scores(X, old).max(axis=1))
    margins = np.concatenate(gaps)
    return max(0.0, float(np.quantile(margins, 1 - SHARE, method="lower"))) if len(margins) else 0.0
