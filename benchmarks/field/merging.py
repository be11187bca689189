"""Sites with skewed classes: is the merged model that of one fit?

    python benchmarks/field/merging.py [--rows 150] [--sites 10] [--draws 3]

The rows of each class are spread over the sites with shares from a Dirichlet distribution, as AFL (CVPR 2025) does:
0.01 gives each class to one site, 1 spreads it unevenly. Each site fits a model without calibration, so that no rows
are stored, and all are merged. The table holds the test accuracy of one fit, and how it differs after merging: the mean
and the worst of all packs and draws, in points.
"""

import argparse
import warnings

import numpy as np
from data import load, per_class

from imprint import ImprintClassifier

PACKS = ("deit_tiny-cifar10", "tinynet-mnist", "mobilenet_v1_0.5_160-fashionmnist")
GENERATORS = ("kmeans", "mean", "all", "least_squares", "kmeans(k=5)", "kmeans(k=20)", "kmeans(k=50)", "kmedoids(k=20)")  # fmt: skip
SKEWS = (0.01, 0.1, 1.0)


def sites_of(
    y: np.ndarray, sites: int, skew: float, rng: np.random.Generator
) -> np.ndarray:
    """The site of every row."""
    site = np.empty(len(y), dtype=int)
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        site[rows] = rng.choice(sites, size=len(rows), p=rng.dirichlet([skew] * sites))
    return site


def fitted(generator: str, X: np.ndarray, y: np.ndarray) -> ImprintClassifier:
    """A model without stored rows."""
    aggregator = "max" if generator == "least_squares" else "kernel"
    return ImprintClassifier(generator=generator, aggregator=aggregator).fit(X, y)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=150)
    parser.add_argument("--sites", type=int, default=10)
    parser.add_argument("--draws", type=int, default=3)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    accuracy: dict[str, list[float]] = {}
    changes: dict[tuple[str, float], list[float]] = {}
    for pack in PACKS:
        data = load(pack)
        for draw in range(given.draws):
            rng = np.random.default_rng(draw)
            rows = per_class(data.y, given.rows, rng)
            X, y = data.X[rows], data.y[rows]
            for generator in GENERATORS:
                one = 100 * fitted(generator, X, y).score(data.Q, data.t)
                accuracy.setdefault(generator, []).append(one)
                for skew in SKEWS:
                    site = sites_of(y, given.sites, skew, np.random.default_rng(draw))
                    parts = [np.flatnonzero(site == i) for i in np.unique(site)]
                    first, *others = [
                        fitted(generator, X[part], y[part]) for part in parts
                    ]
                    merged = first.merge(*others) if others else first
                    change = 100 * merged.score(data.Q, data.t) - one
                    changes.setdefault((generator, skew), []).append(change)
    print(
        "| generator | one fit | "
        + " | ".join(f"Dirichlet {s:g}" for s in SKEWS)
        + " |"
    )
    print("|---|---:|" + "---:|" * len(SKEWS))
    for generator in GENERATORS:
        cells = [changes[generator, skew] for skew in SKEWS]
        shown = " | ".join(f"{np.mean(c):+.2f} ({min(c):+.2f})" for c in cells)
        print(f"| `{generator}` | {np.mean(accuracy[generator]):.1f} | {shown} |")


if __name__ == "__main__":
    main()
