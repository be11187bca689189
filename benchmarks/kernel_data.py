"""Shared by the benchmarks of the `kernel` aggregator: packs, tasks, proxies and their posterior."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from imprint.gaussian_process.posterior import Posterior, solve
from imprint.gaussian_process.scale import moments, scale
from imprint.kernels.kmeans import kmeans
from imprint.kernels.rows import squared_norms, unit_rows

DATASETS = ("mnist", "fashionmnist", "cifar10")
BACKBONES = ("tinynet", "deit_tiny", "mobilenet_v1_0.25_128", "mobilenet_v1_0.5_160")
TASKS = {
    "all": range(10),
    "even": range(0, 10, 2),
    "odd": range(1, 10, 2),
    "short": range(3),
}


class Instance(NamedTuple):
    name: str
    X: np.ndarray  # (n, d) float32 unit rows, sorted by class
    y: np.ndarray  # 0, 1, ...
    Q: np.ndarray
    t: np.ndarray

    def only(self, task: str) -> "Instance":
        """The rows of the classes of a task, with classes renumbered from 0."""
        classes = np.array(TASKS[task])
        train, test = np.isin(self.y, classes), np.isin(self.t, classes)
        y, t = (
            np.searchsorted(classes, part) for part in (self.y[train], self.t[test])
        )
        return Instance(f"{self.name}/{task}", self.X[train], y, self.Q[test], t)

    def shots(self, n: int, seed: int = 0) -> "Instance":
        """At most n training rows of each class."""
        rng = np.random.default_rng(seed)
        rows = [
            rng.permutation(np.flatnonzero(self.y == c))[:n] for c in np.unique(self.y)
        ]
        rows = np.concatenate([np.sort(part) for part in rows])
        return Instance(self.name, self.X[rows], self.y[rows], self.Q, self.t)


class Clusters(NamedTuple):
    """Proxies of all classes."""

    weights: np.ndarray
    labels: np.ndarray
    mass: np.ndarray
    spread: np.ndarray
    scale: float


def read(path: Path) -> Instance:
    file = np.load(path)
    offset = file["offset"] if "offset" in file.files else 0
    X, Q = (
        unit_rows(file[part].astype(np.float32) * file["scale"] + offset)
        for part in ("train", "test")
    )
    order = np.argsort(file["train_labels"], kind="stable")
    return Instance(
        path.stem,
        X[order],
        file["train_labels"][order].astype(int),
        Q,
        file["test_labels"].astype(int),
    )


def ten_class_packs(folder: Path) -> Iterator[Path]:
    """Packs of MNIST, FashionMNIST and CIFAR-10 by five backbones: 600 + 300 rows of ten classes."""
    for path in sorted((folder / "subset").glob("*.npz")):
        if path.stem.rsplit("-", 1)[-1] in DATASETS:
            yield path


def clusters(instance: Instance, k: int | None, seed: int = 0) -> Clusters:
    """k-means proxies; every row is a proxy if k is None."""
    X, y = instance.X, instance.y
    s = scale(moments(X))
    if k is None:
        return Clusters(X, y, np.ones(len(X)), np.zeros(len(X)), s)
    parts = []
    for c in range(int(y.max()) + 1):
        rows = X[y == c]
        result = kmeans(rows, k, np.random.default_rng([seed, c]))
        gaps = squared_norms(rows - result.centres[result.labels])
        spread = np.bincount(result.labels, gaps, len(result.centres)) / result.mass
        parts.append(
            (result.centres, np.full(len(result.centres), c), result.mass, spread)
        )
    return Clusters(*(np.concatenate(column) for column in zip(*parts)), s)


def system(
    of: Clusters, gamma: float = 1.0, noise: float = 0.1, spread: float = 0.2
) -> Posterior:
    return solve(
        of.weights,
        of.labels,
        noise / of.mass + spread * of.spread / of.scale,
        gamma / of.scale,
    )


def accuracy(scores: np.ndarray, t: np.ndarray) -> float:
    return 100 * float((scores.argmax(axis=1) == t).mean())
