"""Exact forgetting: is a model that forgot a class equal to one that never saw it?

    python benchmarks/field/forgetting.py [--pack deit_tiny-cifar10] [--rows 200]

Levels: one class, and one row (`kernel` forgets the class and learns its other rows again). The table holds the largest
relative difference of scores and probabilities, whether the stored numbers are equal bit by bit, and the processor time
with the first prediction, relative to fitting without the class or row. Last: what both states together reveal.
"""

import argparse
import hashlib
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from data import load, per_class

from imprint import ImprintClassifier
from imprint.kernels.rows import unit_rows

STRENGTH, WIDTH = 1.0, 1000


class Sums:
    """Ridge regression by sums, as analytic unlearning uses it: forgetting subtracts the sums of the forgotten rows."""

    def __init__(self, features: Callable[[np.ndarray], np.ndarray], width: int, classes: int):
        self.features, self.G, self.B = features, np.zeros((width, width)), np.zeros((width, classes))

    def update(self, X: np.ndarray, y: np.ndarray, sign: int = 1) -> "Sums":
        H = self.features(X)
        self.G += sign * H.T @ H
        self.B += sign * H.T @ np.eye(self.B.shape[1])[y]
        return self

    def state(self) -> np.ndarray:
        return np.concatenate([self.G.ravel(), self.B.ravel()])

    def scores(self, Q: np.ndarray) -> np.ndarray:
        return self.features(Q) @ np.linalg.solve(self.G + STRENGTH * np.eye(len(self.G)), self.B)


class Neighbours:
    """5-NN: the rows themselves."""

    def __init__(self, classes: int):
        self.X, self.y, self.classes = np.empty((0, 0)), np.empty(0, dtype=int), classes

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Neighbours":
        self.X, self.y = X, y
        return self

    def forget(self, gone: np.ndarray) -> "Neighbours":
        self.X, self.y = self.X[~gone], self.y[~gone]
        return self

    def state(self) -> np.ndarray:
        return self.X.ravel()

    def scores(self, Q: np.ndarray) -> np.ndarray:
        near = np.argsort(-(Q @ self.X.T), axis=1, kind="stable")[:, :5]
        return np.stack([(self.y[near] == c).sum(axis=1) for c in range(self.classes)], axis=1)


class Imprinted:
    """`ImprintClassifier` with calibration; its state is the model file."""

    def __init__(self, generator: str):
        self.model = ImprintClassifier(generator=generator, calibrate=True, random_state=0)

    def learn(self, X: np.ndarray, y: np.ndarray) -> "Imprinted":
        if len(y):
            self.model.partial_fit(X, y)
        return self

    def forget(self, label: int) -> "Imprinted":
        self.model.forget(label)
        return self

    def state(self) -> np.ndarray:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.imprint"
            self.model.save(path)
            return np.frombuffer(path.read_bytes(), dtype=np.uint8)

    def scores(self, Q: np.ndarray) -> np.ndarray:
        return np.hstack([self.model.decision_function(Q), self.model.predict_proba(Q)])


def timed(call: Callable[[], object]) -> tuple[object, float]:
    start = time.process_time()
    return call(), time.process_time() - start


def line(name: str, level: str, forgotten: object, never: object, Q: np.ndarray, spent: float, fitting: float) -> str:
    a, b = forgotten.scores(Q), never.scores(Q)  # type: ignore[attr-defined]
    states = [hashlib.sha256(np.ascontiguousarray(m.state())).hexdigest() for m in (forgotten, never)]  # type: ignore[attr-defined]
    gap = float(np.abs(a - b).max() / np.abs(b).max())
    equal = "yes" if states[0] == states[1] else "no"
    return f"| {name} | {level} | {gap:.1e} | {equal} | {100 * spent / fitting:.0f} % |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pack", default="deit_tiny-cifar10")
    parser.add_argument("--rows", type=int, default=200)
    given = parser.parse_args()
    pack, rng = load(given.pack), np.random.default_rng(0)
    rows = rng.permutation(per_class(pack.y, given.rows, rng))
    X, y, Q = unit_rows(pack.X[rows]).astype(np.float64), pack.y[rows], unit_rows(pack.Q[:1000]).astype(np.float64)
    classes, label = int(y.max()) + 1, 3
    R = rng.normal(size=(X.shape[1], WIDTH))
    heads = {
        "ridge by sums (as ACU)": (lambda A: A, X.shape[1]),
        "RanPAC's sums": (lambda A: np.maximum(A @ R, 0), WIDTH),
    }
    print("| model | forgets | relative difference of scores | stored numbers equal | processor time / refit |")
    print("|---|---|---:|---|---:|")
    for level, gone in (("a class", y == label), ("a row", np.arange(len(y)) == np.flatnonzero(y == label)[0])):
        for generator in ("kmeans(k=20)", "all"):
            full, never, rest = Imprinted(generator), Imprinted(generator), (y == label) & ~gone
            full.learn(X, y).scores(Q[:1])
            _, fitting = timed(lambda m=never, k=~gone: m.learn(X[k], y[k]).scores(Q[:1]))
            _, spent = timed(lambda m=full, k=rest: m.forget(label).learn(X[k], y[k]).scores(Q[:1]))
            print(line(f"kernel, {generator}", level, full, never, Q, spent, fitting), flush=True)
        for name, (features, width) in heads.items():
            full = Sums(features, width, classes).update(X, y)
            never = Sums(features, width, classes)
            _, fitting = timed(lambda m=never, k=~gone: m.update(X[k], y[k]).scores(Q[:1]))
            _, spent = timed(lambda m=full, k=gone: m.update(X[k], y[k], -1).scores(Q[:1]))
            print(line(name, level, full, never, Q, spent, fitting), flush=True)
        full, never = Neighbours(classes).fit(X, y), Neighbours(classes)
        _, fitting = timed(lambda m=never, k=~gone: m.fit(X[k], y[k]).scores(Q[:100]))
        _, spent = timed(lambda m=full, k=gone: m.forget(k).scores(Q[:100]))
        print(line("5-NN", level, full, never, Q, spent, fitting), flush=True)
    gone = np.flatnonzero(y == label)[:1]
    before, after = Sums(lambda A: A, X.shape[1], classes), Sums(lambda A: A, X.shape[1], classes)
    before.update(X, y)
    after.update(X, y).update(X[gone], y[gone], -1)
    guess = np.linalg.eigh(before.G - after.G)[1][:, -1]
    cosine = float(abs(guess @ X[gone[0]]))
    print(f"\nFrom both states of the ridge sums, the forgotten row is reconstructed with cosine {cosine:.6f}.")


if __name__ == "__main__":
    main()
