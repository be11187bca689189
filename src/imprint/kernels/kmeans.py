"""Lloyd's k-means with greedy k-means++ seeding: float32 data, float64 sums."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from imprint.core.errors import ParameterError
from imprint.core.types import Array
from imprint.kernels.rows import squared_norms, unit_rows


class KMeansResult(NamedTuple):
    """Centres without empty clusters, and what belongs to each."""

    centres: Array  # (k', d) of the data's dtype
    labels: Array  # (n,) index of the nearest centre
    mass: Array  # (k',) float64
    inertia: float
    iterations: int


def kmeans(
    X: Array,
    k: int,
    rng: np.random.Generator,
    *,
    mass: Array | None = None,
    max_iter: int = 300,
    tol: float = 1e-4,
    spherical: bool = False,
    init: Array | None = None,
) -> KMeansResult:
    """Partition the rows into at most `k` clusters of small squared distance.

    >>> X = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> kmeans(X, 2, np.random.default_rng(0)).inertia
    1.0
    """
    if k < 1:
        raise ParameterError(f"kmeans(k={k}): k must be int >= 1.")
    X = unit_rows(X) if spherical else X
    weight = np.ones(len(X)) if mass is None else np.asarray(mass, dtype=np.float64)
    if not weight.sum() > 0:
        raise ParameterError("kmeans(mass=...): at least one row must have a positive mass.")
    if init is None and k >= len(X):
        return _each_row(X, weight)
    limit = tol * float(X.var(axis=0, dtype=np.float64).mean())
    centres = _seed(X, k, rng, weight) if init is None else np.array(init, dtype=X.dtype)
    labels = np.full(len(X), -1)
    iterations = 0
    while iterations < max_iter:
        iterations += 1
        before, labels = labels, _assign(X, centres)
        moved = _update(X, weight, labels, centres, spherical)
        shift = float(squared_norms(moved.astype(np.float64) - centres).sum())
        centres = moved
        if np.array_equal(labels, before):
            break
        if shift <= limit:
            labels = _assign(X, centres)
            break
    else:
        labels = _assign(X, centres)
    return _result(X, weight, centres, labels, iterations)


def _each_row(X: Array, weight: Array) -> KMeansResult:
    """Every distinct row of positive mass is a centre, in order of appearance."""
    heavy = np.flatnonzero(weight > 0)
    first = np.sort(np.unique(X[heavy], axis=0, return_index=True)[1])
    centres = X[heavy[first]]
    return _result(X, weight, centres, _assign(X, centres), 0)


def _seed(X: Array, k: int, rng: np.random.Generator, weight: Array) -> Array:
    """Greedy k-means++; fewer than `k` rows where the rows left all coincide with a chosen one."""
    norms = squared_norms(X)
    trials = 2 + int(np.log(k))
    chosen = [int(rng.choice(len(X), p=weight / weight.sum()))]
    closest = _squared_distances(X, norms, chosen)[0]
    while len(chosen) < k:
        total = np.cumsum(weight * closest)
        if not total[-1] > 0:
            break
        draws = np.searchsorted(total, rng.uniform(size=trials) * total[-1], side="right")
        candidates = np.minimum(draws, np.flatnonzero(weight * closest)[-1])
        distances = np.minimum(closest, _squared_distances(X, norms, candidates))
        best = int(np.argmin(distances @ weight))
        chosen.append(int(candidates[best]))
        closest = distances[best]
    return X[chosen]


def _squared_distances(X: Array, norms: Array, rows: list[int] | Array) -> Array:
    """From the given rows to all rows, in float64; exactly zero to an equal row.  # (r, n)"""
    distances = np.empty((len(rows), len(X)))
    for out, row in zip(distances, rows):
        product = X.astype(np.float64) @ X[row].astype(np.float64)
        np.maximum(norms - 2 * product + norms[row], 0, out=out)
        near = np.flatnonzero(out <= 1e-12 * norms[row])
        out[near] = squared_norms(X[near].astype(np.float64) - X[row])
    return distances


def _assign(X: Array, centres: Array) -> Array:
    """Index of the nearest centre, the lower one of equals."""
    C = centres.astype(np.float64)
    half = squared_norms(C) / 2
    labels = [np.argmin(half - X[i : i + 1024] @ C.T, axis=1) for i in range(0, len(X), 1024)]
    return np.concatenate(labels)


def _update(X: Array, weight: Array, labels: Array, centres: Array, spherical: bool) -> Array:
    """Mean of every cluster; an empty one takes the row farthest from its centre."""
    k = len(centres)
    total = np.bincount(labels, weight, minlength=k)
    sums = np.stack([weight[labels == j] @ X[labels == j].astype(np.float64) for j in range(k)])
    empty = np.flatnonzero(total == 0)
    if len(empty):
        distances = squared_norms(X.astype(np.float64) - centres[labels]) * (weight > 0)
        farthest = np.argsort(-distances, kind="stable")[: len(empty)]
        for j, row in zip(empty, farthest[distances[farthest] > 0]):
            moved = weight[row] * X[row].astype(np.float64)
            sums[labels[row]] -= moved
            total[labels[row]] -= weight[row]
            sums[j], total[j] = moved, weight[row]
    full = total > 0
    moved = centres.copy()
    if spherical:
        length = np.sqrt(squared_norms(sums))
        full &= length > 0
        total = length
    moved[full] = sums[full] / total[full, None]
    return moved


def _result(X: Array, weight: Array, centres: Array, labels: Array, iterations: int) -> KMeansResult:
    """Drop empty clusters and add up what remains."""
    total = np.bincount(labels, weight, minlength=len(centres))
    kept = np.flatnonzero(total > 0)
    if len(kept) < len(centres):
        centres, total = centres[kept], total[kept]
        labels = _assign(X, centres)
    inertia = float(weight @ squared_norms(X.astype(np.float64) - centres[labels]))
    return KMeansResult(centres, labels, total, inertia, iterations)


class Problem(NamedTuple):
    """One clustering out of many: which rows, how many clusters, what `numpy.random.default_rng` is given."""

    rows: int
    k: int
    seed: int | tuple[int, ...]


def kmeans_many(
    rows: Sequence[Array],
    problems: Sequence[Problem],
    *,
    masses: Sequence[Array | None] | None = None,
    max_iter: int = 300,
    tol: float = 1e-4,
    spherical: bool = False,
) -> list[KMeansResult]:
    """Solve several problems at once; each result equals that of `kmeans` alone, bit for bit.

    >>> X = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> [r.inertia for r in kmeans_many([X], [Problem(0, 1, 7), Problem(0, 2, 7)])]
    [101.0, 1.0]
    """
    mass = masses or [None] * len(rows)
    alone = partial(kmeans, max_iter=max_iter, tol=tol, spherical=spherical)
    return [alone(rows[i], k, np.random.default_rng(seed), mass=mass[i]) for i, k, seed in problems]
