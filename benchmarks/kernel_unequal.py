"""`kernel` with imbalanced classes: recall of the small classes, of the others and of all, by rule.

    python benchmarks/kernel_unequal.py PACKS [--backbones tinynet deit_tiny] [--draws 2]
    python benchmarks/kernel_unequal.py PACKS --texts

Seven settings (rows and number of the small classes, rows of the others) on the packs of some backbones, k = 50. The
last line is the mean of the seven means over all classes. A rule is a value of `balance` and a cap on the rows that
count per class, as a multiple of the largest number of proxies of a class. `--texts`: accuracy and mean recall where
the class frequencies of test and training rows agree (`minilm-trec.npz`, `minilm-banking77.npz`), and on CLINC150 with
100 down to 2 rows per class.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import text_unequal
from kernel_data import Instance, read

from imprint.head import Head
from imprint.method import Method

SETTINGS = [
    (5, 1, 300),
    (5, 3, 300),
    (20, 1, 300),
    (20, 3, 300),
    (5, 3, 50),
    (2, 3, 50),
    (1, 3, 20),
]
PARTS = dict(
    norm_pre="l2",
    generator="kmeans(k=50)",
    norm_post="none",
    norm_inf="l2",
    aggregator="kernel(balance=0)",
)
MEAN = dict(PARTS, generator="mean", norm_post="l2", aggregator="max")
RULES = {
    "`balance=0`": (4, 0),
    "0.35, limit 2": (2, 0.35),
    "**0.35, limit 4**": (4, 0.35),
    "0.35, no limit": (np.inf, 0.35),
    "0.5, limit 4": (4, 0.5),
}


def draw(
    pack: Instance, few: int, small: int, many: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Training rows of a setting, and the small classes."""
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(10)[:small]
    sizes = np.where(np.isin(np.arange(10), chosen), few, many)
    return np.concatenate(
        [rng.permutation(np.flatnonzero(pack.y == c))[:n] for c, n in enumerate(sizes)]
    ), chosen


def predictions(
    X: np.ndarray, y: np.ndarray, Q: np.ndarray, seed: int, **parts: str
) -> dict[str, np.ndarray]:
    """The predicted classes by rule; all rules use the same scores."""
    head = Head(Method.of(**{**PARTS, **parts}), seed, "float32").learn(X, y)
    S, sizes, most = (
        head.scores(Q),
        np.bincount(y),
        np.bincount(head.proxies.labels).max(),
    )
    winners = {}
    for name, (limit, balance) in RULES.items():
        rows = np.minimum(sizes, limit * most)
        winners[name] = (S * (rows.mean() / rows) ** balance).argmax(axis=1)
    return winners


def recalls(
    pack: Instance, setting: tuple[int, int, int], seed: int
) -> dict[str, tuple[float, float, float]]:
    """Mean recall of small classes, of the others and of all, in %, by rule."""
    rows, chosen = draw(pack, *setting, seed)
    X, y, others, figures = (
        pack.X[rows],
        pack.y[rows],
        np.setdiff1d(np.arange(10), chosen),
        {},
    )
    by_mean = Head(Method.of(**MEAN), seed, "float32").learn(X, y).winners(pack.Q)
    for name, winners in {
        "mean + `max`": by_mean,
        **predictions(X, y, pack.Q, seed),
    }.items():
        recall = 100 * np.bincount(pack.t, winners == pack.t) / np.bincount(pack.t)
        figures[name] = (recall[chosen].mean(), recall[others].mean(), recall.mean())
    return figures


def images(packs: list[Instance], draws: int) -> Iterator[str]:
    names, means = ["mean + `max`", *RULES], []
    yield (
        "| few rows x classes, rows of others | "
        + " | ".join(names)
        + " |\n|---|"
        + "---|" * len(names)
    )
    for setting in SETTINGS:
        figures = [
            recalls(pack, setting, seed) for pack in packs for seed in range(draws)
        ]
        rows = [np.mean([f[name] for f in figures], axis=0) for name in names]
        means.append([row[2] for row in rows])
        yield (
            "| {} x {}, {} | ".format(*setting)
            + " | ".join(" / ".join(f"{v:.1f}" for v in r) for r in rows)
            + " |"
        )
    yield (
        "| mean of the settings | "
        + " | ".join(f"{v:.2f}" for v in np.mean(means, axis=0))
        + " |"
    )


def texts(folder: Path) -> Iterator[str]:
    yield "| | " + " | ".join(RULES) + " |\n|---|" + "---|" * len(RULES)
    for name, rows in [
        ("trec", 600),
        ("trec", None),
        ("banking77", 600),
        ("banking77", None),
        ("clinc150", None),
    ]:
        X, y, Q, t = text_unequal.read(folder / f"minilm-{name}.npz")
        if name == "clinc150":
            X, y = text_unequal.cut(X, y, 0)
        taken = np.random.default_rng(0).permutation(len(X))[: rows or len(X)]
        present, codes = np.unique(y[taken], return_inverse=True)
        for generator in ("kmeans(k=50)", "all"):
            cells = []
            for winners in predictions(
                X[taken], codes, Q, 0, generator=generator
            ).values():
                right = present[winners] == t
                recall = np.bincount(t, right) / np.maximum(np.bincount(t), 1)
                cells.append(f"{100 * right.mean():.1f} / {100 * recall.mean():.1f}")
            yield (
                f"| {name}, {len(taken):,} rows, `{generator}` | "
                + " | ".join(cells)
                + " |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--backbones", nargs="+", default=["tinynet", "deit_tiny"])
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--texts", action="store_true")
    given = parser.parse_args()
    names = [
        f"{backbone}-{data}"
        for backbone in given.backbones
        for data in ("mnist", "fashionmnist", "cifar10")
    ]
    packs = (
        []
        if given.texts
        else [read(given.folder / "subset" / f"{name}.npz") for name in names]
    )
    for line in texts(given.folder) if given.texts else images(packs, given.draws):
        print(line, flush=True)


if __name__ == "__main__":
    main()
