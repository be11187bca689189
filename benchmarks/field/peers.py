"""Class-incremental heads on frozen embeddings, each re-implemented in a few lines from its paper.

Every function fits unit rows and returns the scores of the queries and how many numbers the head stores. All of them
depend only on sums per class, so learning class by class and learning all classes at once give the same head.
"""

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.covariance import ledoit_wolf

from imprint import ImprintClassifier
from imprint.kernels.rows import unit_rows

Scorer = Callable[[np.ndarray], np.ndarray]
WIDTHS = {"KLDA": 1_000, "RanPAC": 1_000}  # random features
PUBLISHED_WIDTHS = {"KLDA": 5_000, "RanPAC": 10_000}
CENTRES = 500
RIDGES = tuple(10.0**power for power in range(-2, 5))


def means_of(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.stack([X[y == c].mean(axis=0) for c in range(int(y.max()) + 1)])


def linear(means: np.ndarray, W: np.ndarray) -> Scorer:
    """Linear discriminant scores of Gaussian classes with one covariance; W: means times the inverse covariance."""
    return lambda Q: Q @ W.T - 0.5 * np.sum(W * means, axis=1)


def ncm(X: np.ndarray, y: np.ndarray) -> tuple[Scorer, int]:
    """Nearest class mean."""
    means = means_of(X, y)
    return linear(means, means), means.size


def slda(X: np.ndarray, y: np.ndarray, shrinkage: float = 1e-4) -> tuple[Scorer, int]:
    """Deep SLDA (Hayes and Kanan, 2020): class means and one covariance, shrunk towards the identity."""
    means, (n, d) = means_of(X, y), X.shape
    R = X - means[y]
    if n < d:  # Woodbury's identity: a system with n instead of d unknowns
        K = R @ R.T
        K.flat[:: n + 1] += n * shrinkage / (1 - shrinkage)
        W = (
            means
            - (means @ R.T) @ cho_solve(cho_factor(K, lower=True, overwrite_a=True), R)
        ) / shrinkage
    else:
        covariance = (1 - shrinkage) / n * (R.T @ R) + shrinkage * np.eye(d)
        W = np.linalg.solve(covariance, means.T).T
    return linear(means, W), means.size + d * d


def gda(X: np.ndarray, y: np.ndarray) -> tuple[Scorer, int]:
    """Gaussian discriminant analysis: one covariance with Ledoit-Wolf shrinkage."""
    means = means_of(X, y)
    covariance = ledoit_wolf(X - means[y], assume_centered=True)[0]
    return linear(
        means, np.linalg.solve(covariance, means.T).T
    ), means.size + covariance.size


def fecam(X: np.ndarray, y: np.ndarray) -> tuple[Scorer, int]:
    """FeCAM (Goswami and others, 2023): Mahalanobis distance with a shrunk, normalised covariance per class."""
    means = means_of(X, y)
    precisions = []
    for c, mean in enumerate(means):
        covariance = np.cov((X[y == c] - mean).T, bias=True)
        diagonal = np.trace(covariance) / len(covariance)
        off = (covariance.sum() - np.trace(covariance)) / (
            covariance.size - len(covariance)
        )
        covariance = (
            covariance
            + diagonal * np.eye(len(covariance))
            + off * (1 - np.eye(len(covariance)))
        )
        scale = np.sqrt(np.diag(covariance))
        precisions.append(np.linalg.inv(covariance / np.outer(scale, scale)))

    def score(Q: np.ndarray) -> np.ndarray:
        gaps = [unit_rows(Q) - mean / np.linalg.norm(mean) for mean in means]
        return -np.stack(
            [np.sum(gap @ P * gap, axis=1) for gap, P in zip(gaps, precisions)], axis=1
        )

    return score, means.size + len(means) * X.shape[1] ** 2


def fourier(X: np.ndarray, width: int, seed: int) -> Scorer:
    """Random Fourier features of the Gaussian kernel that `kernel` uses (twice the variance of the rows)."""
    rng = np.random.default_rng(seed)
    scale = 2 * float(np.sum(X.var(axis=0)))
    W = rng.normal(size=(X.shape[1], width)) * np.sqrt(2 / scale)
    shift = rng.uniform(0, 2 * np.pi, width)
    return lambda Q: np.sqrt(2 / width) * np.cos(Q @ W + shift)


def klda(X: np.ndarray, y: np.ndarray, seed: int = 0) -> tuple[Scorer, int]:
    """KLDA (2025): linear discriminant analysis of random Fourier features."""
    features = fourier(X, WIDTHS["KLDA"], seed)
    score, size = slda(features(X), y, 1e-3)
    return lambda Q: score(features(Q)), size


def klda_ensemble(X: np.ndarray, y: np.ndarray) -> tuple[Scorer, int]:
    """The mean probability of five KLDA heads."""
    heads = [klda(X, y, seed) for seed in range(5)]

    def score(Q: np.ndarray) -> np.ndarray:
        total = np.zeros((len(Q), int(y.max()) + 1))
        for head, _ in heads:
            S = head(Q)
            E = np.exp(S - S.max(axis=1, keepdims=True))
            total += E / E.sum(axis=1, keepdims=True)
        return total

    return score, sum(size for _, size in heads)


def ridge(H: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Ridge regression on one-hot labels; the regularisation is chosen on a fifth of the rows.  # (width, classes)"""
    Y, held = np.eye(int(y.max()) + 1)[y], rng.permutation(len(H)) < len(H) // 5

    narrow = H.shape[1] <= len(H)
    G = H.T @ H if narrow else H @ H.T

    def solved(rows: np.ndarray, strength: float) -> np.ndarray:
        if narrow:
            M, B = G - H[~rows].T @ H[~rows], H[rows].T @ Y[rows]
        else:
            M, B = G[np.ix_(rows, rows)], Y[rows]
        M.flat[:: len(M) + 1] += strength
        solution = cho_solve(cho_factor(M, lower=True, overwrite_a=True), B)
        return solution if narrow else H[rows].T @ solution

    def right(strength: float) -> float:
        return float(
            np.mean((H[held] @ solved(~held, strength)).argmax(axis=1) == y[held])
        )

    return solved(np.ones(len(H), dtype=bool), max(RIDGES[::2], key=right))


def ranpac(X: np.ndarray, y: np.ndarray) -> tuple[Scorer, int]:
    """RanPAC's head (McDonnell and others, 2023): ridge regression on rectified random projections."""
    rng = np.random.default_rng(0)
    R = rng.normal(size=(X.shape[1], WIDTHS["RanPAC"]))
    W = ridge(np.maximum(X @ R, 0), y, rng)
    return lambda Q: np.maximum(Q @ R, 0) @ W, len(W) ** 2 + W.size + R.size


def falkon(X: np.ndarray, y: np.ndarray) -> tuple[Scorer, int]:
    """FALKON's estimator (Rudi and others, 2017): Gaussian kernel ridge on random Nystroem centres, solved directly."""
    rng = np.random.default_rng(0)
    centres = X[rng.permutation(len(X))[:CENTRES]]
    scale = 2 * float(np.sum(X.var(axis=0)))

    def kernel(A: np.ndarray) -> np.ndarray:
        return np.exp(
            -(np.sum(A**2, 1)[:, None] + np.sum(centres**2, 1) - 2 * A @ centres.T)
            / scale
        )

    values, vectors = np.linalg.eigh(kernel(centres))
    large = values > values[-1] * 1e-10
    whiten = vectors[:, large] / np.sqrt(values[large])
    W = whiten @ ridge(kernel(X) @ whiten, y, rng)
    return lambda Q: kernel(Q) @ W, centres.size + W.size + len(centres) ** 2


def kernel(generator: str) -> Callable[[np.ndarray, np.ndarray], tuple[Scorer, int]]:
    """`kernel` with a budget of proxies."""

    def fit(X: np.ndarray, y: np.ndarray) -> tuple[Scorer, int]:
        model = ImprintClassifier(generator=generator, random_state=0).fit(X, y)
        return model.predict_proba, model.proxies_.weights.size

    return fit


HEADS: dict[str, Callable[[np.ndarray, np.ndarray], tuple[Scorer, int]]] = {
    "NCM": ncm,
    "SLDA": slda,
    "GDA": gda,
    "FeCAM": fecam,
    "KLDA": klda,
    "KLDA, five": klda_ensemble,
    "RanPAC's head": ranpac,
    "ridge by FALKON": falkon,
    "kernel, k = 20": kernel("kmeans(k=20)"),
    "kernel, k = 100": kernel("kmeans(k=100)"),
    "kernel, all rows": kernel("all"),
}
