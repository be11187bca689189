"""k-means: greedy k-means++ seeding, then Lloyd's iteration; float32 data, float64 products and sums."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache
from threading import Lock
from typing import NamedTuple

import numpy as np

from imprint.core.arrays import is_torch, on_gpu, to_numpy
from imprint.core.errors import ParameterError
from imprint.core.types import Array
from imprint.kernels import cpu
from imprint.kernels.lloyd import ClusterRows, trials
from imprint.kernels.rows import column_means

GRAM_ROWS = 2048
"""Rows up to which all their inner products with each other are held."""
GRAM_CLUSTERS = 1 / 32
"""Clusters over all problems, per row, from which the Gram matrix saves more time than it takes."""


class KMeansResult(NamedTuple):
    """Centres without empty clusters, and what belongs to each."""

    centres: Array  # (k', d) of the data's dtype
    labels: Array  # (n,) index of the nearest centre
    mass: Array  # (k',) float64
    spread: Array  # (k',) float64, mean squared distance of its rows to each centre
    inertia: float
    iterations: int


class Problem(NamedTuple):
    """One clustering out of many: which rows, how many clusters, what `numpy.random.default_rng` is given."""

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

    Centres are means weighted by `mass`. The iteration ends as scikit-learn's does: when no row changes its cluster,
    or when the squared shift of the centres is at most `tol` times the mean variance of the columns.

    >>> X = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> kmeans(X, 2, np.random.default_rng(0)).inertia
    1.0
    """
    _check(k, max_iter)
    if is_torch(X):
        return kmeans_many([X], [Problem(0, k, rng)], max_iter=max_iter, tol=tol)[0]
    data = _Data(X, mass, tol)
    with cpu.one_blas_thread():
        if data.is_trivial(k):
            return data.trivial(k)
        return data.cluster(data.rows(k).seed(k, rng), max_iter)


def kmeans_many(
    rows: Sequence[Array],
    problems: Sequence[Problem],
    *,
    max_iter: int = 300,
    tol: float = 1e-4,
) -> list[KMeansResult]:
    """Solve several problems at once on all cores; each result equals that of `kmeans` alone, bit for bit.

    Problems of the same rows share norms and sketches or, where the rows are few, their Gram matrix. Those of the same
    seed also share the seeding, which for a smaller `k` is a prefix of that for a larger one. Rows on a GPU are
    clustered there; other tensors are clustered as arrays.

    >>> X = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> [r.inertia for r in kmeans_many([X], [Problem(0, 1, 7), Problem(0, 2, 7)])]
    [101.0, 1.0]
    """
    if on_gpu(rows[0]):
        from imprint.kernels.tensor.kmeans import kmeans_many as on_tensors

        return on_tensors(rows, problems, max_iter=max_iter, tol=tol)  # type: ignore[arg-type]
    rows = [to_numpy(X) for X in rows]
    clusters: Counter[int] = Counter()
    for i, k, _ in problems:
        _check(k, max_iter)
        clusters[i] += k if 1 < k < len(rows[i]) else 0
    data = [_Data(X, None, tol, clusters[i]) for i, X in enumerate(rows)]
    trivial = cache(lambda i, k: data[i].trivial(k))
    results: dict[int, KMeansResult] = {}
    groups: dict[object, list[int]] = defaultdict(list)  # problems that share a seeding
    tasks: dict[object, list[list[int]]] = defaultdict(list)  # groups that one core solves

    def solve(task: list[list[int]]) -> None:
        for group in task:
            i, largest, seed = max((problems[index] for index in group), key=lambda problem: problem.k)
            chosen = data[i].rows(largest).seed(largest, np.random.default_rng(seed))
            results.update({index: data[i].cluster(chosen[: problems[index].k], max_iter) for index in group})
        if data[i].shares_products:
            data[i].free()

    with cpu.one_blas_thread():
        for index, (i, k, seed) in enumerate(problems):
            if data[i].is_trivial(k):  # thousands of small classes are not worth a thread each
                results[index] = trivial(i, k)
            else:
                groups[i, seed, trials(k), data[i].is_compiled(k)].append(index)
        for group in sorted(groups.values(), key=lambda group: -sum(problems[index].k for index in group)):
            i = problems[group[0]].rows
            tasks[i if data[i].shares_products else ("group", group[0])].append(group)
        cpu.on_all_cores(solve, tasks.values())
    return [results[index] for index in range(len(problems))]


