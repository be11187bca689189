from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from imprint.aggregators._base import Aggregator, Change, Facts
from imprint.core.arrays import in_type_of, like, on_gpu, to_numpy
from imprint.core.component import param
from imprint.core.errors import ParameterError
from imprint.core.layout import COUNTED, SMALLEST_MASS, Entry, Layout
from imprint.core.memory import physical_memory
from imprint.core.types import Array, Proxies, State
from imprint.gaussian_process.local import LocalProcess, solve_locally
from imprint.gaussian_process.nystroem import Nystroem, solve_by_centres
from imprint.gaussian_process.posterior import Posterior
from imprint.gaussian_process.scale import differ, merge_moments, moments, variance
from imprint.gaussian_process.update import RESOLVED_ROWS, added, removed, scale_for, solve
from imprint.kernels.cpu import one_blas_thread
from imprint.kernels.rows import squared_norms
from imprint.kernels.softmax import softmax

LARGEST_DOUBT_GRAPH = 2048
"""The maximum number of proxies whose doubt is exported: it takes a square matrix of float64."""
EXACT_ROWS = 24_576
"""Proxies up to which the CPU solves the whole system: 2.4 GB, under two minutes on two cores."""
EXACT_COEFFICIENTS, EXACT_PRODUCTS = 2**27, 2**39
"""Coefficients, and multiplications to solve for them, up to which the CPU solves the whole system."""
COUNTED_ROWS = 4  # for each proxy, by `balance`
SMALLEST_VARIANCE = 1e-280  # below, squares of distances underflow
MANY_CLASSES = 340
"""Classes above which the nearest classes decide where the system is too large to be solved whole."""
LARGEST_MEMORY = 2**32
"""Bytes of coefficients up to which a model is solved through centres."""
LARGEST_PRODUCTS = 2**48
"""Multiplications up to which it is: about an hour on two cores."""

System: TypeAlias = Posterior | Nystroem | LocalProcess


class SolvedKernel(NamedTuple):
    """The solved system, the scale of distances it was solved for, the class of every proxy and the class weights."""

    system: System
    scale: float
    labels: Array
    class_weights: Array  # (classes,) factors of the scores

    @property
    def deciding(self) -> Array:
        """The proxies that have a coefficient: all, or the centres among very many."""
        return self.system.rows if isinstance(self.system, Nystroem) else np.arange(len(self.labels))

    @property
    def coefficients(self) -> Array:
        """Coefficients of the balanced scores, one row for each proxy in `deciding`.  # (p, classes)"""
        if isinstance(self.system, LocalProcess):
            raise TypeError("every query has coefficients of its own")
        return self.system.coefficients * self.class_weights


