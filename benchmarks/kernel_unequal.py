"""`kernel` where classes are very unequal: 600 rows of the first down to 6 of the tenth, and what might help.

    python benchmarks/kernel_unequal.py PACKS

Two accuracies in %, means over 15 packs: classes counting equally, and counting by their share of the training rows.
"""

import sys
from pathlib import Path

import numpy as np
from kernel_data import Instance, clusters, read, ten_class_packs
from kernel_defaults import CHOOSE, distances
from scipy.linalg import cho_factor, cho_solve

SIZES = np.geomspace(600, 6, 10).astype(int)
SHARE = SIZES / SIZES.sum()


def variants(instance: Instance, k: int) -> dict[str, np.ndarray]:
    """Scores by name."""
    found = clusters(instance, k)
    among, across = distances(instance, found)
    K, q, Y = np.exp(-among), np.exp(-across), np.eye(10)[found.labels]
    noise = 0.1 / found.mass + 0.2 * found.spread / found.scale

    def solved(noise: np.ndarray, Y: np.ndarray) -> np.ndarray:
        return q @ cho_solve(cho_factor(K + np.diag(noise)), Y)

    plain = solved(noise, Y)
    unit = found.weights / np.linalg.norm(found.weights, axis=1, keepdims=True)
    starts = np.unique(found.labels, return_index=True)[1]
    return {
        "max": np.maximum.reduceat(instance.Q @ unit.T, starts, axis=1),
        "kernel": plain,
        "prior mean = share": SHARE + solved(noise, Y - SHARE),
        "noise x 10 share": solved(noise * 10 * SHARE[found.labels], Y),
        **{f"scores / share^{power}": plain / SHARE**power for power in (0.125, 0.25, 0.5)},
    }


def accuracies(scores: np.ndarray, t: np.ndarray) -> tuple[float, float]:
    right = np.bincount(t, scores.argmax(axis=1) == t) / np.bincount(t)
    return 100 * float(right.mean()), 100 * float(right @ SHARE)


def main(packs: Path) -> None:
    figures: dict[tuple[str, int, bool], list[tuple[float, float]]] = {}
    for path in ten_class_packs(packs):
        whole = read(path)
        rows = np.concatenate([np.flatnonzero(whole.y == c)[:n] for c, n in enumerate(SIZES)])
        instance = Instance(whole.name, whole.X[rows], whole.y[rows], whole.Q, whole.t)
        for k in (20, 100):
            for name, scores in variants(instance, k).items():
                key = (name, k, path.stem.rsplit("-", 1)[0] in CHOOSE)
                figures.setdefault(key, []).append(accuracies(scores, instance.t))
    print("| scores | k | equally (chosen on; others) | by share (chosen on; others) |\n|---|---|---|---|")
    for name, k in sorted({key[:2] for key in figures}, key=lambda key: key[1]):
        (a, b), (c, d) = (np.mean(figures[name, k, chosen], axis=0) for chosen in (True, False))
        print(f"| {name} | {k} | {a:.2f}; {c:.2f} | {b:.2f}; {d:.2f} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
