"""The linear system of `kernel` with many classes: time to solve, add and forget a class and predict, and its accuracy.

    python benchmarks/kernel_scale.py [CLASSES] [--exact]

20 proxies of 768 columns per class, unit rows around random centres. CLASSES [default: 1,000]. `--exact` also solves
from scratch after the changes and compares the scores of 500 queries.
"""

import resource
import sys
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from imprint.gaussian_process.posterior import add_classes, remove_classes, solve
from imprint.kernels.rows import unit_rows
from imprint.kernels.scores import class_maxima

T = TypeVar("T")
PROXIES, WIDTH = 20, 768


def timed(name: str, function: Callable[[], T]) -> T:
    start, busy = time.perf_counter(), time.process_time()
    result = function()
    elapsed, used = time.perf_counter() - start, time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"| {name} | {elapsed:.2f} s | {used:.2f} s | {peak:.1f} GB |", flush=True)
    return result


def main(classes: int, exact: bool) -> None:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(classes + 1, 1, WIDTH)).astype(np.float32)
    rows = centres + rng.normal(size=(classes + 1, PROXIES, WIDTH)).astype(np.float32)
    W, labels = (
        unit_rows(rows.reshape(-1, WIDTH)),
        np.repeat(np.arange(classes + 1), PROXIES),
    )
    Q = unit_rows(
        W[rng.integers(len(W), size=1000)]
        + rng.normal(size=(1000, WIDTH)).astype(np.float32) / 30
    )
    noise, rate = (
        rng.uniform(0.01, 0.1, len(W)),
        1 / (2 * (1 - float((W.mean(axis=0) ** 2).sum()))),
    )
    old, new = labels < classes, labels == classes
    print("| what | elapsed | processor | peak memory |\n|---|---|---|---|")
    first = timed(
        f"solve, {classes:,} x {PROXIES}",
        lambda: solve(W[old], labels[old], noise[old], rate),
    )
    more = timed(
        "add a class", lambda: add_classes(first, W[new], labels[new], noise[new])
    )
    less = timed(
        "forget a class", lambda: remove_classes(more, np.array([classes // 2]))
    )
    again = timed("forget another", lambda: remove_classes(less, np.array([0])))
    again.scores(Q)
    timed("1,000 queries", lambda: again.scores(Q))
    starts = np.arange(0, len(W), PROXIES)
    timed("1,000 queries, `max`", lambda: class_maxima(Q, W, starts))
    timed("doubt of 100 queries", lambda: again.doubt(Q[:100]))
    if exact:
        kept = ~np.isin(labels, [0, classes // 2])
        fresh = solve(
            W[kept], np.unique(labels[kept], return_inverse=True)[1], noise[kept], rate
        )
        precise = Q[:500].astype(np.float64)
        scores = fresh.scores(precise)
        gap = np.abs(again.scores(precise) - scores).max() / np.abs(scores).max()
        print(
            f"\nlargest difference from a fresh solution: {gap:.1e} of the largest score"
        )


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    main(numbers[0] if numbers else 1000, "--exact" in sys.argv)
