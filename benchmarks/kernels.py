"""All kernels compared with other libraries, in one table. `python benchmarks/kernels.py --help` lists the options."""

import argparse
import os
import platform
from collections.abc import Iterator

import numpy as np
import peers
from data import load
from scipy.linalg import cho_factor, cho_solve
from timing import HEADER, Row, compare

from imprint.kernels.cpu import one_blas_thread
from imprint.kernels.kmeans import Problem, kmeans, kmeans_many
from imprint.kernels.medoids import Pairwise, alternate, farthest_points, fasterpam
from imprint.kernels.neighbours import nearest
from imprint.kernels.ridge import gram
from imprint.kernels.scores import class_maxima

SET = (*range(1, 16), 20)


def kmeans_rows(repeats: int, whole: bool) -> Iterator[Row]:
    """k-means of ten classes at once, the problems of a study, and scaling with width, k and n."""
    classes = load(512).classes()
    several = classes if whole else classes[:2]
    inertia = (
        "mean inertia",
        lambda r: float(np.mean([x.inertia for x in r])),
        lambda r: float(np.mean(r)),
    )
    yield compare(
        "kmeans_many", f"{len(classes)} classes x 6,000 x 512, k = 20", "scikit-learn KMeans",
        lambda s: kmeans_many(classes, [Problem(i, 20, s) for i in range(len(classes))]),
        lambda s: [peers.sklearn_kmeans(X, 20, s) for X in classes],
        inertia, 10 if whole else repeats,
    )  # fmt: skip
    yield compare(
        "kmeans_many", f"{len(several)} classes x 6,000 x 512, k = 1..15, 20, 3 seeds", "scikit-learn KMeans",
        lambda _: kmeans_many(several, [Problem(i, k, s) for i in range(len(several)) for k in SET for s in range(3)]),
        lambda _: [peers.sklearn_kmeans(X, k, s) for X in several for k in SET for s in range(3)],
        inertia, 1,
    )  # fmt: skip
    few, ks = [X[:600] for X in classes], (2, 3, 5, 10, 20)
    yield compare(
        "kmeans_many", f"{len(few)} classes x 600 x 512, k = 2, 3, 5, 10, 20, 3 seeds", "scikit-learn KMeans",
        lambda _: kmeans_many(few, [Problem(i, k, s) for i in range(len(few)) for k in ks for s in range(3)]),
        lambda _: [peers.sklearn_kmeans(X, k, s) for X in few for k in ks for s in range(3)],
        inertia, repeats,
    )  # fmt: skip
    one = ("inertia", lambda r: r.inertia, float)
    for width in (256, 512, 1280):
        X = load(width).classes()[0]
        for k in (5, 20, 100):
            for n in (1500, 3000, 6000) if (width, k) == (512, 20) else (6000,):
                rows = X[:n]
                yield compare(
                    "kmeans", f"{len(rows):,} x {width}, k = {k}", "scikit-learn KMeans",
                    lambda s, rows=rows, k=k: kmeans(rows, k, np.random.default_rng(s)),
                    lambda s, rows=rows, k=k: peers.sklearn_kmeans(rows, k, s),
                    one, repeats,
                )  # fmt: skip


def neighbour_rows(repeats: int, whole: bool) -> Iterator[Row]:
    """Exact neighbour lists; quality is the share of queries whose list equals that of float64 brute force."""
    E = load(256)
    Q = E.test if whole else E.test[:2000]
    truth = nearest(Q.astype(np.float64), E.train.astype(np.float64), 5)[1]

    def share(lists: np.ndarray) -> float:
        return float((lists == truth).all(axis=1).mean())

    quality = ("equal lists", lambda r: share(r[1]), share)
    setting = f"{len(E.train):,} x {len(Q):,} x 256, m = 5"
    for peer, theirs in {
        "faiss IndexFlatL2": lambda _: peers.faiss_neighbours(Q, E.train, 5),
        "scikit-learn brute force": lambda _: peers.sklearn_neighbours(Q, E.train, 5),
    }.items():
        yield compare(
            "nearest",
            setting,
            peer,
            lambda _: nearest(Q, E.train, 5),
            theirs,
            quality,
            repeats,
        )
    Q, W = E.test[:500], E.train[::6]
    for metric in ("cosine", "manhattan"):
        truth = nearest(Q.astype(np.float64), W.astype(np.float64), 5, metric)[1]
        yield compare(
            "nearest", f"{len(W):,} x {len(Q):,} x 256, m = 5, {metric}", "scikit-learn brute force",
            lambda _, metric=metric: nearest(Q, W, 5, metric),
            lambda _, metric=metric: peers.sklearn_neighbours(Q, W, 5, metric),
            quality, 1,
        )  # fmt: skip