def _check(k: int, max_iter: int) -> None:
    if k < 1:
        raise ParameterError(f"kmeans(k={k}): k must be int >= 1.")
    if max_iter < 1:
        raise ParameterError(f"kmeans(max_iter={max_iter}): max_iter must be int >= 1.")


class _Data:
    """The rows of one data set and what its problems have in common."""

    def __init__(self, X: Array, mass: Array | None, tol: float, clusters: int = 0) -> None:
        self.X = np.ascontiguousarray(X)
        self.mass = mass
        self.weight = np.ones(len(X)) if mass is None else np.asarray(mass, dtype=np.float64)
        if not self.weight.sum() > 0:
            raise ParameterError("kmeans(mass=...): at least one row must have a positive mass.")
        self.tol = tol
        self.is_moderate = 1e-12 < max(self.X.max(), -self.X.min()) < 1e12
        self.shares_products = self.is_moderate and len(X) <= GRAM_ROWS and GRAM_CLUSTERS * len(X) <= clusters
        self._rows: dict[bool, ClusterRows] = {}
        self._lock = Lock()

    def is_compiled(self, k: int) -> bool:
        return self.is_moderate and cpu.use_numba(self.X.size * k)

    def is_trivial(self, k: int) -> bool:
        return k == 1 or k >= len(self.X)

    def rows(self, k: int) -> ClusterRows:
        """The rows in the form that suits so many clusters."""
        which = self.is_compiled(k)
        with self._lock:
            if which not in self._rows:
                kind = ClusterRows
                if which:
                    from imprint.kernels.compiled.kmeans import CompiledRows, GramRows

                    kind = GramRows if self.shares_products else CompiledRows
                self._rows[which] = kind(self.X, self.weight)
            return self._rows[which]

    def free(self) -> None:
        """Free the Gram matrix."""
        self._rows.clear()

    def cluster(self, chosen: Array, max_iter: int) -> KMeansResult:
        """Lloyd's iteration from chosen rows."""
        rows = self.rows(len(chosen))
        return self._result(rows, *rows.lloyd(chosen, self.tol * rows.spread / self.X.shape[1], max_iter))

    def trivial(self, k: int) -> KMeansResult:
        """One cluster, or every distinct row of positive mass a cluster, in order of appearance."""
        if k == 1:
            centres, labels = column_means(self.X, self.mass)[None].astype(self.X.dtype), np.zeros(len(self.X), int)
        else:
            clusters: dict[bytes, int] = {}
            labels = np.array([clusters.setdefault(row.tobytes(), len(clusters)) for row in self.X + 0])  # -0 becomes 0
            centres = self.X[np.unique(labels, return_index=True)[1]]
        return self._result(self.rows(len(centres)), centres, labels, 1)

    def _result(self, rows: ClusterRows, centres: Array, labels: Array, iterations: int) -> KMeansResult:
        """Drop clusters without mass and add up what remains."""
        mass = np.bincount(labels, self.weight, minlength=len(centres))
        if not mass.all():
            centres, mass = centres[mass > 0], mass[mass > 0]
            labels = rows.nearest(centres)
        apart = self.weight * rows.distances(centres, labels)
        spread = np.bincount(labels, apart, minlength=len(mass)) / mass
        return KMeansResult(centres, labels.astype(np.intp), mass, spread, float(apart.sum()), iterations)
