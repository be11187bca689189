"""Exact forgetting: is a model that forgot a row, a class or a tag equal to one that never saw it?

    python benchmarks/field/forgetting.py [--pack deit_tiny-cifar10] [--rows 200]

`kernel` forgets a row by forgetting its class and learning the other rows of the class again or, with `keep_rows`, by
`forget_rows`, which needs the row alone. The tags of an image are
its class and "animal" or "vehicle"; forgetting a tag removes it from all rows. The table holds the largest relative
difference of scores and probabilities, whether the stored numbers are bit-identical, and the processor time with the
first prediction, relative to fitting without the row, class or tag. The last line shows how exactly the states of the
ridge sums before and after reveal the forgotten row.
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
VEHICLES = (0, 1, 8, 9)  # classes of CIFAR-10
GENERATORS = ("kmeans(k=20)", "all")
Heads = dict[str, tuple[Callable[[np.ndarray], np.ndarray], int]]


class Sums:
    """Ridge regression from sufficient statistics (analytic unlearning): forgetting subtracts those of the rows."""

    def __init__(
        self, features: Callable[[np.ndarray], np.ndarray], width: int, classes: int
    ):
        self.features, self.G, self.B = (
            features,
            np.zeros((width, width)),
            np.zeros((width, classes)),
        )

    def update(self, X: np.ndarray, Y: np.ndarray, sign: int = 1) -> "Sums":
        """Add or subtract rows with their indicator matrix."""
        H = self.features(X)
        self.G += sign * H.T @ H
        self.B += sign * H.T @ Y
        return self

    def forget_tag(self, tag: int) -> "Sums":
        self.B = np.delete(self.B, tag, axis=1)
        return self

    def state(self) -> np.ndarray:
        return np.concatenate([self.G.ravel(), self.B.ravel()])

    def scores(self, Q: np.ndarray) -> np.ndarray:
        return self.features(Q) @ np.linalg.solve(
            self.G + STRENGTH * np.eye(len(self.G)), self.B
        )


class Neighbours:
    """5-NN: stores the rows and their indicator matrix."""

    def fit(self, X: np.ndarray, Y: np.ndarray) -> "Neighbours":
        self.X, self.Y = X, Y
        return self

    def forget(self, gone: np.ndarray) -> "Neighbours":
        self.X, self.Y = self.X[~gone], self.Y[~gone]
        return self

    def forget_tag(self, tag: int) -> "Neighbours":
        self.Y = np.delete(self.Y, tag, axis=1)
        return self

    def state(self) -> np.ndarray:
        return np.concatenate([self.X.ravel(), self.Y.ravel()])

    def scores(self, Q: np.ndarray) -> np.ndarray:
        near = np.argsort(-(Q @ self.X.T), axis=1, kind="stable")[:, :5]
        return self.Y[near].sum(axis=1)


class Imprinted:
    """`ImprintClassifier` with calibration; its state is the model file."""

    def __init__(self, generator: str, keep_rows: bool = False):
        self.model = ImprintClassifier(
            generator=generator, calibrate=True, keep_rows=keep_rows, random_state=0
        )

    def fit(self, X: np.ndarray, y: list[set[str]]) -> "Imprinted":
        self.model.fit(X, y)
        return self

    def learn(self, X: np.ndarray, y: np.ndarray) -> "Imprinted":
        if len(y):
            self.model.partial_fit(X, y)
        return self

    def forget(self, label: int | str) -> "Imprinted":
        self.model.forget(label)
        return self

    def forget_row(self, row: np.ndarray, label: int) -> "Imprinted":
        self.model.forget_rows(row[None, :], label)
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


def line(
    name: str,
    level: str,
    forgotten: object,
    never: object,
    Q: np.ndarray,
    spent: float,
    fitting: float,
) -> str:
    a, b = forgotten.scores(Q), never.scores(Q)  # type: ignore[attr-defined]
    states = [
        hashlib.sha256(np.ascontiguousarray(m.state())).hexdigest()
        for m in (forgotten, never)
    ]  # type: ignore[attr-defined]
    gap = float(np.abs(a - b).max() / np.abs(b).max())
    equal = "yes" if states[0] == states[1] else "no"
    return f"| {name} | {level} | {gap:.1e} | {equal} | {100 * spent / fitting:.0f} % |"


def kept_rows(X: np.ndarray, y: np.ndarray, Q: np.ndarray, label: int) -> None:
    """Print the lines of the table for a row of models that keep all rows."""
    row = np.flatnonzero(y == label)[0]
    others = np.arange(len(y)) != row
    for generator in GENERATORS:
        full, never = Imprinted(generator, True), Imprinted(generator, True)
        full.learn(X, y).scores(Q[:1])
        _, fitting = timed(lambda m=never: m.learn(X[others], y[others]).scores(Q[:1]))
        _, spent = timed(lambda m=full: m.forget_row(X[row], label).scores(Q[:1]))
        name = f"kernel, {generator}, keep_rows"
        print(line(name, "a row", full, never, Q, spent, fitting), flush=True)


def rows_and_classes(
    X: np.ndarray, y: np.ndarray, Q: np.ndarray, heads: Heads, label: int
) -> None:
    """Print the lines of the table for a class and for one of its rows."""
    Y = np.eye(int(y.max()) + 1)[y]
    for level, gone in (
        ("a class", y == label),
        ("a row", np.arange(len(y)) == np.flatnonzero(y == label)[0]),
    ):
        for generator in GENERATORS:
            full, never, rest = (
                Imprinted(generator),
                Imprinted(generator),
                (y == label) & ~gone,
            )
            full.learn(X, y).scores(Q[:1])
            _, fitting = timed(
                lambda m=never, k=~gone: m.learn(X[k], y[k]).scores(Q[:1])
            )
            _, spent = timed(
                lambda m=full, k=rest: m.forget(label).learn(X[k], y[k]).scores(Q[:1])
            )
            print(
                line(f"kernel, {generator}", level, full, never, Q, spent, fitting),
                flush=True,
            )
        for name, (features, width) in heads.items():
            full, never = (
                Sums(features, width, Y.shape[1]).update(X, Y),
                Sums(features, width, Y.shape[1]),
            )
            _, fitting = timed(
                lambda m=never, k=~gone: m.update(X[k], Y[k]).scores(Q[:1])
            )
            _, spent = timed(
                lambda m=full, k=gone: m.update(X[k], Y[k], -1).scores(Q[:1])
            )
            print(line(name, level, full, never, Q, spent, fitting), flush=True)
        full, never = Neighbours().fit(X, Y), Neighbours()
        _, fitting = timed(lambda m=never, k=~gone: m.fit(X[k], Y[k]).scores(Q[:100]))
        _, spent = timed(lambda m=full, k=gone: m.forget(k).scores(Q[:100]))
        print(line("5-NN", level, full, never, Q, spent, fitting), flush=True)


def tags(X: np.ndarray, y: np.ndarray, Q: np.ndarray, heads: Heads, label: int) -> None:
    """Print the lines of the table for a tag; the rows keep their other tag."""
    kinds = np.where(np.isin(y, VEHICLES), "vehicle", "animal")
    sets = [{f"class {c}", kind} for c, kind in zip(y.tolist(), kinds.tolist())]
    tag = f"class {label}"
    without = [one - {tag} for one in sets]
    names = sorted(set().union(*sets))
    Y = np.array([[name in one for name in names] for one in sets], dtype=float)
    column = names.index(tag)
    for generator in GENERATORS:
        full, never = Imprinted(generator).fit(X, sets), Imprinted(generator)
        full.scores(Q[:1])
        _, fitting = timed(lambda m=never: m.fit(X, without).scores(Q[:1]))
        _, spent = timed(lambda m=full: m.forget(tag).scores(Q[:1]))
        print(
            line(f"kernel, {generator}", "a tag", full, never, Q, spent, fitting),
            flush=True,
        )
    for name, (features, width) in heads.items():
        full, never = (
            Sums(features, width, len(names)).update(X, Y),
            Sums(features, width, len(names) - 1),
        )
        _, fitting = timed(
            lambda m=never: m.update(X, np.delete(Y, column, axis=1)).scores(Q[:1])
        )
        _, spent = timed(lambda m=full: m.forget_tag(column).scores(Q[:1]))
        print(line(name, "a tag", full, never, Q, spent, fitting), flush=True)
    full, never = Neighbours().fit(X, Y), Neighbours()
    _, fitting = timed(
        lambda m=never: m.fit(X, np.delete(Y, column, axis=1)).scores(Q[:100])
    )
    _, spent = timed(lambda m=full: m.forget_tag(column).scores(Q[:100]))
    print(line("5-NN", "a tag", full, never, Q, spent, fitting), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pack", default="deit_tiny-cifar10")
    parser.add_argument("--rows", type=int, default=200)
    options = parser.parse_args()
    pack, rng = load(options.pack), np.random.default_rng(0)
    rows = rng.permutation(per_class(pack.y, options.rows, rng))
    X, y, Q = (
        unit_rows(pack.X[rows]).astype(np.float64),
        pack.y[rows],
        unit_rows(pack.Q[:1000]).astype(np.float64),
    )
    R = rng.normal(size=(X.shape[1], WIDTH))
    heads: Heads = {
        "ridge by sums (as ACU)": (lambda A: A, X.shape[1]),
        "RanPAC's sums": (lambda A: np.maximum(A @ R, 0), WIDTH),
    }
    print(
        "| model | forgets | relative difference of scores | stored numbers equal | processor time / refit |"
    )
    print("|---|---|---:|---|---:|")
    rows_and_classes(X, y, Q, heads, label=3)
    kept_rows(X, y, Q, label=3)
    tags(X, y, Q, heads, label=3)
    gone, Y = np.flatnonzero(y == 3)[:1], np.eye(int(y.max()) + 1)[y]
    before, after = (
        Sums(lambda A: A, X.shape[1], Y.shape[1]).update(X, Y) for _ in range(2)
    )
    after.update(X[gone], Y[gone], -1)
    guess = np.linalg.eigh(before.G - after.G)[1][:, -1]
    cosine = float(abs(guess @ X[gone[0]]))
    print(
        f"\nFrom both states of the ridge sums, the forgotten row is reconstructed with cosine {cosine:.6f}."
    )


if __name__ == "__main__":
    main()
