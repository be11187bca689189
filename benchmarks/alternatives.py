"""Alternatives to `imprint` in other libraries: accuracy, time to fit and time to predict, in one run.

    python benchmarks/alternatives.py PACK [--rows 500] [--queries 2000]

PACK holds embeddings (arrays `train`, `train_labels`, `test`, `test_labels`). Every method gets the same unit rows,
`rows` per class. Times are processor seconds with BLAS on one thread, medians of three interleaved runs after one to
warm up, relative to the default of `imprint`. The alternatives use the defaults of their libraries, except that
Gaussian kernels have the width of those of `kernel`, logistic regression may iterate 1,000 times, and the ridge of
KernelRidge and Nystroem is the noise of `kernel`. The faiss row needs `pip install faiss-cpu`.
"""

import argparse
import platform
import time
from datetime import date
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import sklearn
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from imprint import ImprintClassifier

NOISE, REPEATS = 0.1, 3


class ByColumns:
    """A classifier made of a regressor on one-hot labels."""

    def __init__(self, regression):
        self.regression = regression

    def fit(self, X, y):
        self.regression.fit(X, np.eye(int(y.max()) + 1, dtype=X.dtype)[y])
        return self

    def predict(self, X):
        return self.regression.predict(X).argmax(axis=1)


class Faiss:
    """Majority of the five nearest rows, by an exact index."""

    def fit(self, X, y):
        import faiss

        self.index, self.y = faiss.IndexFlatL2(X.shape[1]), y
        self.index.add(X)
        return self

    def predict(self, X):
        nearest = self.y[self.index.search(X, 5)[1]]
        return np.array([np.bincount(row).argmax() for row in nearest])


def methods(X):
    rate = 1 / (2 * float(np.square(X - X.mean(axis=0)).sum(axis=1).mean()))
    yield "**imprint**, default (k = 50 proxies per class)", ImprintClassifier
    yield "**imprint**, all rows", lambda: ImprintClassifier(generator="all")
    yield "KNeighborsClassifier (5)", KNeighborsClassifier
    if find_spec("faiss"):
        yield "faiss IndexFlatL2, 5 nearest vote", Faiss
    yield "LogisticRegression", lambda: LogisticRegression(max_iter=1000)
    yield "SVC", lambda: SVC(gamma=rate)
    yield (
        "KernelRidge",
        lambda: ByColumns(KernelRidge(alpha=NOISE, kernel="rbf", gamma=rate)),
    )
    for centres in (200, 1000):
        yield (
            f"Nystroem ({centres:,} centres) + Ridge",
            lambda m=centres: ByColumns(
                make_pipeline(
                    Nystroem(kernel="rbf", gamma=rate, n_components=m, random_state=0),
                    Ridge(alpha=NOISE),
                )
            ),
        )


def unit(rows):
    rows = rows.astype(np.float32)
    return np.ascontiguousarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def seconds(call):
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pack", type=Path)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--queries", type=int, default=2000)
    options = parser.parse_args()
    with np.load(options.pack) as pack:
        y, truth = pack["train_labels"], pack["test_labels"][: options.queries]
        chosen = np.sort(
            np.concatenate(
                [np.flatnonzero(y == c)[: options.rows] for c in np.unique(y)]
            )
        )
        scale, offset = (
            pack.get("scale", np.float32(1)),
            pack.get("offset", np.float32(0)),
        )
        X, Q = (
            unit(part * scale + offset)
            for part in (pack["train"][chosen], pack["test"][: options.queries])
        )
    classes, y = np.unique(y[chosen], return_inverse=True)
    truth, times, accuracy = np.searchsorted(classes, truth), {}, {}
    with threadpool_limits(1):
        for repeat in range(REPEATS + 1):
            for name, build in methods(X):
                fit, model = seconds(lambda build=build: build().fit(X, y))
                first, _ = seconds(
                    lambda model=model: model.predict(Q[:1])
                )  # some solve at the first prediction
                predict, answers = seconds(lambda model=model: model.predict(Q))
                accuracy[name] = 100 * float(np.mean(answers == truth))
                if repeat:
                    times.setdefault(name, []).append((fit + first, predict))
    medians = {name: np.median(runs, axis=0) for name, runs in times.items()}
    reference = next(iter(medians.values()))
    rows = (
        f"{len(X):,} x {X.shape[1]} rows of {len(classes)} classes, {len(Q):,} queries"
    )
    print(
        f"{date.today()}, {platform.machine()}, scikit-learn {sklearn.__version__}, {options.pack.stem}: {rows};"
    )
    print(
        f"the default takes {reference[0]:.3f} s to fit and {1e6 * reference[1] / len(Q):.1f} us per query.\n"
    )
    print(
        "| method | accuracy, % | fit, relative time | predict, relative time |\n|---|---:|---:|---:|"
    )
    for name, median in medians.items():
        fit, predict = median / reference
        print(f"| {name} | {accuracy[name]:.1f} | {fit:.2g} | {predict:.2g} |")


if __name__ == "__main__":
    main()
