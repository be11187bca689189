"""Texts with very imbalanced classes: accuracy and the recall of rare classes, by method.

    python benchmarks/text_unequal.py PACKS

PACKS holds `minilm-trec.npz` (86 to 1,250 rows of a class as published), `minilm-banking77.npz` (35 to 187) and
`minilm-clinc150.npz`, whose classes are cut to 100 down to 2 rows, in three random orders. Prints, in %:
accuracy; mean recall of all classes, of the third with the fewest training rows, and of the third with the most.
"""

import sys
from pathlib import Path

import numpy as np

from imprint import ImprintClassifier

BARE = {
    "norm_pre": "none",
    "norm_post": "none",
    "norm_inf": "none",
    "aggregator": "max",
}
METHODS = {
    "one mean, `max`": {"generator": "mean", "norm_post": "l2", "aggregator": "max"},
    "k-means, k = 20, `max`": {
        "generator": "kmeans(k=20)",
        "norm_post": "l2",
        "aggregator": "max",
    },
    "all rows, 5 nearest": {
        "generator": "all",
        "norm_post": "l2",
        "aggregator": "nearest(m=5)",
    },
    "k-means, k = 20, `kernel`": {"generator": "kmeans(k=20)", "aggregator": "kernel"},
    "all rows, `kernel`": {"generator": "all", "aggregator": "kernel"},
    "the published oracle": {"generator": "least_squares", **BARE},
    "true ridge regression": {
        "generator": "least_squares(weighting='samples')",
        **BARE,
    },
}


def read(path: Path) -> list[np.ndarray]:
    with np.load(path, allow_pickle=False) as pack:
        X, Q = pack["train"], pack["test"]
        names, y = np.unique(pack["train_labels"], return_inverse=True)
        return [X, y, Q, np.searchsorted(names, pack["test_labels"])]


def cut(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Reduce the classes to 100 down to 2 rows, in a random order."""
    rng, classes = np.random.default_rng(seed), np.unique(y)
    sizes = (
        np.geomspace(100, 2, len(classes))
        .round()
        .astype(int)[rng.permutation(len(classes))]
    )
    rows = np.concatenate(
        [rng.permutation(np.flatnonzero(y == c))[:n] for c, n in zip(classes, sizes)]
    )
    return X[rows], y[rows]


def by_third(
    X: np.ndarray, y: np.ndarray, Q: np.ndarray, t: np.ndarray, method: dict[str, str]
) -> list[float]:
    """Accuracy; mean recall of all classes, of the rarest third and of the most frequent third."""
    predicted = ImprintClassifier(**method, random_state=0).fit(X, y).predict(Q)
    right = np.bincount(t, predicted == t) / np.bincount(t)
    rare_first = np.argsort(np.bincount(y), kind="stable")
    third = len(right) // 3
    parts = (
        right[classes].mean()
        for classes in (rare_first, rare_first[:third], rare_first[-third:])
    )
    return [100 * float(v) for v in ((predicted == t).mean(), *parts)]


def main(packs: Path) -> None:
    trec, banking, clinc = (
        read(packs / f"minilm-{name}.npz") for name in ("trec", "banking77", "clinc150")
    )
    sets = {"TREC": [trec], "BANKING77": [banking]}
    sets["CLINC150, 100 to 2 rows"] = [
        [*cut(*clinc[:2], seed), *clinc[2:]] for seed in range(3)
    ]
    print(
        "| data | method | rows | classes | rare third | frequent third |\n|---|---|---|---|---|---|"
    )
    for name, draws in sets.items():
        for label, method in METHODS.items():
            means = np.mean([by_third(*draw, method) for draw in draws], axis=0)
            print(
                f"| {name} | {label} | {' | '.join(f'{v:.2f}' for v in means)} |",
                flush=True,
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
