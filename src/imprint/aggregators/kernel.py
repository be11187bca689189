from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from imprint.aggregators._base import Aggregator, Change, Facts, ProxySource
from imprint.core.arrays import Array, Proxies, State, cast_like, like, on_gpu, to_numpy
from imprint.core.blocks import read_weights
from imprint.core.component import param
from imprint.core.errors import ParameterError, require
from imprint.core.layout import MAX_COUNT, MIN_MASS, Entry, Layout
from imprint.core.memory import physical_memory
from imprint.gaussian_process.choice import (
    SHRINKAGES,
    choose,
    choose_metric,
    sample_proxies,
)
from imprint.gaussian_process.local import LocalProcess, solve_locally
from imprint.gaussian_process.metric import (
    Metric,
    read_shrinkage,
    scatter,
    share_blocks,
    with_directions,
)
from imprint.gaussian_process.nystroem import Nystroem, solve_by_centres
from imprint.gaussian_process.posterior import (
    MAX_WITNESSES,
    Posterior,
    Process,
    add_classes,
    remove_classes,
    solve,
)
from imprint.gaussian_process.scale import (
    differ,
    is_updated,
    merge_moments,
    moments,
    remove_moments,
    rounded_scale,
    scale,
    scale_for,
    variance,
)
from imprint.gaussian_process.stored import (
    STORED_NAMES,
    system_from_arrays,
    system_to_arrays,
)
from imprint.kernels.cpu import one_blas_thread
from imprint.kernels.rows import squared_norms
from imprint.kernels.scores import softmax

# of a system that the CPU solves whole: 2.4 GB, under two minutes on two cores
MAX_EXACT_PROXIES = 24_576
MAX_EXACT_COEFFICIENTS = 2**27  # of such a system
MAX_EXACT_MULTIPLICATIONS = 2**39  # to solve it for the coefficients of all classes
# of a larger system solved through centres; with more, each query solves a small system
MAX_NYSTROEM_CLASSES = 340
# bytes of coefficients and factors of a system solved through centres
MAX_MEMORY = 2**32
MAX_MULTIPLICATIONS = 2**48  # to solve it: about an hour on two cores
MAX_STORED_COEFFICIENTS = 2**24  # in a file: 134 MB
# of blocks, whose metric is chosen again when a model is loaded: about 0.3 s, and the
# directions of the metric would take as much space as the proxies
MAX_CHOSEN_PROXIES = 512
MAX_ROWS_PER_PROXY = 4  # that count for `balance`
USE_OF_METRIC = (
    "Multiply q by the scales, column by column; then, with the matrix D of the"
    " directions, subtract D' (r * (D q)), where r is `removed`. The rows of the"
    " weights are already so. "
)
MIN_VARIANCE = 1e-280  # below, squared distances underflow


class SolvedKernel(NamedTuple):
    """The solved linear system of a `Kernel`."""

    system: Any  # Posterior, Nystroem or LocalProcess
    scale: float  # the s of the docstring of `Kernel`
    class_weights: Array  # (classes,) factors of the scores
    metric: Metric | None  # of the rows of `system`; None without blocks

    @property
    def centres(self) -> Array | slice:
        """The indices of the proxies that have coefficients: all, or the centres of a
        system with too many proxies.
        """
        return self.system.rows if isinstance(self.system, Nystroem) else slice(None)

    @property
    def coefficients(self) -> Array:
        """The coefficients of the scores, one row for each of `centres`.  # (p,
        classes)
        """
        return self.system.coefficients * self.class_weights

    def place(self, X: Any) -> Any:
        """Rows in the metric.  # (n, d)"""
        return X if self.metric is None else self.metric.apply(X)

    def weigh(self, S: Any) -> Any:
        """Scores of the system, times the weights of their classes.  # (n, classes)"""
        return S * cast_like(like(self.class_weights, S), S)


def _read_weights(value: Any) -> str | tuple[float, ...] | None:
    return None if value == "equal" else read_weights(value)