def other_rows(repeats: int, whole: bool) -> Iterator[Row]:
    """Maxima, medoids, farthest points, least squares."""
    E = load(256)
    classes = np.unique(E.labels)
    starts = np.searchsorted(E.labels, classes)
    Q = E.test if whole else E.test[:2000]

    def accuracy(scores: np.ndarray) -> float:
        return float(
            (classes[scores.argmax(axis=1)] == E.test_labels[: len(scores)]).mean()
        )

    yield compare(
        "class_maxima", f"{len(E.train):,} x {len(Q):,} x 256", "all scores at once",
        lambda _: class_maxima(Q, E.train, starts), lambda _: peers.whole_maxima(Q, E.train, starts),
        ("accuracy", accuracy, accuracy), repeats,
    )  # fmt: skip
    X = E.classes()[0]
    for name, method in {
        "fasterpam": lambda s: fasterpam(
            Pairwise(X), 20, np.random.default_rng(s), np.ones(len(X))
        ),
        "alternate": lambda s: alternate(Pairwise(X), 20, np.ones(len(X))),
    }.items():
        yield compare(
            name, f"{len(X):,} x 256, k = 20", "published k-medoids (restated)",
            one_blas_thread()(method), lambda _: peers.alternating_medoids(X, 20),
            ("cost", lambda r: float(np.sum(r[2])), float), repeats,
        )  # fmt: skip
    yield compare(
        "farthest_points", f"{len(X):,} x 256, k = 20", "published (restated)",
        lambda s: farthest_points(X, 20, s), lambda s: peers.torch_farthest(X, 20, s),
        ("sum of rows", lambda r: float(np.sum(r)), lambda r: float(np.sum(r))), repeats,
    )  # fmt: skip

    def ours(_: int) -> np.ndarray:
        parts = np.split(E.train, starts[1:])
        means = np.stack([X.mean(axis=0, dtype=np.float64) for X in parts])
        system = gram(E.train) / len(E.train) + 1e-4 * np.eye(E.train.shape[1])
        return (cho_solve(cho_factor(system), means.T).T / len(means)).astype(
            np.float32
        )

    yield compare(
        "gram, Cholesky", f"{len(E.train):,} x 256", "published least squares (restated)",
        ours, lambda _: peers.inverse_least_squares(E.train, np.searchsorted(classes, E.labels), 1e-4),
        ("accuracy", lambda w: accuracy(E.test @ w.T), lambda w: accuracy(E.test @ w.T)), repeats,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--whole",
        action="store_true",
        help="all classes, all queries, ten seeds (takes some minutes)",
    )
    parser.add_argument("--only", choices=["kmeans", "neighbours", "others"])
    options = parser.parse_args()
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    )
    for width in (256, 512, 1280):
        print(f"{width} columns: {load(width).source}")
    warm()
    print(HEADER, flush=True)
    parts = {"kmeans": kmeans_rows, "neighbours": neighbour_rows, "others": other_rows}
    for name, part in parts.items():
        if options.only in (None, name):
            for row in part(options.repeats, options.whole):
                print(row, flush=True)


def warm() -> None:
    """Compile or load every kernel once, so that no measurement includes it."""
    X = np.random.default_rng(0).normal(size=(5000, 128)).astype(np.float32)
    for rows in (X, X.astype(np.float64)):
        nearest(rows, rows, 5)
    nearest(X, X, 5, "cosine")
    nearest(X, X, 5, "manhattan")
    kmeans(X, 9, np.random.default_rng(0))
    fasterpam(Pairwise(X[:1000]), 9, np.random.default_rng(0), np.ones(1000))
    farthest_points(X, 9, 0)


if __name__ == "__main__":
    main()
