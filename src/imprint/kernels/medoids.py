"""k-medoids under the Euclidean distance: FasterPAM and the alternating iteration."""

import numpy as np
from scipy.spatial.distance import cdist

from imprint.core.types import Array

MEMORY = 256 * 2**20


def fasterpam(
    X: Array, k: int, rng: np.random.Generator, *, mass: Array | None = None, memory: int = MEMORY
) -> tuple[Array, Array, float]:
    """Medoids that no single swap improves, by eager swaps (Schubert and Rousseeuw, 2021).

    Returns the rows chosen, the medoid of every row and the total distance.

    >>> fasterpam(np.array([[0.0], [1.0], [2.0], [10.0]]), 2, np.random.default_rng(0))[2]
    2.0
    """
    weight = np.ones(len(X)) if mass is None else np.asarray(mass, dtype=np.float64)
    k = min(k, len(X))
    D = cdist(X, X).astype(np.float32)
    medoids = rng.choice(len(X), size=k, replace=False)
    idle = 0
    row = 0
    state = _two_nearest(D, medoids)
    while idle < len(X):
        if row not in medoids:
            slot, gain = _best_swap(D[row], weight, k, *state)
            if gain < -1e-9 * (weight @ state[1]):
                medoids[slot] = row
                state = _two_nearest(D, medoids)
                idle = 0
        idle += 1
        row = (row + 1) % len(X)
    return _result(X, weight, medoids)


def _two_nearest(D: Array, medoids: Array) -> tuple[Array, Array, Array]:
    """Slot of the nearest medoid of every row, its distance and the distance of the second."""
    to = D[medoids].astype(np.float64)
    slot = np.argmin(to, axis=0)
    first = to[slot, np.arange(len(slot))].copy()
    to[slot, np.arange(len(slot))] = np.inf
    return slot, first, to.min(axis=0)


def _best_swap(distances: Array, weight: Array, k: int, slot: Array, first: Array, second: Array) -> tuple[int, float]:
    """The medoid best replaced by a candidate at these distances, and the change of the cost."""
    if k == 1:
        return 0, float(weight @ (distances - first))
    closer = np.minimum(distances - first, 0)
    kept = np.where(distances < first, first, np.minimum(distances, second)) - first
    change = np.bincount(slot, weight * kept, minlength=k)
    best = int(np.argmin(change))
    return best, float(change[best] + weight @ closer)


def alternate(
    X: Array, k: int, *, mass: Array | None = None, max_iter: int = 300, memory: int = MEMORY
) -> tuple[Array, Array, float]:
    """Assign rows to medoids and medoids to clusters in turn, from the `k` most central rows.

    >>> alternate(np.array([[0.0], [1.0], [2.0], [10.0], [11.0]]), 2)[0]
    array([3, 1])
    """
    weight = np.ones(len(X)) if mass is None else np.asarray(mass, dtype=np.float64)
    D = cdist(X, X).astype(np.float32)
    medoids = np.argsort(D @ weight, kind="stable")[: min(k, len(X))]
    for _ in range(max_iter):
        before = medoids.copy()
        labels = np.argmin(D[medoids], axis=0)
        for j in range(len(medoids)):
            members = np.flatnonzero(labels == j)
            costs = D[np.ix_(members, members)] @ weight[members]
            if len(members) and costs.min() < costs[members == medoids[j]].min(initial=np.inf):
                medoids[j] = members[np.argmin(costs)]
        if np.array_equal(before, medoids):
            break
    return _result(X, weight, medoids)


def _result(X: Array, weight: Array, medoids: Array) -> tuple[Array, Array, float]:
    """Labels and cost of the medoids; one whose rows all have an equal medoid before it is dropped."""
    distances = cdist(X, X[medoids])
    labels = np.argmin(distances, axis=1)
    kept, labels = np.unique(labels, return_inverse=True)
    return medoids[kept], labels, float(weight @ distances.min(axis=1))
