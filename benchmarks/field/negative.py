"""Ideas that did not help: several views per image, pseudo-labels, leave-one-out with two rows per class.

    python benchmarks/field/negative.py [views] [pseudo-labels] [leave-one-out]

Views: `efficientnet_lite0` embeds each training image of CIFAR-10 six times (original, mirrored, and four crops of
7/8 of its sides); the views are additional rows, or their mean is the row. Pseudo-labels: a model of 5 rows per class
predicts a pool, and the same number of most probable rows of every class is added to the training data. In the pool,
all classes are equally frequent, or the rarest has a twentieth of the rows of the most frequent class.
Leave-one-out: each row is predicted by a model fitted without it.
"""

import sys
from collections.abc import Callable, Iterator

import numpy as np
from data import IMAGES, SHARED, load, per_class
from tables import measured_once

from imprint import Imprinter, recipe
from imprint.kernels.rows import unit_rows

DRAWS, ROWS_OF_VIEWS, POOL = 10, 20, 200


def accuracy(X: np.ndarray, y: np.ndarray, Q: np.ndarray, t: np.ndarray) -> float:
    return 100 * float(
        np.mean(recipe("kernel", random_state=0).fit(X, y).predict(Q) == t)
    )


def views_of(pixels: np.ndarray) -> list[np.ndarray]:
    """The image, its mirror image and four crops."""
    side, cut = pixels.shape[1], pixels.shape[1] // 8
    crops = [
        pixels[:, i : i + side - cut, j : j + side - cut]
        for i in (0, cut)
        for j in (0, cut)
    ]
    return [pixels, pixels[:, :, ::-1], *crops]


def views() -> Iterator[str]:
    """One and twenty images per class: only the image, its views as rows, and the mean of the views."""
    with np.load(SHARED / "data" / "cifar10.npz") as file:
        y, t = file["train_labels"].astype(int), file["test_labels"].astype(int)
        rows = per_class(y, ROWS_OF_VIEWS, np.random.default_rng(0))
        images, y, test_images = (
            file["train_images"][rows],
            y[rows],
            file["test_images"],
        )
    model = Imprinter("efficientnet_lite0", cache=False)
    V = np.stack(
        [
            unit_rows(model.look(list(np.ascontiguousarray(view))).X)
            for view in views_of(images)
        ],
        axis=1,
    )
    Q = model.look(list(test_images)).X  # V: (rows, views, d)
    for shots, draws in ((1, DRAWS), (ROWS_OF_VIEWS, 1)):
        figures = []
        for draw in range(draws):
            chosen = per_class(y, shots, np.random.default_rng(draw))
            every, labels = (
                V[chosen].reshape(-1, V.shape[2]),
                np.repeat(y[chosen], V.shape[1]),
            )
            figures.append(
                [
                    accuracy(V[chosen, 0], y[chosen], Q, t),
                    accuracy(every, labels, Q, t),
                    accuracy(V[chosen].mean(axis=1), y[chosen], Q, t),
                ]
            )
        plain, rows_, mean = np.mean(figures, axis=0)
        yield f"CIFAR-10, {shots} per class: image {plain:.1f}, six views as rows {rows_:.1f}, their mean {mean:.1f}"


def pseudo_labels() -> Iterator[str]:
    """Five labelled rows per class, and a pool with balanced or imbalanced classes."""
    for title, sizes in (
        ("equally frequent classes", np.full(10, POOL)),
        ("unequally frequent classes", np.geomspace(POOL, POOL / 20, 10).astype(int)),
    ):
        figures = []
        for name in IMAGES:
            pack, rng = load(name), np.random.default_rng(0)
            order = rng.permutation(len(pack.y))
            by_class = [order[pack.y[order] == c] for c in range(10)]
            labelled = np.concatenate([rows[:5] for rows in by_class])
            pool = np.concatenate(
                [rows[5 : 5 + n] for rows, n in zip(by_class, rng.permutation(sizes))]
            )
            model = recipe("kernel", random_state=0).fit(
                pack.X[labelled], pack.y[labelled]
            )
            P, row = (
                model.predict_proba(pack.X[pool]),
                [100 * float(np.mean(model.predict(pack.Q) == pack.t))],
            )
            for added in (
                len(pool) // 20,
                len(pool) // 10,
            ):  # per class; in total half of the pool, or all
                rows = np.concatenate(
                    [labelled, *(pool[np.argsort(-P[:, c])[:added]] for c in range(10))]
                )
                labels = np.concatenate(
                    [pack.y[labelled], np.repeat(np.arange(10), added)]
                )
                row.append(accuracy(pack.X[rows], labels, pack.Q, pack.t))
            figures.append(row)
        before, half, every = np.mean(figures, axis=0)
        worse = [sum(row[i] < row[0] for row in figures) for i in (1, 2)]
        yield f"{title}: {before:.1f} before, {half:.1f} with half of the pool (worse on {worse[0]} of 12 packs)"
        yield f"{title}: {before:.1f} before, {every:.1f} with the whole pool (worse on {worse[1]} of 12 packs)"


def leave_one_out() -> Iterator[str]:
    """Leave-one-out accuracy and test accuracy."""
    for shots in (2, 5, 20):
        figures = []
        for name in IMAGES:
            pack = load(name)
            for draw in range(3 if shots < 20 else 1):
                rows = per_class(pack.y, shots, np.random.default_rng(draw))
                X, y = pack.X[rows], pack.y[rows]
                tested = np.arange(len(y)) if shots < 20 else np.arange(0, len(y), 4)
                left_out = [
                    accuracy(
                        np.delete(X, i, axis=0),
                        np.delete(y, i),
                        X[i : i + 1],
                        y[i : i + 1],
                    )
                    for i in tested
                ]
                figures.append([np.mean(left_out), accuracy(X, y, pack.Q, pack.t)])
        estimate, truth = np.mean(figures, axis=0)
        yield f"{shots} rows per class: leave-one-out {estimate:.1f}, test rows {truth:.1f}"


MEASUREMENTS: dict[str, Callable[[], Iterator[str]]] = {
    "views": views,
    "pseudo-labels": pseudo_labels,
    "leave-one-out": leave_one_out,
}


def main(chosen: list[str]) -> None:
    for name in chosen or MEASUREMENTS:
        for line in measured_once(
            "negative", name, lambda name=name: list(MEASUREMENTS[name]())
        ):
            print(f"- {name}: {line}.")


if __name__ == "__main__":
    main(sys.argv[1:])
