from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from imprint.aggregators._base import Aggregator, Facts, Predecessor
from imprint.core.arrays import in_type_of, like
from imprint.core.component import param
from imprint.core.errors import ParameterError
from imprint.core.layout import COUNTED, SMALLEST_MASS, Entry, Layout
from imprint.core.types import Array, Proxies, State
from imprint.gaussian_process.nystroem import WHOLE, Landmarks, solve_by_landmarks
from imprint.gaussian_process.posterior import Posterior
from imprint.gaussian_process.scale import merge_moments, moments, rounded_scale, scale
from imprint.gaussian_process.update import ANEW, added, removed, solve
from imprint.kernels.cpu import one_blas_thread
from imprint.kernels.rows import squared_norms
from imprint.kernels.softmax import softmax

LARGEST_DOUBT_GRAPH = 2048
"""The maximum number of proxies whose doubt is exported: it takes a square matrix of float64."""


class SolvedKernel(NamedTuple):
    """The solved system, the scale of distances it was solved for, the class of every proxy and the class weights."""

    system: Posterior | Landmarks
    scale: float
    labels: Array
    class_weights: Array  # (classes,) factors of the scores

    @property
    def deciding(self) -> Array:
        """Which proxies have a coefficient: all, or the landmarks among very many."""
        return self.system.rows if isinstance(self.system, Landmarks) else np.arange(len(self.labels))

    @property
    def coefficients(self) -> Array:
        """Coefficients of the balanced scores, one row for each proxy in `deciding`.  # (p, classes)"""
        return self.system.coefficients * self.class_weights


