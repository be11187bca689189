"""k-means: greedy k-means++ seeding, then Lloyd's iteration; float32 data, float64 products and sums."""

from collections import defaultdict
from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

import numpy as np

from imprint.core.arrays import is_torch
from imprint.core.errors import ParameterError
from imprint.core.types import Array
from imprint.kernels import cpu
from imprint.kernels.lloyd import ClusterRows, PlainRows, lloyd, seed_rows, trials


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
        return data.iterate(data.seed(k, rng), max_iter)


def kmeans_many(
    rows: Sequence[Array],
    problems: Sequence[Problem],
    *,
    max_iter: int = 300,
    tol: float = 1e-4,
) -> list[KMeansResult]:
    """Solve several problems at once on all cores; each result equals that of `kmeans` alone, bit for bit.

    Problems of the same rows share norms and sketches. Those of the same seed also share the seeding, which for a
    smaller `k` is a prefix of that for a larger one.

    >>> X = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> [r.inertia for r in kmeans_many([X], [Problem(0, 1, 7), Problem(0, 2, 7)])]
    [101.0, 1.0]
    """
    if is_torch(rows[0]):
        from imprint.kernels.tensor.kmeans import kmeans_many as on_tensors

        return on_tensors(rows, problems, max_iter=max_iter, tol=tol)  # type: ignore[arg-type]
    for _, k, _ in problems:
        _check(k, max_iter)
    data = [_Data(X, None, tol) for X in rows]
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for index, (i, k, seed) in enumerate(problems):
        groups[(i, k) if data[i].is_trivial(k) else (i, seed, trials(k), data[i].is_compiled(k))].append(index)
    results: dict[int, KMeansResult] = {}

    def solve(group: list[int]) -> None:
        i, largest, seed = max((problems[index] for index in group), key=lambda problem: problem.k)
        if data[i].is_trivial(largest):
            results.update(dict.fromkeys(group, data[i].trivial(largest)))
        else:
            centres = data[i].seed(largest, seed)
            results.update({index: data[i].iterate(centres[: problems[index].k], max_iter) for index in group})

    def is_trivial(group: list[int]) -> bool:
        i, k, _ = problems[group[0]]
        return data[i].is_trivial(k)

    hardest_first = sorted(groups.values(), key=lambda group: -sum(problems[i].k for i in group))
    with cpu.one_blas_thread():
        for group in filter(is_trivial, hardest_first):  # thousands of small classes are not worth a thread each
            solve(group)
        cpu.on_all_cores(solve, [group for group in hardest_first if not is_trivial(group)])
    return [results[index] for index in range(len(problems))]


def _check(k: int, max_iter: int) -> None:
    if k < 1:
        raise ParameterError(f"kmeans(k={k}): k must be int >= 1.")
    if max_iter < 1:
        raise ParameterError(f"kmeans(max_iter={max_iter}): max_iter must be int >= 1.")


class _Data:
    """The rows of one data set and what its problems have in common."""

    def __init__(self, X: Array, mass: Array | None, tol: float) -> None:
        self.X = np.ascontiguousarray(X)
        self.mass = mass
        self.weight = np.ones(len(X)) if mass is None else np.asarray(mass, dtype=np.float64)
        if not self.weight.sum() > 0:
            raise ParameterError("kmeans(mass=...): at least one row must have a positive mass.")
        self.tol = tol
        self.is_moderate = 1e-12 < max(self.X.max(), -self.X.min()) < 1e12
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
                self._rows[which] = _compiled_rows(self.X, self.weight) if which else PlainRows(self.X, self.weight)
            return self._rows[which]

    def seed(self, k: int, seed: int | tuple[int, ...] | np.random.Generator) -> Array:
        """The initial centres.  # (k', d)"""
        return self.X[seed_rows(self.rows(k), k, trials(k), np.random.default_rng(seed))]

    def iterate(self, centres: Array, max_iter: int) -> KMeansResult:
        """Lloyd's iteration from these centres."""
        rows = self.rows(len(centres))
        limit = self.tol * rows.spread / self.X.shape[1]
        return self._result(*lloyd(rows, centres, limit, max_iter))

    def trivial(self, k: int) -> KMeansResult:
        """One cluster, or every distinct row of positive mass a cluster, in order of appearance."""
        if k == 1:
            return self._result(self._mean(), np.zeros(len(self.X), dtype=np.int32), 1)
        clusters: dict[bytes, int] = {}
        labels = np.array([clusters.setdefault(row.tobytes(), len(clusters)) for row in self.X + 0])  # -0 becomes 0
        first = np.unique(labels, return_index=True)[1]
        return self._result(self.X[first], labels, 1)

    def _mean(self) -> Array:
        if self.mass is None:
            total = self.X.sum(axis=0, dtype=np.float64, keepdims=True)
        else:
            total = np.einsum("i,ij->j", self.weight, self.X, dtype=np.float64)[None]
        return np.asarray((total / self.weight.sum()).astype(self.X.dtype))

    def _result(self, centres: Array, labels: Array, iterations: int) -> KMeansResult:
        """Drop clusters without mass and add up what remains."""
        k = len(centres)
        mass = np.bincount(labels, self.weight, minlength=k)
        filled = mass > 0
        if not filled.all():
            centres, mass = centres[filled], mass[filled]
            labels = self.rows(k).clustering(centres).labels
        apart = self.weight * np.maximum(self.rows(k).distances(centres, labels), 0)
        spread = np.bincount(labels, apart, minlength=len(mass)) / mass
        return KMeansResult(centres, labels.astype(np.intp), mass, spread, float(apart.sum()), iterations)


def _compiled_rows(X: Array, weight: Array) -> ClusterRows:
    from imprint.kernels.compiled.kmeans import CompiledRows

    return CompiledRows(X, weight)
