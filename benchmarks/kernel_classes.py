"""`kernel` with very many classes: time to fit and to predict, memory, and accuracy compared with `mean` and `max`.

    python benchmarks/kernel_classes.py [--classes 10000] [--rows 5] [--like FILE]

Rows are drawn from one normal distribution per class. Without `--like` its covariance is a multiple of the identity:
then the nearest class mean is the Bayes rule, and no method can be better. With `--like`, class means and rows
have the covariances between and within the classes of the embeddings in FILE (arrays `train`, `train_labels`).
Times are processor seconds (wall-clock seconds in brackets) with BLAS on one thread.
"""

import argparse
import resource
import time
from pathlib import Path

import numpy as np

from imprint import ImprintClassifier

WIDTH = 384
METHODS = (("mean", "max"), ("all", "kernel"), ("kmeans(k=20)", "kernel"))


def isotropic() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Overall mean, and square roots of the between-class and within-class covariances."""
    return np.zeros(WIDTH), np.eye(WIDTH), 2.5 * np.eye(WIDTH)


def estimated(file: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same, estimated from real embeddings."""
    with np.load(file) as pack:
        X, y = pack["train"].astype(np.float64), pack["train_labels"]
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    classes, codes = np.unique(y, return_inverse=True)
    means = np.stack([X[codes == c].mean(axis=0) for c in range(len(classes))])
    within = np.cov((X - means[codes]).T)
    between = np.cov(means.T) - within * len(classes) / len(X)
    values, vectors = np.linalg.eigh(between)
    return (
        X.mean(axis=0),
        vectors * np.sqrt(np.maximum(values, 0)),
        np.linalg.cholesky(within + 1e-9 * np.eye(len(within))),
    )


def draw(
    shape, centres: np.ndarray, per_class: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    y = np.repeat(np.arange(len(centres)), per_class)
    noise = (
        np.random.default_rng(seed)
        .normal(size=(len(y), len(shape[0])))
        .astype(np.float32)
    )
    return centres[y] + noise @ shape[2].T.astype(np.float32), y


def timed(call):
    start, busy = time.perf_counter(), time.process_time()
    result = call()
    return (
        result,
        f"{time.process_time() - busy:.3f} s ({time.perf_counter() - start:.3f} s)",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=5)
    parser.add_argument("--like", type=Path)
    parser.add_argument(
        "--noise",
        type=float,
        default=1.0,
        help="multiplies the deviations of rows from class means",
    )
    options = parser.parse_args()
    mean, between, within = estimated(options.like) if options.like else isotropic()
    shape = mean, between, options.noise * within
    normal = np.random.default_rng(0).normal(size=(options.classes, shape[1].shape[1]))
    centres = (shape[0] + normal @ shape[1].T).astype(np.float32)
    X, y = draw(shape, centres, options.rows, 1)
    truth = np.random.default_rng(3).permutation(options.classes)[:1000]
    Q, _ = draw(shape, centres[truth], 1, 2)
    print(
        "| method | fit | 1 row | 1,000 rows | accuracy | peak memory |\n|---|---|---|---|---|---|"
    )
    for generator, aggregator in METHODS:
        model = ImprintClassifier(
            generator=generator, aggregator=aggregator, random_state=0
        )
        _, fit = timed(lambda model=model: model.fit(X, y).predict(Q[:1]))
        _, one = timed(lambda model=model: model.predict(Q[:1]))
        answers, many = timed(lambda model=model: model.predict(Q))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        right = 100 * float(np.mean(answers == truth))
        print(
            f"| {generator}, {aggregator} | {fit} | {one} | {many} | {right:.1f} % | {peak:.1f} GB |",
            flush=True,
        )


if __name__ == "__main__":
    main()
