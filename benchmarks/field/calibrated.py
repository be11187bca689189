"""Expected accuracy and `known` on image sets: how far off they are, on new images of the published test split and of a
random one.

    python benchmarks/field/calibrated.py [--rows 20] [--draws 3]

Uses the sets and the embeddings of `images.py`. The *published* splits keep the test images of a set; in the *random*
splits training and test images are mixed first, so that new images are like the training images, as the calibration
assumes. Prints Markdown: expected minus measured accuracy, and the share of test rows with `known` below 0.05.
"""

import numpy as np
from data import SHARED
from images import Task, embedded
from tables import measured_once, parser_of

from imprint import ImprintClassifier

THRESHOLD = 0.05
Figures = dict[str, list[float]]


def mixed(task: Task, rng: np.random.Generator) -> Task:
    """A random split with as many test rows of each class."""
    X = np.concatenate([task.X, task.Q])
    y = np.concatenate([task.y, task.t])
    test = np.zeros(len(y), dtype=bool)
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        test[rows[: (task.t == label).sum()]] = True
    return Task(X[~test], y[~test], X[test], y[test], task.widths)


def figures(task: Task, rows: int, draws: int) -> Figures:
    """For each split and version: excess of the expected accuracy and refused rows of every draw, in %."""
    results: Figures = {}
    for draw in range(draws):
        rng = np.random.default_rng(draw)
        for split, data in {"published": task, "random": mixed(task, rng)}.items():
            chosen = []
            for label in np.unique(data.y):
                chosen += rng.permutation(np.flatnonzero(data.y == label))[
                    :rows
                ].tolist()
            for version, widths in {
                "last layer": task.widths[:1],
                "blocks": task.widths,
            }.items():
                width = sum(widths)
                X, Q = data.X[chosen][:, :width], data.Q[:, :width]
                blocks = widths if len(widths) > 1 else None
                model = ImprintClassifier(blocks=blocks, calibrate=True)
                model.fit(X, data.y[chosen])
                excess = model.expected_accuracy_ - model.score(Q, data.t)
                refused = (model.known(Q) < THRESHOLD).mean()
                for name, value in (("excess", excess), ("refused", refused)):
                    key = f"{name}, {split}, {version}"
                    results.setdefault(key, []).append(100 * float(value))
    return results


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[20])
    parser.add_argument("--draws", type=int, default=3)
    args = parser.parse_args()
    paths = sorted((SHARED / "data" / "pictures").glob("*.npz"))
    for rows in args.rows:
        by_set: dict[str, Figures] = {}
        for path in paths:
            key = f"{path.stem} @ {rows} x {args.draws}"
            by_set[path.stem] = measured_once(
                "calibrated",
                key,
                lambda p=path, r=rows: figures(embedded(p), r, args.draws),
            )
        print_table(by_set, rows)


def print_table(by_set: dict[str, Figures], rows: int) -> None:
    """The mean, the mean of absolute values and the range of the sets, each set by the mean of its draws."""
    print(f"\n{len(by_set)} sets, {rows} rows per class, %\n")
    print(
        "| | mean | mean absolute value | least | largest |\n|---|---:|---:|---:|---:|"
    )
    for key in next(iter(by_set.values())):
        values = np.array([np.mean(results[key]) for results in by_set.values()])
        least, largest = (list(by_set)[i] for i in (values.argmin(), values.argmax()))
        print(
            f"| {key} | {values.mean():.1f} | {np.abs(values).mean():.1f} |"
            f" {values.min():.1f} ({least}) | {values.max():.1f} ({largest}) |"
        )


if __name__ == "__main__":
    main()
