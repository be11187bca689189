"""Time series: imprint against the published MiniRocket and other classifiers.

    python -m benchmarks.field.series FOLDER [--draws N]

FOLDER holds `.npz` files with `train_series`, `train_labels`, `test_series` and
`test_labels`. With aeon installed, the published MiniRocket is fitted to the training
series (standardised, then RidgeClassifierCV), and 1-NN with dynamic time warping is
added for small sets. The other rows of the table use the frozen embedding of imprint.
Accuracies are means over the sets, in %, for whole training sets and for 1, 2 and 5
series per class. At the end: the time for 10,000 series of 500 samples.
"""

import sys
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from imprint import ImprintClassifier
from imprint.imprinter.embedder import BackboneEmbedder

ALPHAS = np.logspace(-3, 3, 10)  # as in aeon's RocketClassifier
SHOTS = (1, 2, 5)
MAX_WARPED = 20_000_000  # pairs of series times their channels and length
SPEED_SERIES, SPEED_LENGTH = 10_000, 500
HAS_AEON = find_spec("aeon") is not None


class Embedded:
    """The series and the frozen embeddings of one set."""

    def __init__(self, path: Path):
        pack = np.load(path)
        embedder = BackboneEmbedder("minirocket", False, "cpu", None)
        self.name = path.stem
        self.series = {}
        self.rows = {}
        self.labels = {}
        for part in ("train", "test"):
            series = pack[f"{part}_series"].astype(np.float32)
            embedded = embedder.embed_unlabelled(series)
            self.series[part] = series
            self.rows[part] = embedded.X
            self.labels[part] = pack[f"{part}_labels"].astype(int)
            self.blocks = embedded.blocks


def ridge():
    return make_pipeline(StandardScaler(), RidgeClassifierCV(alphas=ALPHAS))


def logistic():
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def classifiers(blocks: tuple[int, ...]) -> dict[str, Callable[[], object]]:
    """What is fitted to the frozen embeddings."""
    return {
        "imprint": lambda: ImprintClassifier(blocks=blocks),
        "frozen + RidgeClassifierCV": ridge,
        "frozen + logistic regression": logistic,
    }


def fitted_minirocket():
    from aeon.transformations.collection.convolution_based import MiniRocket

    transform = MiniRocket(random_state=0)
    return make_pipeline(transform, StandardScaler(), RidgeClassifierCV(alphas=ALPHAS))


def warping():
    from aeon.classification.distance_based import KNeighborsTimeSeriesClassifier

    return KNeighborsTimeSeriesClassifier(n_neighbors=1, distance="dtw")


def accuracies(data: Embedded, rows: np.ndarray) -> dict[str, float]:
    """The accuracy of every method that is fitted to these training rows, in %."""
    y = data.labels["train"][rows]
    truth = data.labels["test"]
    methods = {
        name: (make, data.rows["train"][rows], data.rows["test"])
        for name, make in classifiers(data.blocks).items()
    }
    if HAS_AEON:
        series = data.series["train"][rows]
        tests = data.series["test"]
        methods["MiniRocket, fitted"] = (fitted_minirocket, series, tests)
        if len(series) * len(tests) * series[0].size <= MAX_WARPED:
            methods["1-NN with warping"] = (warping, series, tests)
    out = {}
    for name, (make, X, Q) in methods.items():
        predicted = make().fit(X, y).predict(Q)
        out[name] = 100 * float((np.asarray(predicted) == truth).mean())
    return out


def rows_of(y: np.ndarray, shots: int | None, seed: int) -> np.ndarray:
    """So many rows of each class; None for all."""
    if shots is None:
        return np.arange(len(y))
    rng = np.random.default_rng(seed)
    classes = [rng.permutation(np.flatnonzero(y == c)) for c in np.unique(y)]
    return np.concatenate([rows[:shots] for rows in classes])


def compare(data: Embedded, shots: int | None, draws: int) -> dict[str, float]:
    """Mean accuracies over the draws."""
    seeds = range(1 if shots is None else draws)
    y = data.labels["train"]
    results = [accuracies(data, rows_of(y, shots, seed)) for seed in seeds]
    return {name: float(np.mean([r[name] for r in results])) for name in results[0]}


def show(label: str, results: dict[str, float]) -> None:
    cells = [f"{name} {value:.1f}" for name, value in results.items()]
    print(f"{label:28s} " + "  ".join(cells), flush=True)


def measure_speed() -> None:
    """Seconds for many series, the least of three runs."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(SPEED_SERIES, 1, SPEED_LENGTH)).astype(np.float32)
    embedder = BackboneEmbedder("minirocket", False, "cpu", None)
    runs = {"imprint": lambda: embedder.embed_unlabelled(X)}
    if HAS_AEON:
        from aeon.transformations.collection.convolution_based import MiniRocket

        transform = MiniRocket(n_jobs=-1).fit(X[:100])
        runs["MiniRocket of aeon"] = lambda: transform.transform(X)
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(3):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    for name, values in seconds.items():
        print(f"{name}: {min(values):.1f} s for {SPEED_SERIES:,} series", flush=True)


def main(folder: Path, draws: int) -> None:
    warnings.simplefilter("ignore")
    sets = [Embedded(path) for path in sorted(folder.glob("*.npz"))]
    for shots in (None, *SHOTS):
        name_of_rows = "all" if shots is None else f"{shots} per class"
        table = []
        for data in sets:
            results = compare(data, shots, draws)
            table.append(results)
            show(f"{data.name}, {name_of_rows}", results)
        shared = [name for name in table[0] if all(name in row for row in table)]
        means = {name: np.mean([row[name] for row in table]) for name in shared}
        show(f"mean, {name_of_rows}", means)
    measure_speed()


if __name__ == "__main__":
    arguments = sys.argv[1:]
    draws = 5
    if "--draws" in arguments:
        at = arguments.index("--draws")
        draws = int(arguments[at + 1])
        del arguments[at : at + 2]
    main(Path(arguments[0]), draws)