@dataclass(frozen=True, kw_only=True)
class Kernel(Aggregator):
    """All proxies decide together, by one small linear system: a Gaussian process whose observations are clusters.

    A proxy observes its class with a noise that falls with its mass m and grows with its spread v:
    K_ij = exp(-gamma |w_i - w_j|^2 / s), N = diag(noise / m + spread v / s), A = (K + N)^-1 Y, scores k(q) A, where s
    is twice the variance of all training rows. With `all` rows as proxies this is kernel ridge regression. Above 4,096
    proxies s is rounded to steps of 2^(1/4), so that classes come and go without solving everything again; above 24,576
    the system is solved through 4,096 of them as landmarks.

    The score of a class is multiplied by (mean rows per class / rows of this class)^balance, where the rows of a class
    are the mass of its proxies: a class of few rows would otherwise seldom win against classes of many. With classes of
    equal size this changes nothing.

    Probabilities are the softmax of the scores over a temperature; `calibrate` calibrates them.
    """

    gamma: float = param(1.0, "how fast similarity falls with squared distance", gt=0)
    noise: float = param(0.1, "noise of a proxy that stands for one row", gt=0)
    spread: float = param(0.2, "how much the spread of a proxy's rows adds to its noise", ge=0)
    balance: float = param(0.35, "how much the scores of classes with few rows are raised, 0 for not at all", ge=0)
    temperature: float = param(0.12, "divides the scores before their softmax", gt=0, detail=True)
    needs_points: ClassVar[bool] = True
    measure: ClassVar[str] = "weight"
    absent: ClassVar[Mapping[str, Any]] = {"balance": 0.0}
    layout: ClassVar[Layout] = {
        "mean": Entry("d", instead_of="total"),
        "scatter": Entry("1", least=0, instead_of="square"),
        "rows": Entry("1", least=SMALLEST_MASS, most=COUNTED),
        "total": Entry("d", instead_of="mean"),  # of files written before rows were centred: sums of rows
        "square": Entry("1", least=0, instead_of="scatter"),  # and of their squared lengths
    }

    def sums(self, X: Array, Q: Array, weight: Array | None = None) -> State:
        return moments(X, weight)

    def merge(self, parts: Sequence[State]) -> State:
        return merge_moments(parts)

    def prepare(self, proxies: Proxies, sums: State, before: Predecessor | None = None) -> SolvedKernel:
        s = scale(sums)
        if not np.isfinite(s):
            raise ParameterError(f"{self}: the squares of the rows overflow; scale them down or use norm_pre='l2'.")
        s = rounded_scale(s) if len(proxies.labels) > ANEW else s
        noise = self.noise / proxies.mass + self.spread * proxies.spread / s
        try:
            with one_blas_thread():
                system = self._system(proxies, noise, s, before)
        except np.linalg.LinAlgError:
            raise ParameterError(f"{self}: proxies lie too close together for this noise; use a larger one.") from None
        return SolvedKernel(system, s, proxies.labels, class_weights(proxies, self.balance))

    def _system(self, proxies: Proxies, noise: Array, s: float, before: Predecessor | None) -> Posterior | Landmarks:
        if len(proxies.labels) > WHOLE:
            return solve_by_landmarks(proxies.weights, proxies.labels, noise, self.gamma / s)
        if before is not None and len(proxies.labels) > ANEW and _can_correct(before.prepared, s):
            return _changed(before, proxies, noise)
        return solve(proxies.weights, proxies.labels, noise, self.gamma / s)

    def scores(self, Q: Array, prepared: SolvedKernel) -> Array:
        S = prepared.system.scores(Q)
        return S * in_type_of(like(prepared.class_weights, S), S)

    def probabilities(self, S: Array, prepared: SolvedKernel) -> Array:
        return softmax(S, self.temperature)

    def doubt(self, Q: Array, prepared: SolvedKernel) -> Array | None:
        return prepared.system.doubt(Q)

    def evidence(self, q: Array, proxies: Proxies, prepared: SolvedKernel, winner: int) -> Array:
        contributions = np.zeros(len(prepared.labels))
        contributions[prepared.deciding] = prepared.system.contributions(q[None, :], np.array([winner]))[0]
        return contributions * prepared.class_weights[winner]

    def facts(self, proxies: Proxies, prepared: SolvedKernel) -> Facts:
        rate = self.gamma / prepared.scale
        coefficients = np.zeros((len(proxies.labels), proxies.n_classes))
        coefficients[prepared.deciding] = prepared.coefficients
        return Facts(
            f"With k_i = exp(-{rate!r} |q - w_i|^2) for every row w_i of the weights, the scores are k times the "
            f"coefficients; the largest wins. Probabilities are the softmax of the scores over {self.temperature!r}.",
            {"rate": rate, "scale": self.temperature},
            {"coefficients": coefficients},
        )

    def graph(self, g: Any, x: str, proxies: Proxies, prepared: SolvedKernel) -> tuple[str, str]:
        dtype, double = proxies.weights.dtype, np.float64
        k = self._graph_kernel(g, x, proxies.weights[prepared.deciding], prepared)
        S = g.add("MatMul", k, g.constant(prepared.coefficients, double))
        P = g.add("Softmax", g.add("Div", S, g.constant(self.temperature, double)), axis=1)
        return g.cast(S, dtype), g.cast(P, dtype)

    def graph_doubt(self, g: Any, x: str, proxies: Proxies, prepared: SolvedKernel) -> str | None:
        system = prepared.system
        if not isinstance(system, Posterior) or len(system.gone) or len(system.weights) > LARGEST_DOUBT_GRAPH:
            return None
        k = self._graph_kernel(g, x, system.weights, prepared)
        inverse = system.factor.forward(np.eye(len(system.weights)))  # of the factor, transposed
        explained = g.reduce("ReduceSumSquare", g.add("MatMul", k, g.constant(inverse, np.float64)), 1)
        left = g.add("Sub", g.constant(1, np.float64), explained)
        return str(g.add("Sqrt", g.add("Max", left, g.constant(0, np.float64))))

    def _graph_kernel(self, g: Any, x: str, weights: Array, prepared: SolvedKernel) -> str:
        """The kernel of queries and proxies.  # (n, p)"""
        double, rate = np.float64, self.gamma / prepared.scale
        centre = prepared.system.centre.astype(double)
        W = weights.astype(double) - centre
        q = g.add("Sub", g.cast(x, double), g.constant(centre, double))
        cross = g.add("Gemm", q, g.constant(2 * rate * W, double), transB=1)
        own = g.add("Mul", g.reduce("ReduceSumSquare", q, 1, keep=True), g.constant(rate, double))
        lengths = g.constant(rate * squared_norms(W), double)
        return str(g.add("Exp", g.add("Sub", g.add("Sub", cross, own), lengths)))


def class_weights(proxies: Proxies, balance: float) -> Array:
    """(mean rows per class / rows of this class)^balance; exactly 1 for classes of equal size.  # (classes,)"""
    rows = np.add.reduceat(proxies.mass, proxies.starts)
    return np.asarray((rows.mean() / rows) ** balance)


def _can_correct(prepared: SolvedKernel, s: float) -> bool:
    """Whether an exact solution at the same scale is there to be corrected."""
    return prepared.scale == s and isinstance(prepared.system, Posterior)


def _changed(before: Predecessor, proxies: Proxies, noise: Array) -> Posterior:
    """The system before without the classes that have gone or changed, and with those that are new or have changed."""
    then = before.prepared
    gone = np.setdiff1d(then.labels, then.labels[before.old])
    system = removed(then.system, gone) if len(gone) else then.system
    new = np.setdiff1d(np.arange(len(proxies.labels)), before.new)
    return added(system, proxies.weights[new], proxies.labels[new], noise[new]) if len(new) else system
