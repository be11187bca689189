"""Membership inference: does a model reveal whether an input was among its training inputs?

    python benchmarks/field/membership.py [--rows 50] [--models 64] [--diagram docs/images/membership.svg]

The attack by likelihood ratios (LiRA, Carlini et al., 2022): each of many models learns a random half of the rows.
For each row, a normal distribution is fitted to its score in the other models with it, and one to its score in those
without it. The ratio of the two densities at its score in the attacked model is the evidence of membership. Scores:

- answers: the logit of the probability of the row's class, which anybody who may ask the model learns;
- proxies: minus the logarithm of the distance to the nearest proxy of the class, which the holder of a file computes.

The tables hold the area under the ROC curve (50 % is guessing) and the share of training rows that are found while 1 %
of the other rows are taken for training rows (1 % is guessing), over all rows and models, as means of the packs.
"""

import argparse
from pathlib import Path

import numpy as np
from data import load, per_class

from imprint import ImprintClassifier

PACKS = ("deit_tiny-cifar10", "tinynet-mnist", "mobilenet_v1_0.5_160-fashionmnist")
SETTINGS = [
    ("mean", False), ("mean", True),
    ("kmeans(k=2)", False), ("kmeans(k=5)", False), ("kmeans(k=10)", False),
    ("kmeans(k=20)", False), ("kmeans(k=20)", True), ("all", False), ("all", True),
]  # fmt: skip
MAX_FALSE_POSITIVES = 0.01
MIN_DISTANCE = 1e-4  # of rows at unit length; a proxy that is nearer is the row


def scores_of(
    model: ImprintClassifier, X: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The two scores of every row.  # (n,), (n,)"""
    P = model.predict_proba(X).astype(np.float64)
    true = np.clip(
        P[np.arange(len(y)), np.searchsorted(model.classes_, y)], 1e-12, 1 - 1e-12
    )
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    proxies = model.proxies_
    nearest = np.empty(len(y))
    for c, label in enumerate(model.classes_.tolist()):
        rows = np.flatnonzero(y == label)
        W = proxies.weights[proxies.labels == c]
        squares = ((unit[rows, None] - W) ** 2).sum(axis=2)
        nearest[rows] = np.sqrt(squares.min(axis=1))
    return np.log(true / (1 - true)), -np.log(np.maximum(nearest, MIN_DISTANCE))


def evidence(scores: np.ndarray, member: np.ndarray) -> np.ndarray:
    """The log-likelihood ratio of every row in every model, each from the other models.  # (models, n)"""
    ratios = np.zeros(scores.shape)
    for sign, present in ((1, member), (-1, ~member)):
        count = present.sum(axis=0) - present
        total = np.where(present, scores, 0)
        mean = (total.sum(axis=0) - total) / count
        square = np.where(present, scores**2, 0)
        variance = (square.sum(axis=0) - square) / count - mean**2
        # rows whose score hardly varies get the variance of all, as with few models in the original
        variance = np.maximum(variance, 0) + 1e-3 * scores.var()
        ratios += sign * (
            -((scores - mean) ** 2) / (2 * variance) - np.log(variance) / 2
        )
    return ratios


def curve(ratios: np.ndarray, member: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """False and true positive rates at every threshold; ties are one threshold."""
    order = np.argsort(-ratios.ravel(), kind="stable")
    ranked = ratios.ravel()[order]
    hits = member.ravel()[order]
    ends = np.append(np.flatnonzero(np.diff(ranked)), len(ranked) - 1)
    true = np.cumsum(hits)[ends] / hits.sum()
    false = np.cumsum(~hits)[ends] / (~hits).sum()
    return np.append(0, false), np.append(0, true)


def attack(
    pack: str, generator: str, calibrate: bool, rows: int, models: int
) -> list[tuple]:
    """The ROC curves of both scores, and the test accuracy of the models."""
    data = load(pack)
    rng = np.random.default_rng(0)
    chosen = per_class(data.y, 2 * rows, rng)
    X, y = data.X[chosen], data.y[chosen]
    member = np.zeros((models, len(y)), dtype=bool)
    for one in member:  # half of each class
        for label in np.unique(y):
            of_class = np.flatnonzero(y == label)
            one[rng.permutation(of_class)[: len(of_class) // 2]] = True
    scores = np.empty((2, models, len(y)))
    accuracy = []
    for i, one in enumerate(member):
        model = ImprintClassifier(generator=generator, calibrate=calibrate)
        model.fit(X[one], y[one])
        scores[:, i] = scores_of(model, X, y)
        accuracy.append(model.score(data.Q, data.t) if i < 8 else np.nan)
    return [
        (*curve(evidence(s, member), member), 100 * np.nanmean(accuracy))
        for s in scores
    ]


def main() -> None:
    """Print the table, and draw the curves."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=50)
    parser.add_argument("--models", type=int, default=64)
    parser.add_argument("--diagram", type=Path)
    given = parser.parse_args()
    curves: dict[tuple[str, bool], list] = {}
    print(
        "| proxies | calibrated | accuracy | answers: AUC | found at 1 % | proxies: AUC | found at 1 % |"
    )
    print("|---|---|---:|---:|---:|---:|---:|")
    for setting in SETTINGS:
        results = [attack(pack, *setting, given.rows, given.models) for pack in PACKS]
        curves[setting] = results
        cells = []
        for s in (0, 1):
            areas = [100 * np.trapezoid(r[s][1], r[s][0]) for r in results]
            found = [
                100 * np.interp(MAX_FALSE_POSITIVES, r[s][0], r[s][1]) for r in results
            ]
            cells += [f"{np.mean(areas):.1f}", f"{np.mean(found):.1f}"]
        accuracy = np.mean([r[0][2] for r in results])
        name, calibrated = f"`{setting[0]}`", "yes" if setting[1] else "no"
        print(
            f"| {name} | {calibrated} | {accuracy:.1f} | " + " | ".join(cells) + " |",
            flush=True,
        )
    if given.diagram is not None:
        draw(curves, given.diagram)


def draw(curves: dict, target: Path) -> None:
    """The mean ROC curves of the models that are not calibrated, on logarithmic axes."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.rcParams.update(
        {"svg.hashsalt": "imprint", "svg.fonttype": "none", "font.size": 9}
    )
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.3), sharey=True)
    grid = np.logspace(-3, 0, 61)
    shown = [setting for setting in curves if not setting[1]]
    colours = mpl.colormaps["viridis"](np.linspace(0, 0.9, len(shown)))
    for s, (axis, title) in enumerate(
        zip(axes, ("from answers", "from the proxies in a file"))
    ):
        for setting, colour in zip(shown, colours):
            rates = [np.interp(grid, r[s][0], r[s][1]) for r in curves[setting]]
            axis.loglog(
                grid,
                np.maximum(np.mean(rates, axis=0), 1e-4),
                color=colour,
                label=setting[0],
            )
        axis.loglog(grid, grid, color="#9aa5b1", linestyle=":", label="guessing")
        axis.set(
            title=title, xlabel="false positive rate", xlim=(1e-3, 1), ylim=(1e-3, 1.05)
        )
    axes[0].set_ylabel("training rows found")
    axes[1].legend(frameon=False, fontsize=7)
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    main()
