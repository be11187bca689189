"""k-means: greedy k-means++ seeding, then Lloyd's iteration; float32 data, float64
products and sums.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache, cached_property
from importlib.util import find_spec
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from imprint.core.arrays import AnyArray, Array, dtype_name, is_torch, on_gpu, to_numpy
from imprint.core.errors import ParameterError
from imprint.kernels import cpu
from imprint.kernels.lloyd import ClusterRows, trials
from imprint.kernels.rows import column_means

MAX_GRAM_ROWS = 2048  # whose Gram matrix is held in memory
# over all problems, per row; with fewer, the Gram matrix takes longer than it saves
MIN_GRAM_CLUSTERS = 1 / 32


class KMeansResult(NamedTuple):
    """The clusters that have rows; there may be fewer than k."""

    centres: Array  # (k', d) of the data's dtype
    labels: Array  # (n,) index of the nearest centre
    mass: Array  # (k',) float64
    spread: Array  # (k',) float64, mean squared distance of its rows to each centre
    inertia: float
    iterations: int


class Problem(NamedTuple):
    """One of many clusterings: the index of its rows, the number of clusters, the seed
    of the random numbers.
    """

    rows: int
    k: int
    seed: int | tuple[int, ...] | np.random.Generator


def kmeans(
    X: Array,
    k: int,
    rng: np.random.Generator,
    *,
    mass: Array | None = None,
    max_iter: int = 300,
    tol: float = 1e-4,
) -> KMeansResult:
    """Partition the rows into at most `k` clusters of small squared distance.

    Centres are means weighted by `mass`. The iteration ends as scikit-learn's does:
    when no row changes its cluster, or when the squared shift of the centres is at most
    `tol` times the mean variance of the columns.
    """
    return kmeans_many([X], [Problem(0, k, rng)], [mass], max_iter=max_iter, tol=tol)[0]


def kmeans_many(
    rows: Sequence[Array],
    problems: Sequence[Problem],
    masses: Sequence[Array | None] = (),
    *,
    max_iter: int = 300,
    tol: float = 1e-4,
) -> list[KMeansResult]:
    """Solve several problems at once on all cores; each result equals that of `kmeans`
    alone, bit for bit.

    `masses` are the weights of the rows of each data set, by default 1. Problems of the
    same rows share norms and sketches or, where the rows are few, their Gram matrix.
    Those of the same seed also share the seeding, which for a smaller `k` is a prefix
    of that for a larger one. Rows on a GPU are clustered there, float32 ones without
    masses by Triton programs; other tensors are clustered as arrays.
    """
    if max_iter < 1:
        raise ParameterError(f"kmeans(max_iter={max_iter}): max_iter must be int >= 1.")
    clusters: Counter[int] = Counter()
    for i, k, _ in problems:
        if k < 1:
            raise ParameterError(f"kmeans(k={k}): k must be int >= 1.")
        clusters[i] += k if 1 < k < len(rows[i]) else 0
    if _suits_triton(rows[0], masses):
        return _in_triton(rows, problems, max_iter, tol)
    return _on_cpu(rows, problems, masses, clusters, max_iter, tol)


def _in_triton(
    rows: Sequence[Array],
    problems: Sequence[Problem],
    max_iter: int,
    tol: float,
) -> list[KMeansResult]:
    """Results of Triton programs; where every row is a cluster, the rows in order, as
    everywhere else.
    """
    from imprint.kernels.tensor.kmeans import kmeans_many as in_triton

    results: dict[int, KMeansResult] = {}
    clustered = []
    for index, (i, k, _) in enumerate(problems):
        if k == 1 or k < len(rows[i]):
            clustered.append(index)
        else:
            # a copy in main memory: rows are compared byte by byte
            results[index] = _Data(to_numpy(rows[i]), None, tol).trivial(k)
    if clustered:
        of_clustered = in_triton(
            rows,  # type: ignore[arg-type]
            [problems[index] for index in clustered],
            max_iter=max_iter,
            tol=tol,
        )
        results |= zip(clustered, of_clustered)
    return [results[index] for index in range(len(problems))]


def _on_cpu(
    rows: Sequence[Array],
    problems: Sequence[Problem],
    masses: Sequence[Array | None],
    clusters: Counter[int],
    max_iter: int,
    tol: float,
) -> list[KMeansResult]:
    """Results of compiled code or NumPy, on all cores."""
    data = {}
    for i, (X, mass) in enumerate(zip_longest(rows, masses)):
        data[i] = _Data(X, mass, tol, clusters[i])
    trivial = cache(lambda i, k: data[i].trivial(k))
    results: dict[int, KMeansResult] = {}
    # by rows and by seeding
    groups: dict[int, dict[object, list[int]]] = defaultdict(lambda: defaultdict(list))

    def solve(i: int) -> None:
        shared = data.pop(i)  # so that the Gram matrix is freed
        for group in groups[i].values():
            # The seeds for a smaller k are the first of those for the largest.
            k = max(problems[index].k for index in group)
            rng = np.random.default_rng(problems[group[0]].seed)
            chosen = shared.rows(k).seed(k, rng)
            for index in group:
                seeds = chosen[: problems[index].k]
                results[index] = shared.cluster(seeds, max_iter)

    with cpu.one_blas_thread():
        for index, (i, k, seed) in enumerate(problems):
            # thousands of small classes are not worth a thread each
            if k == 1 or k >= len(rows[i]):
                results[index] = trivial(i, k)
            else:
                groups[i][seed, trials(k), data[i].is_compiled(k)].append(index)
        cpu.on_all_cores(solve, sorted(groups, key=lambda i: -clusters[i]))
    return [results[index] for index in range(len(problems))]


def _suits_triton(X: AnyArray, masses: Sequence[Array | None]) -> bool:
    """Whether rows are clustered by Triton programs."""
    if not on_gpu(X) or dtype_name(X) != "float32":
        return False
    has_masses = any(mass is not None for mass in masses)
    return not has_masses and find_spec("triton") is not None


class _Data:
    """The rows of one data set, in the forms that its problems share."""

    def __init__(
        self,
        X: Any,
        mass: Array | None,
        tol: float,
        clusters: int = 0,
    ) -> None:
        self.X = X if on_gpu(X) else np.ascontiguousarray(to_numpy(X))
        self.mass = mass
        self.weight = np.ones(len(X))
        if mass is not None:
            self.weight = np.asarray(mass, dtype=np.float64)
        if not self.weight.sum() > 0:
            raise ParameterError(
                "kmeans(mass=...): at least one row must have a positive mass."
            )
        self.tol = tol
        # Squares of such values, and sums of 10,000 of them, are far from the limits of
        # float32, 1e-38 and 3e38.
        self.is_moderate = False
        if not is_torch(self.X):
            largest = max(self.X.max(), -self.X.min())
            self.is_moderate = 1e-12 < largest < 1e12
        has_enough_clusters = MIN_GRAM_CLUSTERS * len(X) <= clusters
        self.shares_products = len(X) <= MAX_GRAM_ROWS and has_enough_clusters
        self._uncompiled = ClusterRows(self.X, self.weight)

    def is_compiled(self, k: int) -> bool:
        return self.is_moderate and cpu.use_numba(self.X.size * k)

    def rows(self, k: int) -> ClusterRows:
        """The rows in the form that suits this number of clusters."""
        return self._compiled if self.is_compiled(k) else self._uncompiled

    @cached_property
    def _compiled(self) -> ClusterRows:
        from imprint.kernels.compiled.kmeans import CompiledRows, GramRows

        kind = GramRows if self.shares_products else CompiledRows
        return kind(self.X, self.weight)

    def cluster(self, chosen: Array, max_iter: int) -> KMeansResult:
        """Lloyd's iteration from chosen rows."""
        rows = self.rows(len(chosen))
        limit = self.tol * rows.spread / self.X.shape[1]
        return self._result(rows, *rows.lloyd(chosen, limit, max_iter))

    def trivial(self, k: int) -> KMeansResult:
        """One cluster, or every distinct row of positive mass a cluster, in order of
        appearance.
        """
        if k == 1:
            centres = column_means(self.X, self.mass)[None].astype(dtype_name(self.X))
            labels = np.zeros(len(self.X), dtype=int)
        else:
            X = to_numpy(self.X)
            numbers: dict[bytes, int] = {}
            codes = []
            # -0 becomes 0
            for row in X + 0:
                codes.append(numbers.setdefault(row.tobytes(), len(numbers)))
            labels = np.array(codes)
            _, first = np.unique(labels, return_index=True)
            centres = X[first]
        return self._result(self.rows(len(centres)), centres, labels, 1)

    def _result(
        self,
        rows: ClusterRows,
        centres: Array,
        labels: Array,
        iterations: int,
    ) -> KMeansResult:
        """The result without clusters that have no mass."""
        mass = np.bincount(labels, self.weight, minlength=len(centres))
        has_mass = mass > 0
        if not has_mass.all():
            centres = centres[has_mass]
            mass = mass[has_mass]
            labels = rows.nearest(centres)
        squares = self.weight * rows.distances(centres, labels)
        spread = np.bincount(labels, squares, minlength=len(mass)) / mass
        return KMeansResult(
            centres,
            labels.astype(np.intp),
            mass,
            spread,
            float(squares.sum()),
            iterations,
        )
