"""Are gamma = 1, noise = 0.1, spread = 0.2 good defaults? Chosen on packs of two backbones, confirmed on others.

    python benchmarks/kernel_defaults.py PACKS

Accuracies in %, means over packs, in five regimes: 5 to 600 rows per class, 20 or 100 proxies.
"""

import itertools
import sys
from pathlib import Path

import numpy as np
from kernel_data import Clusters, Instance, accuracy, clusters, read, ten_class_packs
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist

CHOOSE = ("tinynet", "mobilenet_v1_0.5_160")
GAMMAS, NOISES, SPREADS = (
    (0.5, 1.0, 2.0, 4.0),
    (0.01, 0.03, 0.1, 0.3),
    (0.0, 0.1, 0.2, 0.4),
)
SETTINGS = list(itertools.product(GAMMAS, NOISES, SPREADS))
DEFAULT = SETTINGS.index((1.0, 0.1, 0.2))
REGIMES = ((5, 20), (20, 20), (100, 20), (600, 20), (600, 100))  # rows per class, k


def distances(instance: Instance, proxies: Clusters) -> tuple[np.ndarray, np.ndarray]:
    """Squared distances divided by the scale: between proxies, and from test rows to proxies."""
    W = proxies.weights.astype(np.float64)
    among = cdist(W, W, "sqeuclidean") / proxies.scale
    about = W.mean(axis=0)
    U, V = instance.Q - about, W - about
    return among, (
        (U * U).sum(1)[:, None] + (V * V).sum(1) - 2 * U @ V.T
    ) / proxies.scale


def grid(instance: Instance, k: int) -> list[float]:
    """Accuracy of every setting."""
    proxies = clusters(instance, k)
    among, across = distances(instance, proxies)
    Y, figures = np.eye(proxies.labels.max() + 1)[proxies.labels], []
    for gamma in GAMMAS:
        K, q = np.exp(-gamma * among), np.exp(-gamma * across)
        for noise, spread in itertools.product(NOISES, SPREADS):
            M = K + np.diag(
                noise / proxies.mass + spread * proxies.spread / proxies.scale
            )
            figures.append(accuracy(q @ cho_solve(cho_factor(M), Y), instance.t))
    return figures


def show(title: str, accuracies: np.ndarray) -> None:
    """Print the best settings by the mean over packs and regimes.  # (packs, regimes, settings)"""
    means = accuracies.mean(axis=(0, 1))
    print(f"\n{title}: default {means[DEFAULT]:.2f}")
    for i in np.argsort(-means)[:8]:
        regimes = " ".join(f"{v:.2f}" for v in accuracies[:, :, i].mean(axis=0))
        print(
            f"  gamma {SETTINGS[i][0]} noise {SETTINGS[i][1]} spread {SETTINGS[i][2]}: {means[i]:.2f} ({regimes})"
        )
    print(
        "  default by regime:",
        " ".join(f"{v:.2f}" for v in accuracies[:, :, DEFAULT].mean(axis=0)),
        flush=True,
    )


def main(packs: Path) -> None:
    chosen, others = [], []
    for path in ten_class_packs(packs):
        instance = read(path)
        figures = [grid(instance.shots(n), k) for n, k in REGIMES]
        (chosen if path.stem.rsplit("-", 1)[0] in CHOOSE else others).append(figures)
        print(path.stem, file=sys.stderr, flush=True)
    A, B = np.array(chosen), np.array(others)
    show("chosen on " + ", ".join(CHOOSE), A)
    show("the others", B)
    best = int(A.mean(axis=(0, 1)).argmax())
    gain = (B[:, :, best] - B[:, :, DEFAULT]).mean(axis=0)
    print(
        f"\n{SETTINGS[best]} on the others, gain by regime {REGIMES}:",
        " ".join(f"{v:+.2f}" for v in gain),
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
