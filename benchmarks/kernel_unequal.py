"""`kernel` where some classes have few rows: recall of those classes, of the others and of all, by `balance`.

    python benchmarks/kernel_unequal.py PACKS

Seven settings (rows and number of the small classes, rows of the others) on six packs with two draws, k = 50. The last
line is the mean of the seven means over all classes.
"""

import sys
from pathlib import Path

import numpy as np
from kernel_data import Instance, read

from imprint.head import Head
from imprint.method import Method

SETTINGS = [(5, 1, 300), (5, 3, 300), (20, 1, 300), (20, 3, 300), (5, 3, 50), (2, 3, 50), (1, 3, 20)]
PACKS = [f"{backbone}-{data}" for backbone in ("tinynet", "deit_tiny") for data in ("mnist", "fashionmnist", "cifar10")]
PARTS = dict(norm_pre="l2", generator="kmeans(k=50)", norm_post="none", norm_inf="l2")
VARIANTS = {
    "mean + max": dict(PARTS, generator="mean", norm_post="l2", aggregator="max"),
    **{f"balance {b}": dict(PARTS, aggregator=f"kernel(balance={b})") for b in (0, 0.25, 0.35, 0.5)},
}


def draw(pack: Instance, few: int, small: int, many: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Training rows of a setting, and which classes have few of them."""
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(10)[:small]
    sizes = np.where(np.isin(np.arange(10), chosen), few, many)
    return np.concatenate([rng.permutation(np.flatnonzero(pack.y == c))[:n] for c, n in enumerate(sizes)]), chosen


def recalls(pack: Instance, setting: tuple[int, int, int], seed: int) -> dict[str, tuple[float, float, float]]:
    """Mean recall of small classes, of the others and of all, in %, by variant."""
    rows, chosen = draw(pack, *setting, seed)
    others, figures = np.setdiff1d(np.arange(10), chosen), {}
    for name, parts in VARIANTS.items():
        winners = Head(Method.of(**parts), seed, "float32").learn(pack.X[rows], pack.y[rows]).winners(pack.Q)
        recall = 100 * np.bincount(pack.t, winners == pack.t) / np.bincount(pack.t)
        figures[name] = (recall[chosen].mean(), recall[others].mean(), recall.mean())
    return figures


def main(folder: Path) -> None:
    print("| few rows x classes, rows of others |", " | ".join(VARIANTS), "|\n|---|" + "---|" * len(VARIANTS))
    packs, means = [read(folder / "subset" / f"{name}.npz") for name in PACKS], []
    for setting in SETTINGS:
        found = [recalls(pack, setting, seed) for pack in packs for seed in (0, 1)]
        figures = {name: np.mean([f[name] for f in found], axis=0) for name in VARIANTS}
        means.append([f[2] for f in figures.values()])
        cells = (" / ".join(f"{v:.1f}" for v in f) for f in figures.values())
        print("| {} x {}, {} |".format(*setting), " | ".join(cells), "|", flush=True)
    print("| mean of the settings |", " | ".join(f"{v:.2f}" for v in np.mean(means, axis=0)), "|")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
