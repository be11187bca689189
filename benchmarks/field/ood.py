"""Out-of-distribution detection: out-of-scope queries, unseen classes of photographs, and images of other data sets.

    python benchmarks/field/ood.py [--rows 20] [--diagram FILE.svg]

All scores use the same embeddings of the same training rows. MSP, energy, ViM and NNGuide need logits, here those of
logistic regression. Prints AUROC, FPR at 95 % TPR (in-distribution is positive) and AUPR (out-of-distribution is
positive), in %.
Near and far are grouped as in OpenOOD: CIFAR-10 is known, Tiny-ImageNet near, MNIST and SVHN far; MNIST is known,
FashionMNIST near, CIFAR-10 far. "Photographs": 50 classes of Tiny-ImageNet are known, the other 50 are unknown.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from data import SHARED, load, per_class
from scipy.special import logsumexp, softmax
from sklearn.covariance import EmpiricalCovariance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve
from tables import grid, measured_once, parser_of, print_comparison

from imprint import recipe
from imprint.kernels.rows import unit_rows

OURS, NEIGHBOURS, MAX_QUERIES = "known", 5, 1000
SHRINKAGE = 0.01
SVHN = 2  # CombiDigits merges MNIST, MNIST-M, SVHN and USPS, in this order
BACKBONES = {
    "DeiT": "deit_tiny",
    "TinyNet": "tinynet",
    "MobileNet": "mobilenet_v1_0.25_128",
}
UNKNOWN = {
    "cifar10": {
        "Tiny-ImageNet, near": "tinyimagenet100",
        "MNIST, far": "mnist",
        "SVHN, far": "combidigits",
    },
    "mnist": {"FashionMNIST, near": "fashionmnist", "CIFAR-10, far": "cifar10"},
}


class Problem(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    inside: np.ndarray
    outside: np.ndarray


def mahalanobis(
    X: np.ndarray, means: np.ndarray, residuals: np.ndarray, shrinkage: float
) -> Callable[[np.ndarray], np.ndarray]:
    """Negative squared Mahalanobis distance to the nearest class mean.

    The covariance is shrunk towards a multiple of the identity. Without shrinkage the precision is the estimate of the
    paper and of OpenOOD: the pseudo-inverse of the empirical covariance.
    """
    covariance = residuals.T @ residuals / len(residuals)
    covariance += shrinkage * float(X.var(axis=0).mean()) * np.eye(len(covariance))
    precision = (
        np.linalg.inv(covariance)
        if shrinkage
        else EmpiricalCovariance().fit(residuals).precision_
    )

    def near(Q: np.ndarray) -> np.ndarray:
        cross = Q @ precision @ means.T
        sizes = np.sum(means @ precision * means, axis=1)
        return -(np.sum(Q @ precision * Q, axis=1)[:, None] - 2 * cross + sizes).min(
            axis=1
        )

    return near


def scorers(problem: Problem) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """OOD scores by name; high values mean in-distribution."""
    X, y = unit_rows(problem.X).astype(np.float64), problem.y
    model = recipe("kernel", calibrate=True, random_state=0).fit(problem.X, y)
    linear = LogisticRegression(max_iter=60, C=10).fit(X, y)
    means = np.stack([X[y == c].mean(axis=0) for c in np.unique(y)])
    centre, classes = X.mean(axis=0, keepdims=True), np.unique(y)
    distance = {
        s: mahalanobis(X, means, X - means[np.searchsorted(classes, y)], s)
        for s in (0.0, SHRINKAGE)
    }
    background = {s: mahalanobis(X, centre, X - centre, s) for s in (0.0, SHRINKAGE)}

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
    scale = (
        logits(X).max(axis=1).mean()
        / np.linalg.norm((X - origin) @ residual, axis=1).mean()
    )

    def vim(Q: np.ndarray) -> np.ndarray:
        return energy(Q) - scale * np.linalg.norm((Q - origin) @ residual, axis=1)

    return {
        OURS: model.known,
        "MSP": lambda Q: softmax(logits(Q), axis=1).max(axis=1),
        "energy": energy,
        "k-NN": neighbour,
        "Mahalanobis": distance[SHRINKAGE],
        "relative Mahalanobis": lambda Q: distance[0.0](Q) - background[0.0](Q),
        "relative Mahalanobis, shrunk": lambda Q: (
            distance[SHRINKAGE](Q) - background[SHRINKAGE](Q)
        ),
        "ViM": vim,
        "NNGuide": guided,
    }


def names() -> list[str]:
    """The names of all instances."""
    images = (
        "photographs",
        *(f"{known}: {other}" for known, others in UNKNOWN.items() for other in others),
    )
    return [
        "CLINC150",
        *(f"{kind} @ {network}" for kind in images for network in BACKBONES),
    ]


def problem_of(name: str, rows: int) -> Problem:
    """Training rows, held-out rows of the known classes, and out-of-distribution rows."""
    rng = np.random.default_rng(0)

    def some(X: np.ndarray) -> np.ndarray:
        return X[rng.permutation(len(X))[:MAX_QUERIES]]

    if name == "CLINC150":
        pack = load("clinc150")
        taken = per_class(pack.y, rows, rng)
        return Problem(pack.X[taken], pack.y[taken], some(pack.Q), pack.outside)
    kind, network = name.split(" @ ")
    backbone = BACKBONES[network]
    if kind == "photographs":
        pack = load(f"{backbone}-tinyimagenet100")
        known = rng.permutation(np.unique(pack.y))[:50]
        taken = np.flatnonzero(np.isin(pack.y, known))
        taken = taken[per_class(pack.y[taken], 3 * rows, rng)]
        inside, outside = (
            some(pack.Q[np.isin(pack.t, known) == side]) for side in (True, False)
        )
        return Problem(pack.X[taken], pack.y[taken], inside, outside)
    data, other = kind.split(": ")
    pack, unknown = (
        load(f"{backbone}-{data}"),
        load(f"{backbone}-{UNKNOWN[data][other]}").Q,
    )
    if other.startswith("SVHN"):
        with np.load(
            SHARED / "embeddings" / "subset" / "sources-combidigits.npz"
        ) as file:
            unknown = unknown[file["test"] == SVHN]
    taken = per_class(pack.y, 5 * rows, rng)
    return Problem(pack.X[taken], pack.y[taken], some(pack.Q), some(unknown))


def measured(inside: np.ndarray, outside: np.ndarray) -> tuple[float, float, float]:
    """AUROC, FPR at 95 % TPR and AUPR."""
    truth, scores = (
        np.repeat([1, 0], [len(inside), len(outside)]),
        np.concatenate([inside, outside]),
    )
    false, true, _ = roc_curve(truth, scores)
    return (
        roc_auc_score(truth, scores),
        false[np.argmax(true >= 0.95)],
        average_precision_score(1 - truth, -scores),
    )


def measure(name: str, rows: int) -> dict[str, list[float]]:
    """By score: AUROC, FPR at 95 % TPR and AUPR, in %."""
    problem, figures = problem_of(name, rows), {}
    units = unit_rows(problem.inside), unit_rows(problem.outside)
    for scorer, score in scorers(problem).items():
        queries = (problem.inside, problem.outside) if scorer == OURS else units
        figures[scorer] = [
            100 * float(value) for value in measured(*(score(Q) for Q in queries))
        ]
    return figures


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument(
        "--rows",
        type=int,
        default=20,
        help="training rows per class of CLINC150; images have more",
    )
    options = parser.parse_args()
    figures = {
        n: measured_once(f"ood-{options.rows}", n, lambda n=n: measure(n, options.rows))
        for n in names()
    }
    for i, title in enumerate(("AUROC", "FPR at 95 % TPR", "AUPR")):
        table = {
            scorer: {n: figures[n][scorer][i] for n in figures}
            for scorer in figures["CLINC150"]
        }
        print(f"{title}\n\n" + "\n".join(grid(table, highest=i != 1)) + "\n")
        if not i:
            print_comparison(
                table,
                OURS,
                "AUROC, %",
                options.diagram,
                "Out-of-distribution detection, AUROC",
            )


if __name__ == "__main__":
    main()