@dataclass(frozen=True, kw_only=True)
class Kernel(Aggregator):
    """All proxies decide together, by one small linear system: a Gaussian process whose observations are clusters.

    A proxy observes its class with a noise that falls with its mass m and grows with its spread v:
    K_ij = exp(-gamma |w_i - w_j|^2 / s), N = diag(noise / m + spread v / s), A = (K + N)^-1 Y, scores k(q) A, where s
    is twice the variance of all training rows. With `all` rows as proxies this is kernel ridge regression. Above 4,096
    proxies s is rounded to steps of 2^(1/4), so that classes are added and removed without solving everything again;
    above 24,576 the system is solved through `centres` of them. For very many classes every query solves the system of
    some 256 proxies of the classes with the nearest means. On a GPU the system is solved whole while its factor fits
    into half of the free memory.

    The score of a class is multiplied by (mean rows per class / rows of this class)^balance: a class of few rows would
    otherwise seldom win against classes of many. The rows of a class are the mass of its proxies, counted up to four
    times the largest number of proxies of a class. With classes of equal size this changes nothing.

    Probabilities are the softmax of the scores over a temperature; `calibrate` calibrates them.
    """

    gamma: float = param(1.0, "how fast similarity falls with squared distance", gt=0)
    noise: float = param(0.1, "noise of a proxy that stands for one row", gt=0)
    spread: float = param(0.2, "how much the spread of a proxy's rows adds to its noise", ge=0)
    balance: float = param(0.35, "how much the scores of classes with few rows are raised, 0 for not at all", ge=0)
    temperature: float = param(0.12, "divides the scores before their softmax", gt=0, detail=True)
    centres: int = param(4096, "proxies that decide where there are too many to solve for all", ge=1, detail=True)
    needs_points: ClassVar[bool] = True
    takes_tensors: ClassVar[bool] = True
    measure: ClassVar[str] = "weight"
    temperature_deviation: ClassVar[float] = 0.12  # `temperature` suits tens of classes
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

    def prepare(self, proxies: Proxies, sums: State, targets: Array | None = None) -> SolvedKernel:
        """The solved system; with `targets` (p, labels), it scores labels in the place of classes, not balanced."""
        s = scale_for(sums, len(proxies.labels))
        noise = self.noise_of(proxies, s)
        is_lost = variance(sums) < SMALLEST_VARIANCE and differ(proxies.weights)
        if is_lost or not (np.isfinite(s) and np.isfinite(noise).all() and 0 < self.gamma / s < np.inf):
            rule = "the squares of the rows overflow or underflow; scale them or use norm_pre='l2'"
            raise ParameterError(f"{self}: {rule}.")
        with self._enough_noise():
            system = self._system(proxies, noise, s, targets)
        weights = class_weights(proxies, self.balance) if targets is None else np.ones(targets.shape[1])
        return SolvedKernel(system, s, proxies.labels, weights)

    def update(self, change: Change, sums: State) -> SolvedKernel | None:
        """An exact solution at the same scale, on the same device, is corrected by the classes that changed."""
        count, new, system = len(change.labels), change.added, change.prepared.system
        s = scale_for(sums, count)
        if not (isinstance(system, Posterior) and s == change.prepared.scale and count > RESOLVED_ROWS):
            return None
        is_there = new is None or new.weights.device == system.weights.device
        if not (is_there and _is_exact(system.weights, count, int(change.labels[-1]) + 1)):
            return None
        with self._enough_noise():
            if len(change.removed):
                system = removed(system, change.removed)
            if new is not None:
                system = added(system, new.weights, new.labels, self.noise_of(new, s))
        return SolvedKernel(system, s, change.labels, class_weights(change, self.balance))

    @contextmanager
    def _enough_noise(self) -> Iterator[None]:
        """One thread of BLAS, and our error where proxies are too close together for their noise."""
        try:
            with one_blas_thread():
                yield
        except np.linalg.LinAlgError:
            raise ParameterError(f"{self}: proxies lie too close together for this noise; use a larger one.") from None

    def noise_of(self, proxies: Proxies, s: float) -> Array:
        """The noise of every proxy at the scale s of distances.  # (p,)"""
        return np.asarray(self.noise / proxies.mass + self.spread * proxies.spread / s)

    def _system(self, proxies: Proxies, noise: Array, s: float, targets: Array | None) -> System:
        n_classes = proxies.n_classes if targets is None else targets.shape[1]
        problem = proxies.weights, proxies.labels, noise, self.gamma / s
        if not _is_exact(proxies.weights, len(proxies.labels), n_classes):
            if targets is None and n_classes > MANY_CLASSES:
                return solve_locally(*problem)
            self._check_size(len(proxies.labels), n_classes)
            return solve_by_centres(*problem, self.centres, targets)
        return solve(*problem, targets)

    def _check_size(self, count: int, n_classes: int) -> None:
        """Refuse what would take too much memory or time, before it is spent."""
        centres = min(self.centres, count)
        coefficients, factors = 4 * n_classes * centres, 32 * centres**2
        limit = min(LARGEST_MEMORY, (physical_memory() or 2 * LARGEST_MEMORY) // 2)
        if coefficients + factors > limit or 4 * count * centres**2 > LARGEST_PRODUCTS:
            raise ParameterError(
                f"{self}: {count:,} proxies of {n_classes:,} classes through {centres:,} centres need "
                f"{(coefficients + factors) / 2**30:.1f} GiB (at most {limit / 2**30:.1f}) and "
                f"{4 * count * centres**2:.1e} multiplications (at most {LARGEST_PRODUCTS:.1e}); use fewer centres, "
                f"such as kernel(centres={max(1, centres // 4)}), fewer proxies, or --recipe imprint2025."
            )

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

    def facts(self, proxies: Proxies, prepared: SolvedKernel) -> Facts | None:
        if isinstance(prepared.system, LocalProcess):
            return None
        rate = self.gamma / prepared.scale
        coefficients = np.zeros((len(proxies.labels), len(prepared.class_weights)))
        coefficients[prepared.deciding] = prepared.coefficients
        return Facts(
            f"With k_i = exp(-{rate!r} |q - w_i|^2) for every row w_i of the weights, the scores are k times the "
            f"coefficients; the largest wins. Probabilities are the softmax of the scores over {self.temperature!r}.",
            {"rate": rate, "scale": self.temperature},
            {"coefficients": coefficients},
        )

    def graph(self, g: Any, x: str, proxies: Proxies, prepared: SolvedKernel) -> tuple[str, str] | None:
        if isinstance(prepared.system, LocalProcess):
            return None
        dtype, double = proxies.weights.dtype, np.float64
        k = self._graph_kernel(g, x, proxies.weights[prepared.deciding], prepared)
        S = g.add("MatMul", k, g.constant(prepared.coefficients, double))
        P = g.add("Softmax", g.add("Div", S, g.constant(self.temperature, double)), axis=1)
        return g.cast(S, dtype), g.cast(P, dtype)

    def graph_doubt(self, g: Any, x: str, proxies: Proxies, prepared: SolvedKernel) -> str | None:
        system = prepared.system
        if not isinstance(system, Posterior) or len(system.removed_rows) or len(system.weights) > LARGEST_DOUBT_GRAPH:
            return None
        k = self._graph_kernel(g, x, to_numpy(system.weights), prepared)
        inverse = to_numpy(system.factor.forward(like(np.eye(len(system.weights)), system.weights)))  # of L, transposed
        explained = g.reduce("ReduceSumSquare", g.add("MatMul", k, g.constant(inverse, np.float64)), 1)
        left = g.add("Sub", g.constant(1, np.float64), explained)
        return str(g.add("Sqrt", g.add("Max", left, g.constant(0, np.float64))))

    def _graph_kernel(self, g: Any, x: str, weights: Array, prepared: SolvedKernel) -> str:
        """The kernel of queries and proxies.  # (n, p)"""
        double, rate = np.float64, self.gamma / prepared.scale
        centre = to_numpy(prepared.system.centre).astype(double)
        W = weights.astype(double) - centre
        q = g.add("Sub", g.cast(x, double), g.constant(centre, double))
        cross = g.add("Gemm", q, g.constant(2 * rate * W, double), transB=1)
        squares = g.add("Mul", g.reduce("ReduceSumSquare", q, 1, keep=True), g.constant(rate, double))
        lengths = g.constant(rate * squared_norms(W), double)
        return str(g.add("Exp", g.add("Sub", g.add("Sub", cross, squares), lengths)))


def class_weights(proxies: Proxies | Change, balance: float) -> Array:
    """(mean rows per class / rows of this class)^balance; exactly 1 for classes of equal size.  # (classes,)

    Rows beyond four times the largest number of proxies of a class hardly raise its scores; they do not count.
    """
    counts = np.bincount(proxies.labels)
    rows = np.add.reduceat(proxies.mass, np.cumsum(counts) - counts)
    rows = np.minimum(rows, COUNTED_ROWS * counts.max())
    return np.asarray((rows.mean() / rows) ** balance)


def _is_exact(weights: Any, count: int, n_classes: int) -> bool:
    """Whether the whole system is solved: while it fits into half of a GPU's free memory, or the limits of the CPU."""
    if on_gpu(weights):
        import torch

        free = torch.cuda.mem_get_info(weights.device)[0]
        return 4 * count**2 + 24 * count * n_classes <= free // 2
    few_classes = count * n_classes <= EXACT_COEFFICIENTS and count**2 * n_classes <= EXACT_PRODUCTS
    return count <= EXACT_ROWS and few_classes
