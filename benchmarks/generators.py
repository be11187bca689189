"""Generators compared with re-implemented published formulations: one class, interleaved runs, medians.

    python benchmarks/generators.py [rows.npy]

Without a file of real embeddings, (n, d) float32, 6,000 x 512 clustered random rows are used, and the table says so.
"""

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import torch

from imprint import generators
from imprint.core.arrays import Array
from imprint.kernels.rows import unit_rows

REPEATS = 5


def published_covmax(X: Array, k: int) -> Array:
    t = torch.from_numpy(X)
    return X[torch.argsort(torch.sum(torch.cov(t), dim=0), descending=True)[:k].numpy()]


def published_fps(X: Array, k: int) -> Array:
    """Farthest points: recompute the distances of all remaining rows to all chosen rows in every step."""
    t, picked = torch.from_numpy(X), [0]
    while len(picked) < k:
        left = torch.ones(len(t), dtype=torch.bool)
        left[picked] = False
        gaps = torch.cdist(t[left], t[picked]).min(dim=1).values
        picked.append(int(torch.arange(len(t))[left][gaps.argmax()]))
    return X[picked]


def published_kmedoids(X: Array, k: int) -> Array:
    """k-medoids: all distances, then alternating updates that start from the k most central rows."""
    from sklearn.metrics import pairwise_distances

    D = pairwise_distances(X)
    medoids = np.argpartition(D.sum(axis=1), k - 1)[:k]
    for _ in range(300):
        before, owner = medoids.copy(), np.argmin(D[medoids], axis=0)
        for j in range(k):
            members = np.flatnonzero(owner == j)
            if len(members):
                costs = D[members, members.reshape(-1, 1)].sum(axis=1)
                best = np.argmin(costs)
                here = np.argmax(members == medoids[j])
                if costs[best] < costs[here]:
                    medoids[j] = members[best]
        if np.array_equal(before, medoids):
            break
    return X[medoids]


def ours(text: str) -> Callable[[Array], Array]:
    g = generators.family.resolve(text)
    return lambda X: g.proxies([g.summarise(X, np.random.default_rng(0))])[0]


def distance_sum(X: Array, P: Array) -> float:
    return float(
        torch.cdist(torch.from_numpy(X), torch.from_numpy(P)).min(dim=1).values.sum()
    )


def main() -> None:
    if len(sys.argv) > 1:
        X, what = (
            unit_rows(np.load(sys.argv[1]).astype(np.float32)),
            sys.argv[1].rpartition("/")[2],
        )
    else:
        rng = np.random.default_rng(0)
        X = (
            rng.normal(size=(6000, 512))
            + 2 * rng.normal(size=(40, 512))[rng.integers(40, size=6000)]
        )
        X, what = unit_rows(np.maximum(X, 0).astype(np.float32)), "synthetic clusters"
    threads = torch.get_num_threads()
    print(
        f"{what}: {len(X):,} x {X.shape[1]} float32, median of {REPEATS} interleaved runs, {threads} threads"
    )
    rows = [
        ("covmax(k=20)", lambda X: published_covmax(X, 20)),
        ("fps(k=20)", lambda X: published_fps(X, 20)),
        ("kmedoids(k=20)", lambda X: published_kmedoids(X, 20)),
    ]
    print(
        f"{'generator':<16}{'ours':>10}{'published':>12}{'ratio':>8}   sum of distances, ours / published"
    )
    for text, published in rows:
        mine, times = ours(text), ([], [])
        mine(X), published(X)
        for _ in range(REPEATS):
            for spent, run in zip(times, (mine, published)):
                start = time.perf_counter()
                run(X)
                spent.append(time.perf_counter() - start)
        a, b = map(statistics.median, times)
        quality = (
            f"{distance_sum(X, mine(X)):.1f} / {distance_sum(X, published(X)):.1f}"
        )
        print(
            f"{text:<16}{a * 1e3:>8.1f}ms{b * 1e3:>10.1f}ms{b / a:>7.1f}x   {quality}"
        )


if __name__ == "__main__":
    main()
