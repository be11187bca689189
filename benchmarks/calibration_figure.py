"""The figure of docs/trust.md: reliability diagrams, and AUROC for unknown classes.

    python benchmarks/calibration_figure.py shared/embeddings/subset docs/images/trust.svg [--draws 1]

Fifteen packs, seven of ten classes, 100 rows each; see benchmarks/calibration.py.
"""

import argparse
from pathlib import Path

import numpy as np
from calibration import FIRST_DRAW, FOUR, METHODS, OTHERS, PACKS, auroc, task

from imprint import recipe

ROWS, BINS = 100, 10
COLOURS = {"before": "#9aa5b1", "calibrated": "#1f6f8b"}


def answers(
    folder: Path, draws: int, method: str, calibrate: bool
) -> tuple[np.ndarray, np.ndarray, float]:
    """Probabilities of the predicted classes and whether these are right, over all packs; mean AUROC of twelve."""
    largest, right, aurocs = [], [], []
    for pack in PACKS:
        for draw in range(FIRST_DRAW, FIRST_DRAW + draws):
            data = task(folder, pack, ROWS, draw)
            model = recipe(
                "kernel", **METHODS[method], calibrate=calibrate, random_state=0
            ).fit(data.X, data.y)
            P = model.predict_proba(data.Q)
            largest.append(P.max(axis=1))
            right.append(model.classes_[P.argmax(axis=1)] == data.truth)
            if calibrate and pack.startswith(FOUR):
                aurocs.append(
                    100 * auroc(model.known(data.Q), model.known(data.unknown))
                )
    return (
        np.concatenate(largest),
        np.concatenate(right),
        float(np.mean(aurocs)) if aurocs else float("nan"),
    )


def main() -> None:
    """Draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--draws", type=int, default=1)
    given = parser.parse_args()
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.rcParams.update(
        {
            "svg.hashsalt": "imprint",
            "svg.fonttype": "none",
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
    )
    figure, axes = plt.subplots(
        1, 3, figsize=(10, 3.2), width_ratios=(1, 1, 1.2), layout="constrained"
    )
    bars = {}
    for axis, method in zip(axes, ("kernel", "max")):
        axis.plot([0, 1], [0, 1], color="#d0d5da", lw=1)
        for name, calibrate in (("before", False), ("calibrated", True)):
            largest, right, told = answers(given.folder, given.draws, method, calibrate)
            place = np.minimum((largest * BINS).astype(int), BINS - 1)
            shown = [b for b in range(BINS) if (place == b).sum() >= 50]
            points = [
                (largest[place == b].mean(), right[place == b].mean()) for b in shown
            ]
            axis.plot(*zip(*points), "o-", ms=4, color=COLOURS[name], label=name)
            bars[f"known() of {method}"] = told
        axis.set(title=f"{method}", xlabel="predicted probability", ylabel="accuracy")
        axis.legend(frameon=False)
    for name, way in OTHERS.items():
        found = []
        for pack in [pack for pack in PACKS if pack.startswith(FOUR)]:
            for draw in range(FIRST_DRAW, FIRST_DRAW + given.draws):
                data = task(given.folder, pack, ROWS, draw)
                near = way(data)
                found.append(100 * auroc(near(data.Q), near(data.unknown)))
        bars[name] = float(np.mean(found))
    names = list(bars)[::-1]
    axes[2].barh(
        names,
        [bars[n] for n in names],
        color=[COLOURS["calibrated" if "known" in n else "before"] for n in names],
    )
    for i, name in enumerate(names):
        axes[2].text(bars[name] + 0.3, i, f"{bars[name]:.1f}", va="center")
    axes[2].set(xlim=(50, 95), title="unknown classes, AUROC")
    figure.savefig(given.target, metadata={"Date": None}, facecolor="white")


if __name__ == "__main__":
    main()
