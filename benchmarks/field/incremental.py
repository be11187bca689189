"""Class-incremental learning: classes arrive in ten steps; every head uses the same embeddings.

    python benchmarks/field/incremental.py [--rows 100] [--packs NAME ...]

The order of the classes is that of seed 1993. After each step, accuracy is measured on the test rows of the classes so
far. The first table holds the final accuracy, the second the mean over the ten steps; then memory and time.
"""

import argparse
import time

import numpy as np
from data import load, per_class
from peers import HEADS
from tables import grid, ranked

from imprint.kernels.rows import unit_rows

PACKS = (
    "tinynet-mnist",
    "deit_tiny-fashionmnist",
    "deit_tiny-cifar10",
    "mobilenet_v1_0.5_160-cifar10",
    "banking77",
)
STEPS, MAX_TEST, MANY_CLASSES, MAX_ROWS_OF_MANY = 10, 1000, 50, 30
OURS = "kernel, k = 100"


def steps(name: str, rows: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Training and test rows of the classes so far, numbered in the order of arrival, after every step."""
    pack, rng = load(name), np.random.default_rng(0)
    classes = np.unique(pack.y)
    order = np.random.RandomState(1993).permutation(len(classes))
    position = np.argsort(order)
    rows = min(rows, MAX_ROWS_OF_MANY) if len(classes) > MANY_CLASSES else rows
    train, test = per_class(pack.y, rows, rng), rng.permutation(len(pack.Q))[:MAX_TEST]
    X, Q = (unit_rows(part.astype(np.float64)) for part in (pack.X[train], pack.Q[test]))
    y, t = position[pack.y[train]], position[pack.t[test]]
    ends = [len(part[-1:]) and int(part[-1]) + 1 for part in np.array_split(np.arange(len(classes)), STEPS)]
    return [(X[y < end], y[y < end], Q[t < end], t[t < end]) for end in ends]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--packs", nargs="+", default=list(PACKS))
    given = parser.parse_args()
    final: dict[str, dict[str, float]] = {head: {} for head in HEADS}
    average: dict[str, dict[str, float]] = {head: {} for head in HEADS}
    memory = {head: [] for head in HEADS}
    seconds = {head: [] for head in HEADS}
    for name in given.packs:
        stages = steps(name, given.rows)
        for head, fit in HEADS.items():
            right, start, numbers = [], time.process_time(), 0
            for X, y, Q, t in stages[1:] if int(stages[0][1].max()) == 0 else stages:  # one class needs no head
                score, numbers = fit(X, y)
                right.append(100 * float(np.mean(score(Q).argmax(axis=1) == t)))
            final[head][name], average[head][name] = right[-1], float(np.mean(right))
            memory[head].append(4 * numbers / (int(stages[-1][1].max()) + 1))
            seconds[head].append((time.process_time() - start) / len(right))
    print(f"Final accuracy, {given.rows} rows per class ({MAX_ROWS_OF_MANY} with more than {MANY_CLASSES} classes)\n")
    for line in (*grid(final), "", *ranked(final, OURS), ""):
        print(line)
    print("| head | average accuracy over the steps, % | kB per class (float32) | processor seconds per step |")
    print("|---|---:|---:|---:|")
    for head in HEADS:
        mean = np.mean(list(average[head].values()))
        print(f"| {head} | {mean:.1f} | {np.mean(memory[head]) / 1e3:.0f} | {np.mean(seconds[head]):.2f} |")


if __name__ == "__main__":
    main()
