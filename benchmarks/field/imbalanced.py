"""Imbalanced classes: balanced accuracy and recall of the small classes, compared with other classifiers.

    python benchmarks/field/imbalanced.py [--diagram FILE.svg]

Seven settings (rows and number of the small classes, rows of the other classes) on six packs, one draw each; the same
settings as `benchmarks/kernel_unequal.py`, which compares the values of `balance`. An instance of the test is a
setting on a pack.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from data import load
from peers import gda
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from tables import measured_once, parser_of, print_comparison

from imprint import ImprintClassifier, recipe
from imprint.kernels.rows import unit_rows

SETTINGS = [
    (5, 1, 300),
    (5, 3, 300),
    (20, 1, 300),
    (20, 3, 300),
    (5, 3, 50),
    (2, 3, 50),
    (1, 3, 20),
]
PACKS = [
    f"{backbone}-{data}"
    for backbone in ("tinynet", "deit_tiny")
    for data in ("mnist", "fashionmnist", "cifar10")
]
OURS = "kernel"
Predict = Callable[[np.ndarray], np.ndarray]


def fitted(model: Any) -> Callable[[np.ndarray, np.ndarray], Predict]:
    return lambda X, y: model.fit(X, y).predict


def lda(X: np.ndarray, y: np.ndarray) -> Predict:
    score, _ = gda(X.astype(np.float64), y)
    return lambda Q: score(Q).argmax(axis=1)


METHODS: dict[str, Callable[[np.ndarray, np.ndarray], Predict]] = {
    OURS: fitted(recipe("kernel", random_state=0)),
    "kernel, balance=0": fitted(
        ImprintClassifier(aggregator="kernel(balance=0)", random_state=0)
    ),
    "class means": fitted(recipe("qi2018", random_state=0)),
    "logistic regression": fitted(LogisticRegression(C=10, max_iter=100)),
    "logistic regression, balanced": fitted(
        LogisticRegression(C=10, max_iter=100, class_weight="balanced")
    ),
    "LDA, equal priors": lda,
    "5-NN": fitted(KNeighborsClassifier(5, weights="distance")),
}


def measure(name: str, setting: tuple[int, int, int]) -> dict[str, list[float]]:
    """By method: mean recall of all classes and of the small classes, in %."""
    pack, rng = load(name), np.random.default_rng(0)
    few, count, many = setting
    small = rng.permutation(10)[:count]
    sizes = np.where(np.isin(np.arange(10), small), few, many)
    rows = np.concatenate(
        [rng.permutation(np.flatnonzero(pack.y == c))[:n] for c, n in enumerate(sizes)]
    )
    X, Q, t, figures = unit_rows(pack.X[rows]), unit_rows(pack.Q), pack.t, {}
    for method, fit in METHODS.items():
        predicted = fit(X, pack.y[rows])(Q)
        recall = 100 * np.bincount(t, predicted == t) / np.bincount(t)
        figures[method] = [float(recall.mean()), float(recall[small].mean())]
    return figures


def main() -> None:
    options = parser_of(__doc__).parse_args()
    figures = {}
    for setting in SETTINGS:
        for name in PACKS:
            key = name + " @ {} x {}, {}".format(*setting)
            figures[key] = measured_once(
                "imbalanced", key, lambda n=name, s=setting: measure(n, s)
            )
    print(
        "| few rows x classes, rows of others | "
        + " | ".join(METHODS)
        + " |\n|---|"
        + "---:|" * len(METHODS)
    )
    for setting in SETTINGS:
        start = "{} x {}, {}".format(*setting)
        here = [
            by_method
            for key, by_method in figures.items()
            if key.endswith(f" @ {start}")
        ]
        means = [np.mean([by_method[m] for by_method in here], axis=0) for m in METHODS]
        print(
            f"| {start} | "
            + " | ".join(f"{every:.1f} ({small:.1f})" for every, small in means)
            + " |"
        )
    scores = {
        method: {key: figures[key][method][0] for key in figures} for method in METHODS
    }
    print_comparison(
        scores,
        OURS,
        "balanced accuracy, %",
        options.diagram,
        "Imbalanced classes, balanced accuracy",
    )


if __name__ == "__main__":
    main()
