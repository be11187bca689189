"""How accuracy depends on the backbone, the number of rows per class and the recipe: the tables of docs/choosing.md.

    python benchmarks/choosing.py PACKS... > tables.md

PACKS are files BACKBONE-DATASET.npz as `imprint embed` writes them. From every class n training rows are drawn, with
five seeds for n up to 20, three up to 100 and one beyond; at most 100 test rows per class are predicted.
"""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np

from imprint import recipe
from imprint.embeddings import read_pack
from imprint.tasks import resolve

ROWS = (1, 5, 20, 100, 600)
RECIPES = ("qi2018", "imprint2025", "kernel")
ASKED = 100


def accuracies(path: Path) -> dict[tuple[int, str], float]:
    """Mean accuracy in percent over the draws, by rows per class and recipe; without sizes larger than every class."""
    pack, accuracy = read_pack(path), {}
    most = int(np.unique(pack.y, return_counts=True)[1].max())
    queries = resolve(f"shots(n={ASKED})").select(pack.y_test, seed=0).rows
    X, y = np.asarray(pack.X_test)[queries], pack.y_test[queries]
    for n in (n for n in ROWS if n <= most):
        draws = [
            resolve(f"shots(n={n})").select(pack.y, seed=s).rows
            for s in range(5 if n <= 20 else 3 if n <= 100 else 1)
        ]
        for name in RECIPES:
            scores = [
                recipe(name, random_state=0).fit(pack.X[rows], pack.y[rows]).score(X, y)
                for rows in draws
            ]
            accuracy[n, name] = 100 * fmean(scores)
    return accuracy


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    print("| " + " | ".join(head) + " |")
    print("|---|" + "---:|" * (len(head) - 1))
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)
    print()


def by_rows(title: str, found: Sequence[dict[tuple[int, str], float]]) -> None:
    sizes = [n for n in ROWS if all((n, RECIPES[0]) in f for f in found)]
    print(f"{title}, {len(found)} pack{'s' if len(found) > 1 else ''}\n")
    table(
        ["rows per class", *map(str, sizes)],
        (
            [f"`{name}`", *(f"{fmean(f[n, name] for f in found):.1f}" for n in sizes)]
            for name in RECIPES
        ),
    )


def main(paths: Sequence[Path]) -> None:
    accuracy = {}
    for path in paths:
        print(path.stem, file=sys.stderr, flush=True)
        accuracy[tuple(path.stem.rsplit("-", 1))] = accuracies(path)
    for dataset in dict.fromkeys(d for _, d in accuracy):
        by_rows(dataset, [f for (_, d), f in accuracy.items() if d == dataset])
    by_rows("all", list(accuracy.values()))
    backbones, datasets = (list(dict.fromkeys(names)) for names in zip(*accuracy))
    for n in (20, 100):
        print(f"kernel, {n} rows per class\n")
        at = {
            key: f"{f[n, 'kernel']:.1f}"
            for key, f in accuracy.items()
            if (n, "kernel") in f
        }
        table(
            ["backbone", *datasets],
            ([f"`{b}`", *(at.get((b, d), "") for d in datasets)] for b in backbones),
        )


if __name__ == "__main__":
    main([Path(word) for word in sys.argv[1:]])