@dataclass(frozen=True, kw_only=True)
class Kernel(Aggregator):
    """Kernel ridge regression on the proxies, the posterior mean of a Gaussian process.

    Proxy w_i observes its class with a noise that falls with its mass m_i and grows
    with its spread v_i. With K_ij = exp(-gamma |w_i - w_j|^2 / s), N = diag(noise / m_i
    + spread v_i / s) and one-hot labels Y, the scores of a query q are k(q) A, where A
    = (K + N)^-1 Y and s is twice the variance of all training rows. With the generator
    `all` this is kernel ridge regression on the rows. The posterior standard deviation
    is the doubt; of more than 2,048 proxies, so many, of all classes, determine it.

    Above 4,096 proxies, s is rounded to powers of 2^(1/4), so that adding or removing a
    class updates the solution. Above 24,576 proxies, the system is solved through a
    subset of them, the `centres` (Nystroem, FALKON). With very many classes, each query
    instead solves a system of about 256 proxies, those of the classes with the nearest
    means. On a GPU the system is solved whole while its factor fits into half of the
    free memory.

    Classes with few rows would seldom win against classes with many. The scores of a
    class of n rows are therefore multiplied by (mean of n over classes / n)^balance,
    which is 1 for classes of equal size. n is the mass of the proxies of the class, and
    at most four times the largest number of proxies of a class.

    Blocks of an embedding are weighted: |x - z|^2 becomes sum_b w_b |x_b - z_b|^2. The
    weights are chosen among a few by the leave-one-out loss of proxies, in closed form.
    Up to 4,096 proxies, directions that vary within classes may count less, in the
    metric of the shrunk within-class covariance; the log loss of five folds decides.
    Both depend on the proxies alone, so models with the same classes choose the same.

    Probabilities are the softmax of the scores divided by `temperature`; `calibrate`
    calibrates them.
    """

    gamma: float = param(1.0, "how fast similarity falls with squared distance", gt=0)
    noise: float = param(0.1, "noise variance of a proxy that represents one row", gt=0)
    spread: float = param(0.2, "noise variance added per unit of spread", ge=0)
    balance: float = param(
        0.35,
        "exponent that raises the scores of classes with few rows; 0 for none",
        ge=0,
    )
    temperature: float = param(
        0.12, "divides the scores before the softmax", gt=0, detail=True
    )
    centres: int = param(
        4096,
        "maximum number of centres where there are too many proxies",
        ge=1,
        detail=True,
    )
    weights: str | tuple[float, ...] = param(
        "auto",
        "weights of the blocks of an embedding, or 'auto' to choose them",
        read=_read_weights,
        rule="'auto' or numbers >= 0, one for each block",
        detail=True,
    )
    shrinkage: str | float = param(
        "auto",
        "shrinkage of the within-class covariance of blocks, 'auto' to choose it, or"
        " 'none' for distances without it",
        read=read_shrinkage,
        rule="'auto', 'none' or a number > 0",
        detail=True,
    )
    needs_points = True
    takes_tensors = True
    measure = "weight"
    temperature_deviation = 0.12  # the default temperature suits tens of classes
    absent: ClassVar[Mapping[str, Any]] = {"balance": 0.0}
    stored_names = (
        *STORED_NAMES,
        "scale",
        "class_weights",
        "block_weights",
        "mixing",
        "removed",
    )
    layout: ClassVar[Layout] = {
        "mean": Entry("d", instead_of="total"),
        "scatter": Entry("1", minimum=0, instead_of="square"),
        "rows": Entry("1", minimum=MIN_MASS, maximum=MAX_COUNT),
        "total": Entry("d", instead_of="mean"),  # in earlier files: the sum of rows
        # and of their squared lengths
        "square": Entry("1", minimum=0, instead_of="scatter"),
    }

    def sums(self, X: Array, Q: Array, weight: Array | None = None) -> State:
        return moments(X, weight)

    def merge(self, parts: Sequence[State]) -> State:
        return merge_moments(parts)

    def remove(self, sums: State, part: State) -> State:
        return remove_moments(sums, part)

    def prepare(
        self, proxies: Proxies, sums: State, targets: Array | None = None
    ) -> SolvedKernel:
        """The solved system. With `targets` (p, labels), it scores labels instead of
        classes, without `balance`.
        """
        metric = self.metric_of(proxies, targets)
        s = scale_for(sums, len(proxies.labels))
        if metric is not None:
            proxies, s = _in_metric(proxies, metric, scale(sums))
        noise = self.noise_of(proxies, s)
        underflow = variance(sums) < MIN_VARIANCE and differ(proxies.weights)
        if underflow or not (
            np.isfinite(s) and np.isfinite(noise).all() and 0 < self.gamma / s < np.inf
        ):
            rule = (
                "the squares of the rows overflow or underflow; scale them or use"
                " norm_pre='l2'"
            )
            raise ParameterError(f"{self}: {rule}.")
        weights = (
            class_weights(proxies, self.balance)
            if targets is None
            else np.ones(targets.shape[1])
        )
        problem = proxies.weights, proxies.labels, noise, self.gamma / s
        with self._solving():
            if _is_exact(proxies.weights, len(proxies.labels), len(weights)):
                system: Any = solve(*problem, targets)
            elif targets is None and len(weights) > MAX_NYSTROEM_CLASSES:
                system = solve_locally(*problem)
            else:
                self._check_size(len(proxies.labels), len(weights))
                system = solve_by_centres(*problem, self.centres, targets)
        return SolvedKernel(system, s, weights, metric)

    def metric_of(
        self, proxies: Proxies, targets: Array | None = None
    ) -> Metric | None:
        """The weights of blocks, and the metric up to the number of proxies whose
        system is solved again with every change of the classes; None without blocks.
        """
        weights = None if isinstance(self.weights, str) else self.weights
        count = len(proxies.blocks) or 1
        if weights is not None and len(weights) != count:
            raise ParameterError(
                f"{self}: it has {len(weights)} weights, and the embeddings have"
                f" {count} block{'s' * (count > 1)}."
            )
        if not proxies.blocks:
            return None
        shrinkages = self._shrinkages(len(proxies.labels))
        return choose_metric(
            proxies, self.noise, self.spread, targets, weights, shrinkages
        )

    def settled(self, proxies: Proxies) -> "Kernel":
        """This aggregator with the weights and the shrinkage that it chooses for these
        proxies.
        """
        if not proxies.blocks:
            return self
        weights = None if isinstance(self.weights, str) else self.weights
        shrinkages = self._shrinkages(len(proxies.labels))
        chosen = choose(proxies, self.noise, self.spread, None, weights, shrinkages)
        shrinkage = "none" if chosen.shrinkage is None else chosen.shrinkage
        return replace(self, weights=chosen.weights, shrinkage=shrinkage)

    def _shrinkages(self, count: int) -> tuple[float | None, ...]:
        """The candidates of the metric's shrinkage with this number of proxies."""
        if is_updated(count) or self.shrinkage == "none":
            return (None,)
        if not isinstance(self.shrinkage, str):
            return (self.shrinkage,)
        return SHRINKAGES

    def is_fresh(self, prepared: SolvedKernel) -> bool:
        system = prepared.system
        return not (isinstance(system, Posterior) and system.is_updated)

    def stored(self, prepared: SolvedKernel) -> State:
        """The coefficients, and the metric in the precision in which it is used. The
        factor of the system would take more space than all proxies.
        """
        system, metric = prepared.system, prepared.metric
        if not isinstance(system, Posterior):
            return {}
        coefficients = system.coefficients
        # Of few proxies, the doubt needs the factor of the whole system anyway. To
        # choose the weights of blocks takes longer than to read them.
        few = MAX_WITNESSES if metric is None else MAX_CHOSEN_PROXIES
        if len(coefficients) <= few or coefficients.size > MAX_STORED_COEFFICIENTS:
            return {}
        arrays = {
            **system_to_arrays(system),
            "scale": np.array([prepared.scale]),
            "class_weights": prepared.class_weights,
        }
        if metric is not None:
            arrays |= {
                "block_weights": np.array(metric.weights),
                "mixing": metric.mixing,
                "removed": metric.removed,
            }
        return arrays

    def is_complete(self, stored: State) -> bool:
        return "centre" in stored

    def restored(self, rows: ProxySource, stored: State, outputs: int) -> SolvedKernel:
        for array in stored.values():
            require(array.dtype == np.float64 or array.dtype == np.int64)
            require(np.isfinite(array).all())
        require(stored["centre"].shape == (rows.width,))
        if "witness_centre" in stored:
            require(stored["witness_centre"].shape == (rows.width,))
        require(stored["scale"].shape == (1,) and stored["scale"][0] > 0)
        weights = stored["class_weights"]
        require(weights.shape == (outputs,) and (weights > 0).all())
        metric = self._restored_metric(rows, stored) if rows.blocks else None
        s = float(stored["scale"][0])
        solved = SolvedKernel(None, s, weights, metric)

        def take(index: Any) -> Array:
            placed: Array = solved.place(rows.take(index))
            return placed

        system = system_from_arrays(
            stored, take, rows.labels, self.gamma / s, outputs, rows.dtype
        )
        return solved._replace(system=system)

    def _restored_metric(self, rows: ProxySource, stored: State) -> Metric:
        """The metric of a model file."""
        block_weights = stored["block_weights"]
        removed = stored["removed"]
        mixing = stored["mixing"]
        require(block_weights.shape == (len(rows.blocks),))
        require((block_weights >= 0).all() and block_weights.any())
        require(removed.ndim == 1)
        metric = share_blocks(rows.blocks, block_weights.tolist())
        if not len(removed):
            return metric
        sample = sample_proxies(rows.proxies(), self.noise)
        require(mixing.shape == (len(removed), len(sample.rows)))
        with one_blas_thread():
            return with_directions(metric, sample.rows, sample.labels, mixing, removed)

    def update(self, change: Change, sums: State) -> SolvedKernel | None:
        """The updated solution, if the earlier one is exact, on the same device and has
        the same s; else None.
        """
        system, s = change.prepared.system, change.prepared.scale
        metric = change.prepared.metric
        count, new = len(change.labels), change.added
        if not isinstance(system, Posterior) or not is_updated(count):
            return None
        # to factor it takes as long as to solve the new system
        if system.known_factor is None:
            return None
        if metric is None:
            if s != scale_for(sums, count):
                return None
        elif not self._keeps_metric(change, sums):
            return None
        moved = new is not None and new.weights.device != system.weights.device
        if moved or not _is_exact(system.weights, count, int(change.labels[-1]) + 1):
            return None
        with self._solving():
            if len(change.removed):
                system = remove_classes(system, change.removed)
            if new is not None:
                if metric is not None:
                    new = _placed(new, metric)
                noise = self.noise_of(new, s)
                system = add_classes(system, new.weights, new.labels, noise)
        return SolvedKernel(system, s, class_weights(change, self.balance), metric)

    def _keeps_metric(self, change: Change, sums: State) -> bool:
        """Whether the present classes choose the weights and the scale of the earlier
        model.
        """
        before = change.prepared
        present = change.present()
        metric = self.metric_of(present)
        if metric is None or len(before.metric.removed):
            return False
        _, s = _in_metric(present, metric, scale(sums))
        return bool(metric.weights == before.metric.weights and s == before.scale)

    @contextmanager
    def _solving(self) -> Iterator[None]:
        """Use one BLAS thread, and report a system that is singular in floating
        point.
        """
        try:
            with one_blas_thread():
                yield
        except np.linalg.LinAlgError:
            raise ParameterError(
                f"{self}: proxies lie too close together for this noise; use a larger"
                " one."
            ) from None

    def noise_of(self, proxies: Proxies, s: float) -> Array:
        """The noise variance of each proxy.  # (p,)"""
        return np.asarray(self.noise / proxies.mass + self.spread * proxies.spread / s)

    def _check_size(self, count: int, n_classes: int) -> None:
        """Refuse a system that would take too much memory or time."""
        centres = min(self.centres, count)
        size, products = (
            4 * n_classes * centres + 32 * centres**2,
            4 * count * centres**2,
        )
        limit = min(MAX_MEMORY, (physical_memory() or 2 * MAX_MEMORY) // 2)
        if size > limit or products > MAX_MULTIPLICATIONS:
            raise ParameterError(
                f"{self}: {count:,} proxies of {n_classes:,} classes through"
                f" {centres:,} centres need {size / 2**30:.1f} GiB (at most"
                f" {limit / 2**30:.1f}) and {products:.1e} multiplications (at most"
                f" {MAX_MULTIPLICATIONS:.1e}); use fewer centres, such as"
                f" kernel(centres={max(1, centres // 4)}), fewer proxies, or the recipe"
                " imprint2025."
            )

    def scores(self, Q: Array, prepared: SolvedKernel) -> Array:
        return prepared.weigh(prepared.system.scores(prepared.place(Q)))

    def probabilities(self, S: Array, prepared: SolvedKernel) -> Array:
        return softmax(S, self.temperature)

    def doubt(self, Q: Array, prepared: SolvedKernel) -> Array | None:
        return prepared.system.doubt(prepared.place(Q))

    def scores_and_doubt(
        self, Q: Array, prepared: SolvedKernel
    ) -> tuple[Array, Array | None]:
        S, doubt = prepared.system.scores_and_doubt(prepared.place(Q))
        return prepared.weigh(S), doubt

    def evidence(
        self, q: Array, proxies: Proxies, prepared: SolvedKernel, winner: int
    ) -> Array:
        contributions = np.zeros(len(proxies.labels))
        contributions[prepared.centres] = prepared.system.contributions(
            prepared.place(q[None, :]), np.array([winner])
        )[0]
        return contributions * prepared.class_weights[winner]

    def gradient(
        self, q: Array, proxies: Proxies, prepared: SolvedKernel, direction: Array
    ) -> Array | None:
        """2 r sum_i a_i k_i (w_i - q) in the metric, with the rate r and the
        coefficients a of the direction.
        """
        if isinstance(prepared.system, LocalProcess):
            return None
        rate = self.gamma / prepared.scale
        centres = to_numpy(proxies.weights)[prepared.centres]
        placed = prepared.place(centres.astype(np.float64))
        query = prepared.place(q[None].astype(np.float64))
        differences = placed - query
        kernels = np.exp(-rate * squared_norms(differences))
        coefficients = to_numpy(prepared.coefficients).astype(np.float64) @ direction
        slope = 2 * rate * (coefficients * kernels) @ differences
        metric = prepared.metric
        return slope if metric is None else metric.transposed(slope[None])[0]

    def facts(self, proxies: Proxies, prepared: SolvedKernel) -> Facts | None:
        if isinstance(prepared.system, LocalProcess):
            return None
        rate = self.gamma / prepared.scale
        coefficients = np.zeros((len(proxies.labels), len(prepared.class_weights)))
        coefficients[prepared.centres] = prepared.coefficients
        tensors = {"coefficients": coefficients}
        place = ""
        if prepared.metric is not None:
            place = USE_OF_METRIC
            tensors["weights"] = prepared.metric.apply(proxies.weights)
            tensors |= prepared.metric.tensors(proxies.weights.dtype)
        return Facts(
            f"{place}With k_i = exp(-{rate!r} |q - w_i|^2) for every row w_i of the"
            " weights, the scores are k times the coefficients; the largest wins."
            f" Probabilities are the softmax of the scores over {self.temperature!r}.",
            {"rate": rate, "scale": self.temperature},
            tensors,
        )

    def graph(
        self, g: Any, x: str, proxies: Proxies, prepared: SolvedKernel
    ) -> tuple[str, str] | None:
        if isinstance(prepared.system, LocalProcess):
            return None
        dtype, double = proxies.weights.dtype, np.float64
        weights = prepared.place(proxies.weights[prepared.centres])
        k = self._graph_kernel(g, x, weights, prepared, prepared.system)
        S = g.add("MatMul", k, g.constant(prepared.coefficients, double))
        P = g.add(
            "Softmax", g.add("Div", S, g.constant(self.temperature, double)), axis=1
        )
        return g.cast(S, dtype), g.cast(P, dtype)

    def graph_doubt(
        self, g: Any, x: str, proxies: Proxies, prepared: SolvedKernel
    ) -> str | None:
        """The square root of 1 - |L^-1 k(q)|^2, where K + N = L L^T."""
        if not isinstance(prepared.system, Posterior):
            return None
        system = prepared.system.witnesses
        if len(system.removed_rows):
            return None
        proxies_of_doubt = to_numpy(system.weights)
        k = self._graph_kernel(g, x, proxies_of_doubt, prepared, system)
        # L^-T
        inverse_factor = to_numpy(
            system.factor.forward(like(np.eye(len(system.weights)), system.weights))
        )
        explained = g.reduce(
            "ReduceSumSquare",
            g.add("MatMul", k, g.constant(inverse_factor, np.float64)),
            1,
        )
        variance = g.add("Sub", g.constant(1, np.float64), explained)
        return str(g.add("Sqrt", g.add("Max", variance, g.constant(0, np.float64))))

    def _graph_kernel(
        self,
        g: Any,
        x: str,
        weights: Array,
        prepared: SolvedKernel,
        system: Process,
    ) -> str:
        """The kernels of queries and proxies, exp(-rate |q - w|^2), in double
        precision; the proxies are in the metric.  # (n, p)

        They are computed in float32 where the library does so too.
        """
        if prepared.metric is not None:
            x = prepared.metric.graph(g, x, weights.dtype)
        rate = self.gamma / prepared.scale
        dtype = np.float32 if system.is_graph_in_float32 else np.float64
        centre = to_numpy(prepared.system.centre).astype(np.float64)
        W = weights.astype(np.float64) - centre
        q = g.add("Sub", g.cast(x, dtype), g.constant(centre, dtype))
        cross = g.add("Gemm", q, g.constant(2 * rate * W, dtype), transB=1)
        squares = g.add(
            "Mul",
            g.reduce("ReduceSumSquare", q, 1, keep=True),
            g.constant(rate, dtype),
        )
        lengths = g.constant(rate * squared_norms(W), dtype)
        exponents = g.add("Sub", g.add("Sub", cross, squares), lengths)
        return str(g.cast(g.add("Exp", exponents), np.float64))


def class_weights(proxies: Proxies | Change, balance: float) -> Array:
    """(mean of n over classes / n)^balance for the rows n of each class; 1 for classes
    of equal size.  # (classes,)

    Rows beyond four times the largest number of proxies of a class hardly raise its
    scores and do not count.
    """
    counts = np.bincount(proxies.labels)
    rows = np.add.reduceat(proxies.mass, np.cumsum(counts) - counts)
    rows = np.minimum(rows, MAX_ROWS_PER_PROXY * counts.max())
    return np.asarray((rows.mean() / rows) ** balance)


def _in_metric(
    proxies: Proxies, metric: Metric, plain_scale: float
) -> tuple[Proxies, float]:
    """The proxies in the metric, and the scale of distances there."""
    placed = _placed(proxies, metric)
    before = scatter(proxies, proxies.weights)
    after = scatter(proxies, placed.weights)
    s = plain_scale
    if before.total > 0 and after.total > 0:
        s = plain_scale * after.total / before.total
    if is_updated(len(proxies.labels)):
        s = rounded_scale(s)
    if len(metric.removed) and before.within > 0:
        # How far rows lie from their proxy is one number for all directions. It is
        # taken to shrink as the distances between proxies of one class do.
        spread = proxies.spread * (after.within / before.within)
        placed = placed._replace(spread=spread)
    return placed, s


def _placed(proxies: Proxies, metric: Metric) -> Proxies:
    """The proxies in the metric. Their spread shrinks by the mean weight of a block, so
    that the noise of a proxy does not depend on other classes.
    """
    weights = metric.apply(proxies.weights)
    mean_weight = sum(metric.weights) / len(metric.weights)
    return proxies._replace(weights=weights, spread=proxies.spread * mean_weight)


def _is_exact(weights: Any, count: int, n_classes: int) -> bool:
    """Whether the whole system is solved: it fits into half of the free memory of a
    GPU, or the limits of the CPU.
    """
    if on_gpu(weights):
        import torch

        return (
            4 * count**2 + 24 * count * n_classes
            <= torch.cuda.mem_get_info(weights.device)[0] // 2
        )
    few_classes = (
        count * n_classes <= MAX_EXACT_COEFFICIENTS
        and count**2 * n_classes <= MAX_EXACT_MULTIPLICATIONS
    )
    return count <= MAX_EXACT_PROXIES and few_classes
