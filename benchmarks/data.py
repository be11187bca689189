"""Benchmark data: real embeddings if their files exist, otherwise clustered random rows."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("IMPRINT_SHARED", ROOT.parent / "shared"))
MADE = Path(os.environ.get("IMPRINT_BENCH_DATA", ROOT / "out" / "bench"))
FILES = {
    256: SHARED / "embeddings" / "full" / "mobilenet_v1_0.25_128-mnist.npz",
    512: MADE / "mobilenet_v1_0.5-mnist.npz",
    1280: MADE / "mobilenet_v2-mnist.npz",
}


class Embeddings(NamedTuple):
    source: str
    train: np.ndarray  # (n, d) float32, unit rows sorted by class
    labels: np.ndarray
    test: np.ndarray
    test_labels: np.ndarray

    def classes(self) -> list[np.ndarray]:
        return [
            np.ascontiguousarray(self.train[self.labels == c])
            for c in np.unique(self.labels)
        ]


def load(width: int) -> Embeddings:
    """Embeddings of MNIST by a MobileNet of this width, or synthetic rows if the file is missing."""
    path = FILES[width]
    if not path.exists():
        return _synthetic(width)
    file = np.load(path)
    scale = file["scale"] if "scale" in file.files else np.float32(1)
    train, test = (_unit(file[part] * np.float32(scale)) for part in ("train", "test"))
    order = np.argsort(file["train_labels"], kind="stable")
    return Embeddings(
        path.stem, train[order], file["train_labels"][order], test, file["test_labels"]
    )


def _synthetic(width: int, per_class: int = 6000, queries: int = 10_000) -> Embeddings:
    """Ten classes of thirty overlapping groups each, with a falling spectrum, rectified."""
    rng = np.random.default_rng(width)
    axes = rng.normal(size=(width, width)) * np.arange(1, width + 1) ** -0.6
    groups = rng.normal(size=(10, 30, width)) + 1.5 * rng.normal(size=(10, 1, width))

    def draw(labels: np.ndarray) -> np.ndarray:
        rows = groups[labels, rng.integers(30, size=len(labels))] + rng.normal(
            size=(len(labels), width)
        )
        return _unit(np.maximum(rows @ axes.T + 2, 0).astype(np.float32))

    y, z = np.repeat(np.arange(10), per_class), rng.integers(10, size=queries)
    return Embeddings("synthetic", draw(y), y, draw(z), z)


def _unit(X: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(
        X / np.linalg.norm(X, axis=1, keepdims=True).clip(1e-12)
    )
