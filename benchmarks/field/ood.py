"""Out-of-distribution detection: CLINC150's out-of-scope queries, and pictures of other data sets.

    python benchmarks/field/ood.py [--rows 20]

All scores use the same embeddings of the same training rows. MSP, energy, ViM and NNGuide need logits, here those of
logistic regression. AUROC, FPR at 95 % TPR (in-distribution is positive) and AUPR (out-of-distribution is positive), %.
"""

import argparse
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from data import SHARED, load, per_class
from scipy.special import logsumexp, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve
from tables import grid, ranked

from imprint import recipe
from imprint.kernels.rows import unit_rows

OURS, NEIGHBOURS, MAX_QUERIES = "known", 5, 1000
SHRINKAGE = 0.01
SVHN = 2  # CombiDigits merges MNIST, MNIST-M, SVHN and USPS, in this order
BACKBONES = ("deit_tiny", "tinynet", "mobilenet_v1_0.25_128")


class Problem(NamedTuple):
    name: str
    X: np.ndarray
    y: np.ndarray
    inside: np.ndarray
    outside: np.ndarray


def mahalanobis(X: np.ndarray, means: np.ndarray, residuals: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Negative squared distance to the nearest mean; the covariance gets a fixed share of the rows' mean variance."""
    covariance = residuals.T @ residuals / len(residuals)
    precision = np.linalg.inv(covariance + SHRINKAGE * float(X.var(axis=0).mean()) * np.eye(len(covariance)))

    def near(Q: np.ndarray) -> np.ndarray:
        cross = Q @ precision @ means.T
        sizes = np.sum(means @ precision * means, axis=1)
        return -(np.sum(Q @ precision * Q, axis=1)[:, None] - 2 * cross + sizes).min(axis=1)

    return near


def scorers(problem: Problem) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """Scores that are high inside the distribution."""
    X, y = unit_rows(problem.X).astype(np.float64), problem.y
    model = recipe("kernel", calibrate=True, random_state=0).fit(problem.X, y)
    linear = LogisticRegression(max_iter=60, C=10).fit(X, y)
    means = np.stack([X[y == c].mean(axis=0) for c in np.unique(y)])
    own = mahalanobis(X, means, X - means[np.searchsorted(np.unique(y), y)])
    background = mahalanobis(X, X.mean(axis=0, keepdims=True), X - X.mean(axis=0))

    def logits(Q: np.ndarray) -> np.ndarray:
        return Q @ linear.coef_.T + linear.intercept_

    def energy(Q: np.ndarray) -> np.ndarray:
        return logsumexp(logits(Q), axis=1)

    def neighbour(Q: np.ndarray) -> np.ndarray:
        return np.sort(Q @ X.T, axis=1)[:, -NEIGHBOURS]

    bank = energy(X)

    def guided(Q: np.ndarray) -> np.ndarray:
        return energy(Q) * np.sort(Q @ X.T * bank, axis=1)[:, -NEIGHBOURS:].mean(axis=1)

    origin = -np.linalg.pinv(linear.coef_) @ linear.intercept_
    _, vectors = np.linalg.eigh((X - origin).T @ (X - origin))
    residual = vectors[:, : X.shape[1] // 2]
    scale = logits(X).max(axis=1).mean() / np.linalg.norm((X - origin) @ residual, axis=1).mean()

    def vim(Q: np.ndarray) -> np.ndarray:
        return energy(Q) - scale * np.linalg.norm((Q - origin) @ residual, axis=1)

    return {
        OURS: model.known,
        "MSP": lambda Q: softmax(logits(Q), axis=1).max(axis=1),
        "energy": energy,
        "k-NN": neighbour,
        "Mahalanobis": own,
        "relative Mahalanobis": lambda Q: own(Q) - background(Q),
        "ViM": vim,
        "NNGuide": guided,
    }


def problems(rows: int) -> Iterator[Problem]:
    """CLINC150, then near (Tiny-ImageNet) and far (MNIST, SVHN) pictures for CIFAR-10."""
    rng = np.random.default_rng(0)
    pack = load("clinc150")
    taken = per_class(pack.y, rows, rng)
    inside = pack.Q[rng.permutation(len(pack.Q))[:MAX_QUERIES]]
    yield Problem("CLINC150", pack.X[taken], pack.y[taken], inside, pack.outside)
    with np.load(SHARED / "embeddings" / "subset" / "sources-combidigits.npz") as file:
        svhn = file["test"] == SVHN
    for backbone in BACKBONES:
        pack = load(f"{backbone}-cifar10")
        taken = per_class(pack.y, 5 * rows, rng)
        inside = pack.Q[rng.permutation(len(pack.Q))[:MAX_QUERIES]]
        others = {
            "Tiny-ImageNet (near)": load(f"{backbone}-tinyimagenet100").Q,
            "MNIST (far)": load(f"{backbone}-mnist").Q,
            "SVHN (far)": load(f"{backbone}-combidigits").Q[svhn],
        }
        for name, Q in others.items():
            outside = Q[rng.permutation(len(Q))[:MAX_QUERIES]]
            yield Problem(f"{backbone}: {name}", pack.X[taken], pack.y[taken], inside, outside)


def measured(inside: np.ndarray, outside: np.ndarray) -> tuple[float, float, float]:
    """AUROC, FPR at 95 % TPR and AUPR."""
    truth, scores = np.repeat([1, 0], [len(inside), len(outside)]), np.concatenate([inside, outside])
    false, true, _ = roc_curve(truth, scores)
    return roc_auc_score(truth, scores), false[np.argmax(true >= 0.95)], average_precision_score(1 - truth, -scores)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--rows", type=int, default=20, help="training rows per class of CLINC150; CIFAR-10: five times"
    )
    given = parser.parse_args()
    tables: list[dict[str, dict[str, float]]] = [{}, {}, {}]
    for problem in problems(given.rows):
        inside, outside = unit_rows(problem.inside), unit_rows(problem.outside)
        for name, score in scorers(problem).items():
            plain = (problem.inside, problem.outside) if name == OURS else (inside, outside)
            for table, value in zip(tables, measured(*(score(Q) for Q in plain))):
                table.setdefault(name, {})[problem.name] = 100 * value
    for title, table in zip(("AUROC", "FPR at 95 % TPR", "AUPR"), tables):
        print(f"{title}\n")
        for line in grid(table):
            print(line)
        print()
    for line in ranked(tables[0], OURS, "AUROC, %"):
        print(line)


if __name__ == "__main__":
    main()
